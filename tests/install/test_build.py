"""Builds of extensions: beside the plan's torch, with nvcc of its CUDA, checked beforehand, kept for the next time."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from install.workbench import Bench
from packaging.requirements import Requirement

from assistant.catalog.companions import BuildNeeds
from assistant.host.base import Host
from assistant.host.compilers import VERSION
from assistant.host.index import Archive, find_archives
from assistant.host.live import LiveHost
from assistant.host.recording import ReplayHost
from assistant.i18n import Message
from assistant.install.build import Order, build_wheel, built_before
from assistant.install.consent import resolved
from assistant.install.sources import Consent, Sources
from assistant.install.toolchain import check_compiler, toolchain
from assistant.install.tools import Tools
from assistant.model.errors import WorkFailed
from assistant.model.machine import Answer, Exchange, Gpu, Machine, Recording, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace

CARD = Machine(os="linux", arch="x86_64", gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="8.9"),))
NO_CARD = Machine(os="linux", arch="x86_64")
# A set-up program that imports torch, and writes down what it sees; "broken" is what it fails with.
BACKEND = """import json, os, sys, zipfile
import torch
seen = {{**os.environ, "torch": torch.__version__, "python": sys.prefix}}
home = os.environ.get("CUDA_HOME", "")
seen["libraries"] = sorted(os.listdir(home + "/lib64")) if home else []
json.dump(seen, open({mark!r}, "w"))
if {broken!r}:
    sys.exit({broken!r})
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info, name = "needs_torch-1.0.dist-info", "needs_torch-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.writestr("needs_torch.py", "")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: needs-torch\\nVersion: 1.0\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = [{requires}]\nbuild-backend = "backend"\nbackend-path = ["."]\n'


class Site:
    """An index with torch, the tools of a build and a source archive; `mark` is what its set-up program saw."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.mark = bench, folder / "seen.json"
        for tool in ("ninja", "setuptools", "wheel"):
            bench.index.add(tool, "1.0")
        with zipfile.ZipFile(bench.index.add("cuda-toolkit", "13.0.2"), "a") as wheel:
            for name in ("bin/nvcc", "lib/libcudart.so.13", "include/cuda.h"):
                wheel.writestr(f"nvidia/cu13/{name}", "")

    def archive(self, *, requires: str = "", kernels: bool = False, broken: str = "") -> Archive:
        """Put the archive on the index, and find it there."""
        files = {
            "PKG-INFO": "Metadata-Version: 2.1\nName: needs-torch\nVersion: 1.0\n",
            "pyproject.toml": PROJECT.format(requires=requires),
            "backend.py": BACKEND.format(mark=str(self.mark), broken=broken),
            **({"kernel.cu": ""} if kernels else {}),
        }
        folder = self.bench.index.folder / "needs-torch"
        folder.mkdir(exist_ok=True)
        with tarfile.open(folder / "needs_torch-1.0.tar.gz", "w:gz") as tar:
            for name, text in files.items():
                entry = tarfile.TarInfo(f"needs_torch-1.0/{name}")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
        index = [self.bench.index.url]
        return find_archives("needs-torch", self.bench.plan.python, index_urls=index, find_links=[], timeout=5)[0]

    def order(self, machine: Machine | None = NO_CARD, *, host: Host | None = None, **changes: object) -> Order:
        """Order a build for a machine; `changes` are those of the plan."""
        sources = Sources(LiveHost(), index_url=self.bench.index.url, consent=Consent())
        tools = Tools(host or LiveHost(), sources, self.bench.events.append, self.bench.cancel, machine=machine)
        plan = replace(self.bench.plan, **changes)
        return Order(plan=plan, keep={}, installer=self.bench.installer(), tools=tools)

    @property
    def seen(self) -> dict[str, object]:
        """What the set-up program saw."""
        return dict(json.loads(self.mark.read_text()))


@pytest.fixture
def site(bench: Bench, tmp_path: Path) -> Site:
    """Give the ground of a build."""
    return Site(bench, tmp_path)


def left_over(folder: Path) -> list[Path]:
    """List what a build must not leave."""
    return [*folder.rglob("*.part"), *folder.rglob("environment")]


@pytest.mark.process
@pytest.mark.parametrize("requires", ['"torch"', ""])
def test_a_set_up_that_imports_torch_gets_the_plans(site: Site, tmp_path: Path, requires: str) -> None:
    """Whether the archive says so or only fails without: the build sees that torch, and is kept for the next time."""
    archive = site.archive(requires=requires)
    folder = build_wheel("needs-torch", archive, site.order())
    assert [wheel.name for wheel in folder.iterdir()] == ["needs_torch-1.0-py3-none-any.whl"]
    assert (site.seen["torch"], site.seen["FORCE_CUDA"]) == ("9.0", "0")
    assert not left_over(tmp_path / "XDG_STATE_HOME")
    site.mark.unlink()
    site.bench.index.requests.clear()
    assert build_wheel("needs-torch", archive, site.order()) == folder
    assert not site.mark.exists()
    assert site.bench.index.requests == []


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="the stand-in lies as the wheels for Linux do")
def test_an_extension_for_cuda_gets_nvcc_of_its_torch_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's CUDA is seen; the folder is one that linkers know, and the cards are this machine's."""
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/cuda/lib64")
    monkeypatch.setenv("MY_TOKEN", "secret")
    archive = site.archive(requires='"torch"', kernels=True)
    build_wheel("needs-torch", archive, site.order(CARD, backend=Backend.CUDA, variant="cu130"))
    seen = site.seen
    assert seen["CUDA_HOME"] == f"{seen['python']}/lib/python{site.bench.plan.python}/site-packages/nvidia/cu13"
    places = str(seen["PATH"]).split(os.pathsep)
    assert places.index(f"{seen['CUDA_HOME']}/bin") < places.index("/usr/bin")
    assert "/usr/local/cuda" not in json.dumps(seen)
    assert {"LD_LIBRARY_PATH", "MY_TOKEN", "UV_DEFAULT_INDEX"}.isdisjoint(seen)
    assert seen["libraries"] == ["libcudart.so", "libcudart.so.13"]
    assert (seen["TORCH_CUDA_ARCH_LIST"], seen["FORCE_CUDA"]) == ("8.9", "1")
    assert int(str(seen["MAX_JOBS"])) >= 1


@pytest.mark.process
def test_a_kept_wheel_is_found_without_any_source(site: Site) -> None:
    """Offline, nobody can be asked for the archive; a wheel for another torch is no stand-in."""
    folder = build_wheel("needs-torch", site.archive(requires='"torch"'), site.order())
    site.bench.index.close()
    assert built_before(Requirement("needs-torch>=1"), site.order()) == folder
    assert built_before(Requirement("needs-torch>=2"), site.order()) is None
    other = site.order(torch="9.1", requirements=("torch==9.1",))
    assert built_before(Requirement("needs-torch"), other) is None


@pytest.mark.process
def test_an_offline_installation_takes_the_kept_wheel(site: Site) -> None:
    """The resolver says that nothing is found; the wheel that was built is, and its code does not run again."""
    folder = build_wheel("needs-torch", site.archive(requires='"torch"'), site.order())
    site.bench.resolution()  # so that the rest is in uv's cache
    site.bench.index.close()
    site.mark.unlink()
    order = site.order(requirements=("torch==9.0", "needs-torch"))
    installer = order.installer
    offline = dataclasses.replace(installer, environment={**installer.environment, "UV_OFFLINE": "1"})
    found = {one.name: one.url for one in resolved(order.plan, offline, order.tools).packages}
    assert found["needs-torch"] == next(folder.iterdir()).as_uri()
    assert not site.mark.exists()


@pytest.mark.process
def test_a_build_in_vain_is_no_question(site: Site) -> None:
    """A package whose source does not fit the torch is refused before anybody is asked, and nothing of it runs."""
    site.bench.index.add_archive("flash-attn", "2.8.3", site.mark)
    order, heard = site.order(requirements=("torch==9.0", "flash-attn")), list[Message]()
    tools = dataclasses.replace(order.tools, ask=lambda question: bool(heard.append(question)))
    with pytest.raises(WorkFailed, match="flash-attn cannot be built beside PyTorch 9"):
        resolved(order.plan, order.installer, tools)
    assert heard == []
    assert not site.mark.exists()


@pytest.mark.process
def test_a_build_that_fails_says_why_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    """Its own words are told, the next step is about the package and not about the plan."""
    archive = site.archive(requires='"torch"', broken="fatal error: Python.h: No such file")
    with pytest.raises(WorkFailed) as failure:
        build_wheel("needs-torch", archive, site.order())
    assert "fatal error: Python.h" in str(failure.value)
    assert "leave it out" in str(failure.value.hint)
    assert not left_over(tmp_path / "XDG_STATE_HOME")
    assert not list((tmp_path / "XDG_CACHE_HOME").rglob("built"))


@pytest.mark.process
def test_what_the_build_needs_must_fit_beside_the_plans_torch(site: Site) -> None:
    """Both sides are named before anything of it runs."""
    archive = site.archive(requires='"torch", "elsewhere>=2"')
    with pytest.raises(WorkFailed, match=r"needs-torch needs does not fit beside torch==9\.0: .*elsewhere"):
        build_wheel("needs-torch", archive, site.order())
    assert not site.mark.exists()


PLAN = Plan(backend=Backend.CUDA, variant="cu130", torch="2.12.0", python="3.12", requirements=("torch==2.12.0",))
FLASH = BuildNeeds(torch=True, nvcc="always", torch_below="2.14")


@pytest.mark.parametrize(
    ("plan", "machine", "sentence"),
    [
        (replace(PLAN, backend=Backend.CPU, variant="cpu"), CARD, "computes on NVIDIA GPUs alone"),
        (replace(PLAN, backend=Backend.ROCM, variant="rocm7.2"), CARD, "computes on NVIDIA GPUs alone"),
        (PLAN, NO_CARD, "this machine shows none"),
        (replace(PLAN, variant="cu128"), CARD, "needs nvcc of CUDA 12.8, and PyPI has no whole nvcc of it"),
        (replace(PLAN, torch="2.14.1", requirements=("torch==2.14.1",)), CARD, "cannot be built beside PyTorch 2.14.1"),
    ],
)
def test_a_build_that_could_not_work_is_refused(plan: Plan, machine: Machine, sentence: str) -> None:
    """Before anything is downloaded, in a sentence that says what it lacks."""
    with pytest.raises(WorkFailed, match=sentence):
        toolchain("flash-attn", FLASH, plan, {}, machine, insists=False)


def test_the_user_may_insist_on_a_build_for_a_card_elsewhere() -> None:
    """Naming the package beforehand is to insist; a machine of which nothing is known is not one without a card."""
    assert toolchain("flash-attn", FLASH, PLAN, {}, NO_CARD, insists=True).cuda == "13.0"
    assert toolchain("flash-attn", FLASH, PLAN, {}, None, insists=False).cuda == "13.0"
    unclear = Machine(gpus=(Gpu(vendor=Vendor.NVIDIA),))
    assert toolchain("flash-attn", FLASH, PLAN, {}, unclear, insists=False).cards == ()


def test_pypis_own_build_has_the_cuda_of_its_release() -> None:
    """The tag says nothing there, the catalogue does."""
    plan = replace(PLAN, variant="pypi")
    assert toolchain("x", BuildNeeds(torch=True, nvcc="gpu"), plan, {}, CARD, insists=False).cuda == "13.0"
    assert toolchain("x", BuildNeeds(torch=True), plan, {}, CARD, insists=False).cuda == ""


def test_in_an_environment_that_stands_its_own_torch_counts() -> None:
    """A change to an environment has no plan of its own; the torch that stays there tells what to build beside."""
    plan = replace(PLAN, backend=Backend.CPU, variant="", torch="", requirements=("needs-torch",))
    chain = toolchain("needs-torch", FLASH, plan, {"torch": "2.12.0+cu130"}, CARD, insists=False)
    assert (chain.torch, chain.cuda, chain.cards) == ("torch==2.12.0+cu130", "13.0", ("8.9",))


def test_it_is_the_plans_very_release_that_a_build_is_for() -> None:
    """What else the user asks of torch is met by the plan; extras, by which AMD's index splits torch, go along."""
    plan = replace(PLAN, requirements=("torch[device-gfx1100]>=2.8", "numpy"))
    assert toolchain("x", BuildNeeds(torch=True), plan, {"torch": "2.9.0"}, CARD, insists=False).torch == (
        "torch[device-gfx1100]==2.12.0"
    )
    build = replace(PLAN, requirements=("torch==2.12.0+cu130",))
    assert toolchain("x", BuildNeeds(torch=True), build, {}, CARD, insists=False).torch == "torch==2.12.0+cu130"


def test_builds_that_differ_in_anything_that_matters_have_keys_of_their_own() -> None:
    """Torch, its build, Python, nvcc and cards: a wheel for one is no wheel for the other."""
    needs = BuildNeeds(torch=True, nvcc="gpu")
    newer = Machine(gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="12.0"),))
    plans = (PLAN, replace(PLAN, variant="cu132"), replace(PLAN, python="3.13"), replace(PLAN, requirements=()))
    chains = [toolchain("x", needs, plan, {}, CARD, insists=False) for plan in plans[:3]]
    chains += [toolchain("x", needs, PLAN, {}, newer, insists=False)]
    chains += [toolchain("x", BuildNeeds(torch=True), PLAN, {}, CARD, insists=False)]
    assert len({chain.key for chain in chains}) == len(chains)


def with_gcc(**there: str) -> Host:
    """Give a Linux host with these compilers, by name ("g++-15" as "g++_15") and version."""
    names = {name.replace("gplusplus", "g++").replace("_", "-"): version for name, version in there.items()}
    asked = ["gcc", "g++", "clang", *(f"{kind}-{major}" for kind in ("gcc", "g++") for major in range(9, 17))]
    said = [Exchange(ask=("platform",), answer=Answer(text='{"system": "Linux"}'))]
    for name in asked:
        found = Answer(text=f"/usr/bin/{name}") if name in names else Answer(status="missing")
        said += [Exchange(ask=("which", name), answer=found)]
        said += [Exchange(ask=("run", name, *VERSION), answer=Answer(text=names.get(name, "")))]
    return ReplayHost(Recording(said=tuple(said)))


def test_the_compiler_is_checked_beforehand() -> None:
    """None at all and one that nvcc refuses are told with what to do; an older one beside it is taken."""
    chain = toolchain("flash-attn", FLASH, PLAN, {}, CARD, insists=False)
    debian = replace(CARD, os_version="Debian GNU/Linux 12")
    with pytest.raises(WorkFailed, match="this machine has none") as failure:
        check_compiler(chain, with_gcc(), debian)
    assert "sudo apt install build-essential" in str(failure.value.hint)
    with pytest.raises(WorkFailed, match=r"GCC 16\.1\.0 is too new for nvcc of CUDA 13\.0"):
        check_compiler(chain, with_gcc(gcc="16.1.0", gplusplus="16.1.0"), debian)
    both = with_gcc(gcc="16.1.0", gplusplus="16.1.0", gcc_14="14.2.0", gplusplus_14="14.2.0")
    assert check_compiler(chain, both, debian).cxx == "/usr/bin/g++-14"
    assert check_compiler(chain, with_gcc(gcc="12.2.0", gplusplus="12.2.0"), debian).cxx == "/usr/bin/g++"
    assert check_compiler(chain, ReplayHost(Recording()), None) == ("", "")


@pytest.mark.process
def test_nothing_is_downloaded_where_no_compiler_is(site: Site) -> None:
    """The tables say that the package is compiled, so the sentence comes before the first request for a file."""
    order = site.order(CARD, host=with_gcc(), backend=Backend.CUDA, variant="cu130", torch="2.12.0", requirements=())
    archive = Archive(filename="flash_attn-2.8.3.tar.gz", version="2.8.3", url=f"{site.bench.index.url}/x.tar.gz")
    site.bench.index.requests.clear()
    with pytest.raises(WorkFailed, match="Building flash-attn needs a C"):
        build_wheel("flash-attn", archive, order)
    assert site.bench.index.requests == []
