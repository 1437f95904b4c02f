"""Builds of extensions: beside the plan's torch, with nvcc of its CUDA, checked beforehand, kept for the next time."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
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
from assistant.install.build import BuildContext, build_wheel, built_before
from assistant.install.consent import resolved
from assistant.install.sources import Consent, Sources
from assistant.install.toolchain import check_compiler, choose_toolchain
from assistant.install.tools import Tools
from assistant.model.errors import WorkFailed
from assistant.model.machine import Answer, Exchange, Gpu, Machine, Recording, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace

CARD = Machine(os="linux", arch="x86_64", gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="8.9"),))
NO_CARD = Machine(os="linux", arch="x86_64")
MAC = Machine(os="macos", arch="arm64")
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

    def order(self, machine: Machine | None = NO_CARD, *, host: Host | None = None, **changes: object) -> BuildContext:
        """Order a build for a machine; `changes` are those of the plan."""
        sources = Sources(LiveHost(), index_url=self.bench.index.url, consent=Consent())
        tools = Tools(host or LiveHost(), sources, self.bench.events.append, self.bench.cancel, machine=machine)
        plan = replace(self.bench.plan, **changes)
        return BuildContext(plan=plan, keep={}, installer=self.bench.installer(), tools=tools)

    @property
    def seen(self) -> dict[str, object]:
        """What the set-up program saw."""
        return dict(json.loads(self.mark.read_text()))


@pytest.fixture
def site(bench: Bench, tmp_path: Path) -> Site:
    """Give the ground of a build."""
    return Site(bench, tmp_path)


class FullHost(LiveHost):
    """This machine with one byte free."""

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Answer as the machine does, but for its disk."""
        return Answer(text='{"free": 1}') if kind == "disk" else super().ask(kind, *arguments)


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
def test_room_is_needed_for_what_was_downloaded_before_too(site: Site) -> None:
    """The environment of the build unpacks it once more."""
    archive = site.archive(requires='"torch"')
    shutil.rmtree(build_wheel("needs-torch", archive, site.order()))
    site.mark.unlink()
    with pytest.raises(WorkFailed, match="MB free"):
        build_wheel("needs-torch", archive, site.order(host=FullHost()))
    assert not site.mark.exists()


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
    """A package that cannot be built beside the plan's torch is refused before anybody is asked; nothing of it runs."""
    site.bench.index.add_archive("flash-attn", "2.8.3", site.mark)
    order, heard = site.order(requirements=("torch==9.0", "flash-attn")), list[Message]()
    tools = dataclasses.replace(order.tools, ask=lambda question: bool(heard.append(question)))
    with pytest.raises(WorkFailed, match="Building flash-attn needs nvcc, and this plan's PyTorch is not for CUDA"):
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
    with pytest.raises(WorkFailed, match=r"needs-torch needs does not go together with torch==9\.0: .*elsewhere"):
        build_wheel("needs-torch", archive, site.order())
    assert not site.mark.exists()


PLAN = Plan(backend=Backend.CUDA, variant="cu130", torch="2.12.0", python="3.12", requirements=("torch==2.12.0",))
FLASH = BuildNeeds(torch=True, nvcc="always", torch_below="2.14")


@pytest.mark.parametrize(
    ("plan", "machine", "sentence"),
    [
        (
            replace(PLAN, backend=Backend.CPU, variant="cpu"),
            CARD,
            "needs nvcc, and this plan's PyTorch is not for CUDA",
        ),
        (replace(PLAN, backend=Backend.ROCM, variant="rocm7.2"), CARD, "this plan's PyTorch is not for CUDA"),
        (replace(PLAN, backend=Backend.MPS, variant="pypi"), MAC, "this plan's PyTorch is not for CUDA"),
        (PLAN, NO_CARD, "none was found on this machine"),
        (
            replace(PLAN, variant="cu128"),
            CARD,
            "needs nvcc of CUDA 12.8, and PyPI has no complete nvcc of that version",
        ),
        (replace(PLAN, torch="2.14.1", requirements=("torch==2.14.1",)), CARD, "cannot be built for PyTorch 2.14.1"),
        (replace(PLAN, variant="pypi"), None, "which is not known here"),
        (replace(PLAN, variant="pypi", torch="2.13.9", requirements=()), CARD, "which is not known here"),
        (replace(PLAN, variant="nv25.10"), CARD, "which is not known here"),
    ],
)
def test_a_build_that_could_not_work_is_refused(plan: Plan, machine: Machine | None, sentence: str) -> None:
    """Before anything is downloaded, in a sentence that says what it lacks."""
    with pytest.raises(WorkFailed, match=sentence):
        choose_toolchain("flash-attn", FLASH, plan, {}, machine, insists=False)


def test_only_builds_of_torch_that_there_are_are_proposed() -> None:
    """CUDA 13.1 has its nvcc on PyPI, and torch no build for it."""
    with pytest.raises(WorkFailed) as failure:
        choose_toolchain("flash-attn", FLASH, replace(PLAN, variant="cu128"), {}, CARD, insists=False)
    assert "13.0, 13.2." in str(failure.value.hint)


def test_the_user_may_insist_on_a_build_for_a_card_elsewhere() -> None:
    """Naming the package beforehand is to insist; a machine of which nothing is known is not one without a card."""
    assert choose_toolchain("flash-attn", FLASH, PLAN, {}, NO_CARD, insists=True).cuda == "13.0"
    assert choose_toolchain("flash-attn", FLASH, PLAN, {}, None, insists=False).cuda == "13.0"
    unclear = Machine(gpus=(Gpu(vendor=Vendor.NVIDIA),))
    assert choose_toolchain("flash-attn", FLASH, PLAN, {}, unclear, insists=False).cards == ()
    two = replace(CARD, gpus=(*CARD.gpus, *unclear.gpus))
    assert choose_toolchain("flash-attn", FLASH, PLAN, {}, two, insists=False).cards == ()


def test_pypis_own_build_has_the_cuda_of_its_release() -> None:
    """The tag says nothing there, the catalogue does."""
    plan = replace(PLAN, variant="pypi")
    assert choose_toolchain("x", BuildNeeds(torch=True, nvcc="gpu"), plan, {}, CARD, insists=False).cuda == "13.0"
    assert choose_toolchain("x", BuildNeeds(torch=True), plan, {}, CARD, insists=False).cuda == ""


def test_in_an_environment_that_stands_its_own_torch_counts() -> None:
    """A change to an environment has no plan of its own; the torch that stays there tells what to build beside."""
    plan = replace(PLAN, backend=Backend.CPU, variant="", torch="", requirements=("needs-torch",))
    toolchain = choose_toolchain("needs-torch", FLASH, plan, {"torch": "2.12.0+cu130"}, CARD, insists=False)
    assert (toolchain.torch, toolchain.cuda, toolchain.cards) == ("torch==2.12.0+cu130", "13.0", ("8.9",))
    assert str(toolchain.plan.index_url).endswith("/cu130")
    own = replace(plan, index_url="https://mirror.example/whl/cu130")
    again = choose_toolchain("needs-torch", FLASH, own, {"torch": "2.12.0+cu130"}, CARD, insists=False)
    assert again.plan.index_url == own.index_url


def test_it_is_the_plans_very_release_that_a_build_is_for() -> None:
    """What else the user asks of torch is met by the plan; extras, by which AMD's index splits torch, go along."""
    plan = replace(PLAN, requirements=("torch[device-gfx1100]>=2.8", "numpy"))
    assert choose_toolchain("x", BuildNeeds(torch=True), plan, {"torch": "2.9.0"}, CARD, insists=False).torch == (
        "torch[device-gfx1100]==2.12.0"
    )
    build = replace(PLAN, requirements=("torch==2.12.0+cu130",))
    assert choose_toolchain("x", BuildNeeds(torch=True), build, {}, CARD, insists=False).torch == "torch==2.12.0+cu130"


def test_builds_that_differ_in_anything_that_matters_have_keys_of_their_own(site: Site) -> None:
    """Torch, its build, Python, cards, system and processor: a wheel for one is no wheel for the other."""
    newer = Machine(gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="12.0"),))
    changes: tuple[dict[str, object], ...] = ({}, {"variant": "cu132"}, {"python": "3.1"}, {"torch": "2.12.1"})
    contexts = [site.order(CARD, **{"requirements": (), **one}) for one in changes]
    contexts += [site.order(newer, requirements=()), site.order(CARD, host=with_gcc(), requirements=())]
    assert len({context.key for context in contexts}) == len(contexts)


def test_a_kept_wheel_of_another_name_is_no_stand_in(site: Site, tmp_path: Path) -> None:
    """flash-attn-3 is not flash-attn, and 1.10 is newer than 1.9."""
    context, folder = site.order(), tmp_path / "XDG_CACHE_HOME"
    base = build_wheel("needs-torch", site.archive(requires='"torch"'), context).parent
    assert base.is_relative_to(folder)
    for name, version in (("one", "1.9"), ("one", "1.10"), ("one-3", "3.0.0")):
        kept = base / f"{name}-{version}-{'0' * 20}-{context.key}"
        kept.mkdir()
        (kept / f"{name.replace('-', '_')}-{version}-py3-none-any.whl").touch()
    found = built_before(Requirement("one"), context)
    assert found
    assert [wheel.name for wheel in found.iterdir()] == ["one-1.10-py3-none-any.whl"]


@pytest.mark.process
def test_a_kept_wheel_is_no_question(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of its author runs, so an installation without the option goes on."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", site.bench.index.url)
    build_wheel("needs-torch", site.archive(requires='"torch"'), site.order())
    site.mark.unlink()
    context, heard = site.order(requirements=("torch==9.0", "needs-torch")), list[Message]()
    tools = dataclasses.replace(context.tools, ask=lambda question: bool(heard.append(question)))
    found = {one.name for one in resolved(context.plan, context.installer, tools).packages}
    assert ("needs-torch" in found, heard, site.mark.exists()) == (True, [], False)


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
    toolchain = choose_toolchain("flash-attn", FLASH, PLAN, {}, CARD, insists=False)
    debian = replace(CARD, os_version="Debian GNU/Linux 12")
    with pytest.raises(WorkFailed, match=r"needs g\+\+, and this machine has none") as failure:
        check_compiler(toolchain, with_gcc(clang="14.0.6"), debian)
    assert "sudo apt install build-essential" in str(failure.value.hint)
    with pytest.raises(WorkFailed, match=r"nvcc of CUDA 13\.0, and GCC 16\.1\.0 is too new"):
        check_compiler(toolchain, with_gcc(gcc="16.1.0", gplusplus="16.1.0"), debian)
    both = with_gcc(gcc="16.1.0", gplusplus="16.1.0", gcc_14="14.2.0", gplusplus_14="14.2.0")
    assert check_compiler(toolchain, both, debian).cxx == "/usr/bin/g++-14"
    assert check_compiler(toolchain, with_gcc(gcc="12.2.0", gplusplus="12.2.0"), debian).cxx == "/usr/bin/g++"
    assert check_compiler(toolchain, ReplayHost(Recording()), None) == ("", "")


@pytest.mark.parametrize(("torch", "oldest"), [("2.12.0", 9), ("2.14.1", 11)])
def test_a_compiler_that_the_headers_of_torch_refuse_is_told(torch: str, oldest: int) -> None:
    """With nvcc or without; a newer one beside it is taken, one that does not tell its version is left to the build."""
    plan = replace(PLAN, torch=torch, requirements=())
    for needs in (BuildNeeds(torch=True), BuildNeeds(torch=True, nvcc="gpu")):
        toolchain, old = choose_toolchain("x", needs, plan, {}, CARD, insists=False), f"{oldest - 1}.5.0"
        with pytest.raises(WorkFailed, match=rf"x is built for torch=={torch}, and GCC {old} is too old") as failure:
            check_compiler(toolchain, with_gcc(gcc=old, gplusplus=old), CARD)
        assert f"g++-{oldest}" in str(failure.value.hint)
        newer = with_gcc(gcc=old, gplusplus=old, gcc_13="13.2.0", gplusplus_13="13.2.0")
        assert check_compiler(toolchain, newer, CARD).cxx == "/usr/bin/g++-13"
        assert check_compiler(toolchain, with_gcc(gcc="", gplusplus=""), CARD).cxx == "/usr/bin/g++"


@pytest.mark.process
def test_nothing_is_downloaded_where_no_compiler_is(site: Site) -> None:
    """The tables say that the package is compiled, so the sentence comes before the first request for a file."""
    order = site.order(CARD, host=with_gcc(), backend=Backend.CUDA, variant="cu130", torch="2.12.0", requirements=())
    archive = Archive(filename="flash_attn-2.8.3.tar.gz", version="2.8.3", url=f"{site.bench.index.url}/x.tar.gz")
    site.bench.index.requests.clear()
    with pytest.raises(WorkFailed, match=r"Building flash-attn needs g\+\+"):
        build_wheel("flash-attn", archive, order)
    assert site.bench.index.requests == []
