"""One decision of hardware and packages, with a real uv against real indexes: small wheels of real names and needs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import catalog_as_of
from loopback import LoopbackIndex

from assistant.catalog import Catalog
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import Sources, Tools
from assistant.model.errors import Cancelled
from assistant.model.machine import Detection, Gpu, Machine, Vendor
from assistant.model.plan import Backend, Planning, Request
from assistant.plan import PlanInputs, make_plans
from assistant.session.planning import plan_request, plan_setup
from assistant.session.state import Choices, Detected, State

pytestmark = [pytest.mark.process, pytest.mark.full]

CATALOG = catalog_as_of("2.15.0")
TORCH = ("2.6.0", "2.8.0", "2.13.0", "2.14.0", "2.14.1", "2.15.0")
VISION = {"2.6.0": "0.21.0", "2.8.0": "0.23.0", "2.13.0": "0.28.0", "2.14.0": "0.29.0"}


def nvidia(name: str, capability: str, driver: str = "595.60", **facts: object) -> Machine:
    """Describe a Linux machine with one NVIDIA card."""
    card = Gpu(vendor=Vendor.NVIDIA, name=name, compute_capability=capability)
    given = {"os": "linux", "arch": "x86_64", "glibc": "2.39", "python": "3.12", **facts}
    return Machine(gpus=(card,), nvidia_driver=driver, **given)


RTX_4090 = nvidia("RTX 4090", "8.9")
RTX_5090 = nvidia("RTX 5090", "12.0")
PLAIN = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12")


class Shelf(LoopbackIndex):
    """What PyPI and torch's indexes hold, under one roof: a variant's index is told by its local version."""

    def torch(self, pythons: tuple[str, ...] = ("312", "311")) -> None:
        """Put torch and torchvision on the shelf, for every variant that the tests use."""
        for version in TORCH:
            for python in pythons:
                tag = f"cp{python}-cp{python}-manylinux_2_28_x86_64"
                self.add("torch", version, tag, requires=("numpy",))
                if version in VISION:
                    self.add("torchvision", VISION[version], tag, requires=(f"torch=={version}",))
        for name, version in (("numpy", "2.0"), ("onnx", "1.23"), ("onnxruntime", "1.31")):
            self.add(name, version)
        for version in ("1.26.0", "1.31.0"):
            self.add("onnxruntime-gpu", version)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """Give a shelf with torch on it."""
    (tmp_path / "shelf").mkdir()
    index = Shelf(tmp_path / "shelf")
    index.torch()
    index.add("xformers", "0.0.29.post3", "cp312-cp312-manylinux_2_28_x86_64", requires=("torch==2.6.0",))
    index.add("whisperx", "3.8.6", requires=("torch~=2.8.0",))
    index.add("whisperx", "3.1.0", requires=("torch>=2",))
    index.add("vllm", "0.33.0", requires=("torch==2.14.0",))
    yield index
    index.close()


class Desk:
    """Plans with that shelf in the place of every index, and counts the questions to the resolver."""

    def __init__(self, shelf: Shelf, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[object] = []
        self.cancel = CancelToken()
        for name, value in {
            "UV_DEFAULT_INDEX": shelf.url,
            "UV_CACHE_DIR": str(folder / "cache"),
            "UV_HTTP_RETRIES": "0",
            "UV_INDEX": "",
            "UV_FIND_LINKS": "",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": shelf.url,
            "PIP_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": shelf.url)

    def plan(self, *pins: str, machine: Machine = RTX_4090, index_url: str = "", **wishes: object) -> Planning:
        """Decide for a described machine."""
        host = LiveHost()
        tools = Tools(host, Sources(host, index_url=index_url), self.events.append, self.cancel)
        self.events.clear()
        return plan_request(PlanInputs(machine, CATALOG, Request(pins=pins, **wishes)), tools)

    @property
    def questions(self) -> int:
        """How often the resolver was asked."""
        return len(self.events)


@pytest.fixture
def desk(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Give the desk at that shelf."""
    return Desk(shelf, tmp_path, monkeypatch)


def said(planning: Planning) -> str:
    """Return all that a planning says."""
    plan = planning.choice
    lines = (*plan.reasons, *plan.warnings) if plan else [(one.why, one.would_help) for one in planning.rejected]
    return " ".join(str(part) for line in lines for part in (line if isinstance(line, tuple) else (line,)))


def test_what_is_of_torchs_family_is_not_put_to_the_resolver(desk):
    """The planner alone decides as before, and in its own words."""
    planning = desk.plan("torch==2.8.0", "torchvision")
    case = PlanInputs(RTX_4090, CATALOG, Request(pins=("torch==2.8.0", "torchvision")))
    assert planning == make_plans(*case)
    assert desk.questions == 0


def test_what_goes_with_the_newest_torch_takes_one_question(desk):
    """The plan is the planner's own, with what the user asked for written down."""
    plan = desk.plan("numpy").choice
    assert (plan.backend, plan.variant, plan.torch) == (Backend.CUDA, "cu132", "2.15.0")
    assert plan.asked == ("numpy",)
    assert desk.questions == 1


@pytest.mark.parametrize(
    ("pin", "torch", "variant"),
    [
        ("xformers==0.0.29.post3", "2.6.0", "cu126"),
        ("whisperx==3.8.6", "2.8.0", "cu129"),
        ("vllm", "2.14.0", "cu132"),
    ],
)
def test_a_package_draws_torch_to_the_release_that_it_needs(desk, pin, torch, variant):
    """The build is the best of that release for the card, and the reasons name who needs it."""
    planning = desk.plan(pin)
    assert (planning.choice.torch, planning.choice.variant) == (torch, variant)
    assert f"needs torch {torch}" in said(planning) or "needs torch >=2.8.0, <2.9" in said(planning)
    assert "holds code for RTX 4090" in said(planning)
    assert desk.questions == 1


def test_where_the_card_has_no_such_build_both_sides_are_named(desk):
    """A card of 2025 has no code in torch 2.6: the CPU plan says who needs what, and what the card has."""
    planning = desk.plan("xformers==0.0.29.post3", machine=RTX_5090)
    assert (planning.choice.backend, planning.choice.torch) == (Backend.CPU, "2.6.0")
    assert "xformers 0.0.29.post3 needs torch 2.6.0" in said(planning)
    assert "Torch 2.7.0 to 2.15.0 can use RTX 5090 on this machine." in said(planning)


def test_a_gpu_that_is_asked_for_is_not_traded_for_the_cpu(desk):
    """With --backend cuda the same set is refused."""
    planning = desk.plan("xformers==0.0.29.post3", machine=RTX_5090, backend=Backend.CUDA)
    assert planning.choice is None
    assert "xformers 0.0.29.post3 needs torch 2.6.0" in said(planning)


def test_an_unknown_bound_is_learnt_from_the_resolver(desk, shelf):
    """No table knows this package: its newest version wants an older torch, and gets it."""
    shelf.add("own-model", "2.0", requires=("torch<2.9",))
    shelf.add("own-model", "1.0", requires=("torch",))
    planning = desk.plan("own-model")
    assert planning.choice.torch == "2.8.0"
    assert "own-model 2.0 needs torch <2.9" in said(planning)
    assert desk.questions == 2


def test_an_older_version_on_the_gpu_goes_before_a_newer_one_on_the_cpu(desk, shelf):
    """Where only the newest version is out of the card's reach, the one before it is taken, and that is said."""
    shelf.add("own-model", "2.0", requires=("torch<2.7",))
    shelf.add("own-model", "1.0", requires=("torch",))
    planning = desk.plan("own-model", machine=RTX_5090)
    assert (planning.choice.backend, planning.choice.torch) == (Backend.CUDA, "2.15.0")
    assert "own-model 2.0 needs torch <2.7. For this torch the plan takes own-model 1.0." in said(planning)


@pytest.mark.parametrize(
    ("name", "help_"),
    [("nonexistent-zzz", "Check the name"), ("whisprx", "Did you mean whisperx?")],
)
def test_a_name_that_no_source_has_is_never_planned(desk, name, help_):
    """It is refused by name, with the nearest real one where the index has that."""
    planning = desk.plan(name)
    assert planning.choice is None
    assert planning.rejected[0].key == "name-unknown"
    assert name in said(planning)
    assert help_ in said(planning)


def test_an_unknown_name_below_another_names_who_needs_it(desk, shelf):
    """The user never wrote that name."""
    shelf.add("careless", "1.0", requires=("gone-forever",))
    assert "has gone-forever, which careless needs" in said(desk.plan("careless"))


def test_a_source_that_refuses_to_answer_has_no_unknown_names(desk, shelf):
    """An index that asks for a login does not say that a package does not exist."""
    shelf.trouble["secret-model"] = 403
    assert desk.plan("secret-model").rejected[0].key != "name-unknown"


def test_an_index_that_fails_in_the_middle_leaves_the_plan_unchecked(desk, shelf):
    """The plan stays and says in one sentence what could not be checked."""
    shelf.trouble["own-model"] = 500
    planning = desk.plan("own-model")
    assert planning.choice.torch == "2.15.0"
    assert "It could not be checked whether all packages go together" in said(planning)
    place = f"{shelf.url}/own-model/"
    assert said(planning).endswith(f"cannot be reached: {place}: HTTP status server error (500 Internal Server Error)")


@pytest.mark.parametrize("login", ["", "me:secret"])
def test_a_projects_index_that_is_the_users_own_is_known(desk, tmp_path, monkeypatch, login):
    """Nobody has to trust once more what the settings of pip name; the password stays there and still opens it."""
    (tmp_path / "company").mkdir()
    company = LoopbackIndex(tmp_path / "company")
    company.login = login
    company.add("corp-lib", "1.0")
    monkeypatch.delenv("UV_INDEX")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", company.url.replace("//", f"//{login}@") if login else company.url)
    file = tmp_path / "requirements.txt"
    file.write_text(f"--extra-index-url {company.url}\ncorp-lib\n")
    host = LiveHost()
    tools = Tools(host, Sources(host), desk.events.append, desk.cancel)
    state = State(
        machine="described",
        choices=Choices(request=Request(project=str(file))),
        detected=Detected(detection=Detection(machine=PLAIN)),
    )
    try:
        found = plan_setup(state, tools)
    finally:
        company.close()
    assert (found.planning.choice.indexes, found.project.lines) == ((company.url,), ())
    assert found.planning.choice.asked == ("corp-lib",)
    assert found.planning.choice.warnings == ()


def test_a_pin_that_the_tables_pair_with_a_torch_chooses_it_and_another_gives_a_warning(desk, shelf):
    """No metadata says that torchcodec 0.7 is for torch 2.8; of torchao 0.10 the tables know no torch."""
    shelf.add("torchcodec", "0.7.0")
    shelf.add("torchao", "0.10.0")
    planning = desk.plan("torchcodec==0.7.0", "torchao==0.10.0")
    assert planning.choice.torch == "2.8.0"
    assert "but the plan takes torchao 0.10.0" in said(planning)
    assert not any(line.startswith("torchao") for line in planning.choice.constraints)
    assert desk.questions == 1


@pytest.mark.parametrize(("machine", "torch", "variant"), [(RTX_4090, "2.14.1", "cu126"), (RTX_5090, "2.8.0", "cu129")])
def test_a_version_for_an_older_cuda_takes_the_newest_torch_that_is_built_for_it(desk, machine, torch, variant):
    """ONNX Runtime 1.26 is for CUDA 12: the best build of a newest torch, for CUDA 13, is passed over, and why."""
    planning = desk.plan("onnxruntime-gpu==1.26.0", machine=machine)
    assert (planning.choice.torch, planning.choice.variant) == (torch, variant)
    assert "onnxruntime-gpu==1.26.0 is built for CUDA 12" in said(planning)
    assert desk.plan("onnxruntime-gpu", machine=machine).choice.torch == "2.15.0"


def test_a_python_that_opens_the_set_is_chosen_and_one_that_is_fixed_only_named(desk, shelf):
    """Wheels for Python 3.11 alone: the plan takes it, or says so where the user fixed another."""
    shelf.add("old-model", "1.0", "cp311-cp311-manylinux_2_28_x86_64")
    planning = desk.plan("old-model")
    assert (planning.choice.python, planning.choice.torch) == ("3.11", "2.15.0")
    assert "for Python 3.11 it can" in said(planning)
    old = desk.plan("old-model", "torch==2.6.0", machine=RTX_5090)
    assert (old.choice.backend, old.rejected[0].backend) == (Backend.CPU, Backend.CUDA)  # why not is told there, too
    fixed = desk.plan("old-model", python="3.12")
    assert fixed.choice is None
    assert "Use Python 3.11" in said(fixed)


def test_what_comes_only_as_source_is_refused_with_what_a_build_takes(desk, shelf, tmp_path):
    """Nothing is built: the answer names the compilers, where others keep wheels of it, and what helps."""
    mark = tmp_path / "ran"
    shelf.add_archive("flash-attn", "2.8.3", mark)
    shelf.add_archive("plain", "1.0", mark)
    planning = desk.plan("flash-attn")
    assert (planning.choice, planning.rejected[0].key) == (None, "needs-build")
    assert "takes a C++ compiler and nvcc" in said(planning)
    assert "at https://github.com/" in said(planning)
    assert "name the folder that holds it" in said(planning)
    both = said(desk.plan("plain", "flash-attn", machine=PLAIN))
    assert "no wheel of plain, flash-attn for" in both  # nobody is sent away twice
    rest = said(desk.plan("plain", "whisperx==3.8.6"))
    assert "Everything else fits torch" in rest
    assert "afterwards with `pip install plain`" in rest
    assert not mark.exists()


def test_a_quarrel_names_the_packages_and_the_smallest_change(desk, shelf):
    """Two packages want different versions of a third: the one that has another version gives way."""
    shelf.add("numpy", "1.5")
    shelf.add("one", "1.0", requires=("numpy<2",))
    shelf.add("two", "1.0", requires=("numpy>=2",))
    shelf.add("two", "0.5", requires=("numpy",))
    planning = desk.plan("one", "two==1.0")
    assert planning.choice is None
    assert "one depend on numpy<2" in said(planning)
    assert "Ask for two 0.5 instead of two==1.0" in said(planning)


def test_a_pinned_torch_that_a_package_does_not_want_is_the_first_to_loosen(desk):
    """The user's own pin on torch is named, and the torch with which the rest holds."""
    planning = desk.plan("Torch==2.14.1", "whisperx==3.8.6")
    assert planning.choice is None
    assert "Ask for torch 2.8.0 instead of Torch==2.14.1" in said(planning)


def test_constraints_and_overrides_of_a_project_go_to_the_resolver(desk, shelf):
    """A constraint bounds what something else brings; an override stands in for what a package says itself."""
    shelf.add("helper", "1.0")
    shelf.add("helper", "2.0")
    shelf.add("own-model", "1.0", requires=("helper",))
    shelf.add("strict", "1.0", requires=("helper<1",))
    assert desk.plan("own-model", constraints=("helper<2", "torch<2.14")).choice.torch == "2.13.0"
    assert desk.plan("own-model", constraints=("helper>3",)).choice is None
    assert desk.plan("strict", overrides=("helper>=1",)).choice.torch == "2.15.0"


def test_a_line_for_another_system_counts_for_nothing(desk):
    """Markers are evaluated for the machine that the plan is for; the same name may stand in several lines."""
    planning = desk.plan("nonexistent-zzz; sys_platform == 'win32'", "whisperx>=3.8", "whisperx<4")
    assert planning.choice.torch == "2.8.0"
    assert {"whisperx>=3.8", "whisperx<4"} <= set(planning.choice.requirements)


def test_a_cancel_ends_the_search(desk, shelf):
    """The resolver waits for an index that does not answer; the search is over at once."""
    shelf.trouble["whisperx"] = "stall"
    threading.Timer(1.5, desk.cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        desk.plan("whisperx")
    assert time.monotonic() - began < 30


def test_what_a_recipe_adds_for_a_backend_is_not_dropped(desk, shelf):
    """It is as good as asked for: where no source has it, that is the answer, and no plan without it."""
    shelf.add("faster-whisper", "1.2.1", requires=("ctranslate2>=4", "onnxruntime>=1.14"))
    shelf.add("ctranslate2", "4.8.5")
    planning = desk.plan(bundle="faster-whisper", backend=Backend.CUDA)
    assert planning.choice is None
    assert "nvidia-cublas-cu12" in said(planning)
    shelf.add("nvidia-cublas-cu12", "12.9.2.10")
    plan = desk.plan(bundle="faster-whisper", backend=Backend.CUDA).choice
    assert {"faster-whisper", "onnxruntime", "nvidia-cublas-cu12"} <= {*plan.asked}


def test_one_index_with_all_builds_side_by_side(shelf, desk):
    """With --index-url a mirror holds every build: the exact one is asked for, and found for what the set needs."""
    for version in ("2.15.0+cu132", "2.15.0+cpu", "2.8.0+cu129", "2.8.0+cpu", "2.8.0+xpu"):
        shelf.add("torch", version, "cp312-cp312-manylinux_2_28_x86_64", requires=("numpy",))
    planning = desk.plan("whisperx==3.8.6", index_url=shelf.url)
    plan, beside = planning.choice, planning.plans[-1]
    assert (plan.torch, plan.variant, plan.requirements[0]) == ("2.8.0", "cu129", "torch==2.8.0+cu129")
    assert (beside.backend, beside.index_url, beside.requirements[0]) == (Backend.CPU, shelf.url, "torch==2.8.0+cpu")


@pytest.mark.parametrize(
    "case",
    [
        ("down", RTX_4090, (), "torch==2.15.0"),  # PyPI's own build is the very one
        (403, RTX_4090, ("2.15.0+cpu", "2.15.0+cu132", "2.15.0+xpu"), "torch==2.15.0+cu132"),
        ("page", nvidia("RTX 4090", "8.9", "580.95"), (), "torch==2.15.0"),  # PyPI's for another CUDA runs here, too
        ("down", PLAIN, ("2.15.0+cpu", "2.15.0+cu132"), "torch==2.15.0+cpu"),
    ],
)
def test_where_torchs_index_is_silent_another_source_serves(desk, shelf, monkeypatch, case):
    """The plan takes the build from the user's own sources, and says so; a proxy's page is no index."""
    trouble, machine, held, line = case
    for version in held:
        shelf.add("torch", version, "cp312-cp312-manylinux_2_28_x86_64", requires=("numpy",))
    shelf.trouble[""] = trouble  # at any other address than its own
    address = "http://127.0.0.1:9/whl" if trouble == "down" else shelf.url.replace("simple", "whl")
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": address)
    planning = desk.plan("numpy", machine=machine)
    assert (planning.choice.index_url, planning.choice.requirements[0]) == (None, line)
    assert f"{address} could not be asked, and another of your package sources has torch 2.15.0" in said(planning)
    assert desk.questions == 2


def test_a_plan_for_the_cpu_never_becomes_pypis_build_for_cuda(desk, shelf, monkeypatch):
    """Where torch's index is silent, PyPI's torch only tells that the set goes together; an own index may lack it."""
    plain = desk.plan("numpy", machine=PLAIN, index_url=shelf.url)
    assert (plain.choice, plain.rejected[0].key) == (None, "not-in-index")
    assert f"{shelf.url} holds no cpu build of torch" in said(plain)
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": "http://127.0.0.1:9/whl/cpu")
    planning = desk.plan("numpy", machine=PLAIN)
    assert (planning.choice.index_url, planning.choice.variant) == ("http://127.0.0.1:9/whl/cpu", "cpu")
    assert "Not checked: http://127.0.0.1:9/whl/cpu could not be asked for this build" in said(planning)


def test_on_windows_pypis_build_for_the_cpu_only_tells_that_the_set_goes_together(desk, shelf, monkeypatch):
    """It stands in for the index that is silent, and the plan stays for the card."""
    for version in ("2.15.0", "2.14.1"):
        shelf.add("torch", version, "cp312-cp312-win_amd64", requires=("numpy",))
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": "http://127.0.0.1:9/whl/cu130")
    planning = desk.plan("numpy", machine=nvidia("RTX 3060", "8.6", "581.15", os="windows"))
    assert (planning.choice.backend, planning.choice.index_url) == (Backend.CUDA, "http://127.0.0.1:9/whl/cu130")
    assert "Not checked: http://127.0.0.1:9/whl/cu130 could not be asked for this build" in said(planning)


def test_versions_of_the_family_by_pattern_are_kept(desk):
    """A project pins torchvision==0.23.*; the plan names the release that goes with its torch."""
    planning = desk.plan("whisperx==3.8.6", "torchvision==0.23.*")
    assert {"torch==2.8.0", "torchvision==0.23.0"} <= set(planning.choice.requirements)


def test_a_mirror_of_pypi_serves_a_card_with_the_build_that_is_there(desk, shelf):
    """The best build for this driver is another one; PyPI's runs as well, and is asked for by its release."""
    plan = desk.plan("numpy", machine=nvidia("RTX 4090", "8.9", "580.95"), index_url=shelf.url).choice
    assert (plan.variant, plan.index_url, plan.requirements[0]) == ("cu132", shelf.url, "torch==2.15.0")
    assert desk.questions == 1


def test_an_own_index_serves_the_newest_release_that_it_has_in_the_right_build(desk, shelf):
    """Its newest torch is for the CPU alone: the card gets the one before, in one question."""
    for version in ("2.15.0+cpu", "2.14.1+cpu", "2.14.1+cu132", "2.14.1+xpu"):
        shelf.add("torch", version, "cp312-cp312-manylinux_2_28_x86_64", requires=("numpy",))
    (shelf.folder / "torch" / "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl").unlink()
    plan = desk.plan("numpy", index_url=shelf.url).choice
    assert (plan.index_url, plan.requirements[0], desk.questions) == (shelf.url, "torch==2.14.1+cu132", 1)


def test_what_packages_need_beside_torch_comes_along_and_flavours_do_not_meet(desk, shelf):
    """faster-whisper brings plain onnxruntime and computes with ctranslate2, which is built for CUDA 12."""
    shelf.add("faster-whisper", "1.2.1", requires=("ctranslate2>=4", "onnxruntime>=1.14"))
    shelf.add("ctranslate2", "4.8.5")
    shelf.add("nvidia-cublas-cu12", "12.9.2.10")
    plan = desk.plan("faster-whisper").choice
    assert plan.variant == "cu132"
    names = [line.partition(">")[0].partition("=")[0] for line in plan.requirements]
    assert names == ["torch", "faster-whisper", "numpy", "onnx", "nvidia-cublas-cu12"]
    assert "nvidia/cublas/lib" in str([warning.params for warning in plan.warnings])


def test_a_glibc_that_is_not_given_is_assumed_and_where_it_decides_both_answers_are_given(desk, shelf):
    """Every machine that was described by hand or pasted lacks it."""
    unknown = Machine(os="linux", arch="x86_64", python="3.12")
    assert "The version of glibc is not given; 2.28 was assumed." in said(desk.plan("numpy", machine=unknown))
    shelf.add("rerun", "0.22.1", "cp312-cp312-manylinux_2_31_x86_64")
    both = said(desk.plan("rerun", machine=unknown))
    assert "this is the plan from 2.39 on. For 2.28: No set of packages fits this plan" in both
    assert "glibc" not in said(desk.plan("rerun", machine=PLAIN))


def test_the_nearest_torch_is_advised(desk, shelf):
    """Not the newest: what ran beside the pin runs beside its neighbour most likely."""
    shelf.add("own-model", "1.0", requires=("torch!=2.13.0",))
    planning = desk.plan("torch==2.13.0", "own-model")
    assert "Ask for torch 2.14.0 instead of torch==2.13.0" in said(planning)


def test_a_wheel_that_cannot_be_reached_leaves_the_rest_to_be_checked(desk):
    """A project names one on a site that is down: all else is asked for, and a name that nobody has is still found."""
    wheel = "own @ http://127.0.0.1:9/own-1.0-py3-none-any.whl"
    plan = desk.plan(wheel, "whisperx==3.8.6").choice
    assert (plan.torch, wheel in plan.requirements) == ("2.8.0", True)
    assert f"{wheel} cannot be reached" in said(desk.plan(wheel, "whisperx==3.8.6"))
    assert desk.plan(wheel, "nonexistent-zzz").rejected[0].key == "name-unknown"


def test_a_project_that_needs_no_torch_gets_none(desk):
    """Some GB would be brought for nothing; what is asked for by a pin goes beside torch, which is asked for too."""
    plan = desk.plan("onnxruntime", name="faces").choice
    assert (plan.torch, plan.requirements, plan.backend) == ("", ("onnxruntime",), Backend.CPU)
    assert desk.plan("onnxruntime").choice.torch == "2.15.0"
    assert desk.plan("whisperx==3.8.6", name="sound").choice.torch == "2.8.0"


def test_the_build_that_a_project_names_is_kept_where_it_runs_or_the_reason_is_said(desk):
    """Its authors tried that one; on a card for which it holds no code another goes before."""
    asked = {"name": "sound", "builds": ("cu126", "cpu")}
    kept = desk.plan("whisperx==3.8.6", **asked)
    assert kept.choice.variant == "cu126"
    assert "The project's own files name cu126, which this machine can use." in said(kept)
    other = desk.plan("whisperx==3.8.6", machine=RTX_5090, **asked)
    assert other.choice.variant == "cu129"
    assert "The project's own files name cu126, and the plan takes cu129: No CUDA build" in said(other)


def test_of_a_project_what_is_source_alone_is_left_out_and_said(desk, shelf, tmp_path):
    """Most projects have a package that nobody built a wheel of; the rest is of use, and nothing of it is run."""
    mark = tmp_path / "ran"
    shelf.add_archive("antlr", "4.9", mark)
    shelf.add("omegaconf", "2.3", requires=("antlr==4.9.*",))
    shelf.add("hydra", "1.3", requires=("omegaconf",))
    planning = desk.plan("whisperx==3.8.6", "hydra", name="sound")
    assert planning.choice.torch == "2.8.0"
    assert "antlr: left out" in said(planning)
    assert "`pip install 'antlr>=4.9,<4.10'`" in said(planning)
    assert planning.choice.asked == ("whisperx",)  # hydra cannot be imported before that
    both = desk.plan("whisperx==3.8.6", "antlr", name="sound")
    for plan in both.plans:  # the one for the CPU, too
        assert "antlr" not in plan.requirements
        assert "antlr: left out" in str(plan.warnings[0])
    shelf.add("built", "1.0", "cp311-cp311-manylinux_2_28_x86_64")
    shelf.add_archive("built", "1.0", mark)
    other = desk.plan("whisperx==3.8.6", "built", name="sound").choice
    assert (other.python, other.overrides) == ("3.11", ())
    assert not mark.exists()


def test_what_does_not_compute_on_the_machine_is_said(desk):
    """PyPI's vllm is for CUDA, whatever torch it is put beside; its import is no measure of the installation."""
    planning = desk.plan("vllm", machine=PLAIN)
    assert "vllm computes with CUDA alone, as far as is known, and not with CPU." in said(planning)
    assert planning.choice.asked == ()
