"""What stands in for a plan: the real uv asks real indexes over HTTP and real folders, by pip's own settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from catalogs import catalog_as_of
from loopback import LoopbackIndex

from assistant.host.base import ReplayHost
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import in_language
from assistant.install import Prepared, Sources, Tools
from assistant.model.errors import WorkFailed
from assistant.model.machine import Answer, Exchange, Gpu, Machine, Recording, Vendor
from assistant.model.plan import Backend, Plan, Request, name_of
from assistant.model.record import render_messages, replace
from assistant.plan import PlanInputs
from assistant.session.planning import plan_request, prepare_nearest

NOWHERE = "http://127.0.0.1:9/simple"
PYTHON = "{}.{}".format(*sys.version_info)
LINUX = Machine(os="linux", arch="x86_64", glibc="2.39", python=PYTHON)
CARD = Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 3090", compute_capability="8.6", pci_id="10de:2204")
BLACKWELL = Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 5090", compute_capability="12.0", pci_id="10de:2b85")


def with_card(card: Gpu, driver: str) -> Machine:
    """Give a Linux machine with an NVIDIA card."""
    return Machine(os="linux", arch="x86_64", glibc="2.39", python=PYTHON, gpus=(card,), nvidia_driver=driver)


def host_with(*pip_settings: str, **variables: str) -> ReplayHost:
    """Give a machine whose pip tells these settings, and otherwise knows of no index (never the real PyPI)."""
    lines = pip_settings or ("global.no-index='true'",)
    config = Exchange(ask=("run", "python3", "-m", "pip", "config", "list"), answer=Answer(text="\n".join(lines)))
    said = (Exchange(ask=("variable", name), answer=Answer(text=value)) for name, value in variables.items())
    return ReplayHost(Recording(said=(config, *said)))


Prepare = Callable[..., Prepared]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Give a function that plans and prepares; torch's own index is one where nobody answers, unless one is named."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "JUPYTER_DATA_DIR", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")

    def prepare(
        sources: Sources, machine: Machine = LINUX, project: tuple[str, ...] = (), **request: object
    ) -> Prepared:
        tools = Tools(LiveHost(), sources, lambda _event: None, CancelToken())
        case = PlanInputs(machine, catalog_as_of("2.15.0"), Request(**request))
        first, *others = plan_request(case, tools).plans
        lines = {name_of(line): line for line in (*first.requirements, *project)}
        first = replace(first, requirements=tuple(lines.values()))
        done = prepare_nearest(first, others, case, str(tmp_path / "env"), tools)
        assert keys_of(done.plan) == keys_of(done.plan, "zh_CN"), "what a program reads does not depend on the language"
        return done

    return prepare


def keys_of(plan: Plan, language: str = "en") -> list[str]:
    """Give the keys of what a plan says for and against itself, as its JSON has them in a language."""
    with in_language(language):
        said = [text for part in ("reasons", "warnings") for text in render_messages(plan)[part]]
    assert all(re.fullmatch("[a-z0-9]+(-[a-z0-9]+)+", text["key"]) for text in said), said
    return [text["key"] for text in said]


@pytest.fixture
def index(loopback_index: LoopbackIndex) -> LoopbackIndex:
    """Serve what every plan takes beside torch."""
    for name in ("numpy", "onnx", "onnxruntime", "onnxruntime-gpu", "ipykernel"):
        loopback_index.add(name, "1.30")
    return loopback_index


def mirror_of(index: LoopbackIndex, **options: object) -> Sources:
    """Take a mirror in PyPI's place, as a company's pip is configured; torch's own index does not answer."""
    return Sources(host_with(f"global.index-url='{index.url}'"), index_url=NOWHERE, **options)


def test_a_named_index_serves_the_exact_build(index: LoopbackIndex, prepared: Prepare) -> None:
    """Where several builds lie side by side, the one of the plan is asked for."""
    for version in ("2.15.0", "2.15.0+cpu", "2.15.0+cu130"):
        index.add("torch", version)
    done = prepared(Sources(host_with(f"global.index-url='{index.url}'"), index_url=index.url))
    assert done.resolution.versions["torch"] == "2.15.0+cpu"
    assert (done.plan.index_url, done.plan.warnings) == (index.url, ())


def test_a_mirror_that_ends_earlier_serves_its_newest_release_of_the_build(
    index: LoopbackIndex, prepared: Prepare
) -> None:
    """The plan is that release's own, companions and reasons included, and says where it was found and why."""
    for version in ("2.13.0+cpu", "2.12.1+cpu", "9.9.9.dev1+cpu", "2.14.1"):
        index.add("torch", version)
    done = prepared(mirror_of(index))
    assert [finding.key for finding in done.findings] == ["stands-in"]
    plan = done.plan
    assert (plan.torch, plan.index_url, plan.requirements[0]) == ("2.13.0", None, "torch==2.13.0+cpu")
    assert not any("2.15.0" in str(reason) for reason in plan.reasons)
    assert "cannot be reached" in str(plan.reasons[-2])
    assert [reason.key for reason in plan.reasons[-2:]] == ["index-silent", "torch-found"]
    assert str(plan.reasons[-1]).startswith(f"Found: torch-2.13.0+cpu-py3-none-any.whl is at {index.url}/torch")


def test_what_a_project_asks_for_stays_beside_another_release(index: LoopbackIndex, prepared: Prepare) -> None:
    """Its packages, and the versions that it allows."""
    index.add("torch", "2.13.0+cpu")
    index.add("tqdm", "4.67")
    index.add("numpy", "2.4")
    plan = prepared(mirror_of(index), project=("numpy<2", "tqdm")).plan
    assert plan.torch == "2.13.0"
    assert {"numpy<2", "tqdm"} <= {*plan.requirements}
    assert "numpy" not in plan.requirements


@pytest.mark.parametrize("offline", [False, True])
def test_a_folder_of_wheels_serves(index: LoopbackIndex, prepared: Prepare, tmp_path: Path, offline: bool) -> None:  # noqa: FBT001
    """Torch's own index is out of reach, or nothing may be asked: what lies in the folder is found and said."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("numpy", "onnx", "onnxruntime", "ipykernel"):
        (wheel,) = (index.folder / name).glob("*.whl")
        (folder / wheel.name).write_bytes(wheel.read_bytes())
    wheel = index.add("torch", "2.13.0+cpu")
    wheel.rename(folder / wheel.name)
    index_url = "" if offline else NOWHERE
    plan = prepared(Sources(host_with(), index_url=index_url, find_links=[str(folder)], offline=offline)).plan
    assert plan.torch == "2.13.0"
    assert str(plan.reasons[-1]) == f"Found: {wheel.name} is at {folder}."


def test_pypis_build_with_cuda_is_taken_for_no_cpu_plan_unasked(index: LoopbackIndex, prepared: Prepare) -> None:
    """It brings several GB: the sentence names the way to it, and who agrees gets it with its warning."""
    index.add("torch", "2.15.0")
    with pytest.raises(WorkFailed, match="No CPU build of torch is available from here") as refused:
        prepared(mirror_of(index))
    assert "--with-cuda-libraries" in refused.value.hint.params["option"]
    plan = prepared(mirror_of(index), cuda_libraries=True).plan
    assert (plan.backend, plan.variant, plan.torch) == (Backend.CPU, "pypi", "2.15.0")
    assert "several GB" in str(plan.warnings[0])
    with pytest.raises(WorkFailed):
        prepared(mirror_of(index), cuda_libraries=True, pins=("torch==2.14.1",))


def test_pypis_build_serves_a_card_that_runs_it(index: LoopbackIndex, prepared: Prepare) -> None:
    """Driver 580 is planned cu130, and runs PyPI's cu132 as well; driver 570 does not."""
    index.add("torch", "2.15.0")
    plan = prepared(mirror_of(index), with_card(CARD, "580.95")).plan
    assert (plan.backend, plan.variant, plan.index_url) == (Backend.CUDA, "cu132", None)
    with pytest.raises(WorkFailed, match="cannot be reached"):
        prepared(mirror_of(index), with_card(CARD, "570.26"))


def test_another_build_never_stands_in(index: LoopbackIndex, prepared: Prepare) -> None:
    """A card's plan is not served by a wheel for the CPU, another CUDA, or one without code for the card."""
    for version in ("2.15.0+cpu", "2.6.0+cu126"):
        index.add("torch", version)
    with pytest.raises(WorkFailed, match="cannot be reached"):
        prepared(mirror_of(index), with_card(BLACKWELL, "595.60"))


def test_a_build_that_no_index_has_gives_way_to_the_next_plan(index: LoopbackIndex, prepared: Prepare) -> None:
    """Every source answers: the plan for the CPU says why, unless the card was asked for."""
    index.add("torch", "2.15.0+cpu")
    sources = Sources(host_with(f"global.index-url='{index.url}'"), index_url=index.url)
    plan = prepared(sources, with_card(CARD, "595.60")).plan
    assert plan.backend is Backend.CPU
    assert "torch==2.15.0+cu132" in str(plan.warnings[-1])
    assert plan.warnings[-1].key == "build-not-found"
    with pytest.raises(WorkFailed, match=r"torch==2\.15\.0"):
        prepared(sources, with_card(CARD, "595.60"), backend=Backend.CUDA)


def test_a_companion_is_of_torchs_own_build_or_left_out(index: LoopbackIndex, prepared: Prepare) -> None:
    """PyPI's torchvision does not load beside a torch for the CPU; one that was pinned is asked for all the same."""
    index.add("torch", "2.15.0+cpu")
    for name in ("torchvision", "scikit-learn", "matplotlib", "ipywidgets", "pandas", "tqdm"):
        index.add(name, "0.30.0")
    plan = prepared(mirror_of(index), bundle="course").plan
    assert not [line for line in plan.requirements if line.startswith("torchvision")]
    assert "torchvision" in str(plan.warnings[-1])
    assert plan.warnings[-1].key == "companions-left-out"
    with pytest.raises(WorkFailed):
        prepared(mirror_of(index), pins=("torchvision",))


COMPANY = "https://company.example/simple"
SECRET = COMPANY.replace("//", "//me:secret@")


def project_plan(*indexes: str) -> Plan:
    """Give a plan whose project names these indexes."""
    return Plan(backend=Backend.CPU, variant="cpu", torch="2.15.0", python="3.12", indexes=indexes)


def test_a_projects_index_that_the_settings_name_is_asked_once_with_its_password():
    """It is the user's own; a second one without the password would only refuse to answer."""
    sources = Sources(host_with(f"global.extra-index-url='{SECRET}'"))
    plan = project_plan(f"{COMPANY}/", "https://download.pytorch.org/whl/cu126", "https://other.example/simple")
    (finding,) = sources.index_findings(plan)
    assert "https://company.example/simple, https://other.example/simple, PyPI." in str(finding.text)
    variables = sources.environment_for(plan)
    assert variables["UV_INDEX"] == f"{SECRET} https://other.example/simple"
    assert set(sources.trusted) == {COMPANY}


def test_indexes_of_uvs_settings_are_the_users_own_as_well():
    """Who configured uv and not pip has named them."""
    sources = Sources(host_with("", UV_INDEX=f"company={SECRET}"))
    assert set(sources.trusted) == {COMPANY}


def test_a_projects_index_does_not_change_how_the_user_lets_uv_choose():
    """The first index that has a name is the only one asked for it; the user alone may set something else."""
    assert "UV_INDEX_STRATEGY" not in Sources(host_with("")).environment_for(project_plan(COMPANY))
