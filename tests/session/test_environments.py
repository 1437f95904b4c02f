"""The environments of a machine: listed by their files alone, mended by a session and undone, on real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import forked
import pytest
from install.broken import KEYS, BrokenEnvironment
from loopback import LoopbackIndex
from runners import InlineRunner

from assistant.host.live import LiveHost
from assistant.install import ChangeRequest, Site, Sources
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Answer, Detection, Gpu, Machine, Vendor
from assistant.model.plan import Backend
from assistant.session.actions import LookIn, Pick, Show
from assistant.session.environments import is_mendable, mending_change, survey_environments
from assistant.session.session import Session
from assistant.session.state import Detected, EnvironmentSummary, Light, Page, Phase, State, Task

pytestmark = pytest.mark.full

HERE = Machine(os="linux", arch="x86_64", wsl=False, python="3.11.2")
NVIDIA = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9")


class Watched(LiveHost):
    """The machine at hand, which notes what was started on it."""

    def __init__(self) -> None:
        self.started: list[tuple[str, ...]] = []

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Note a command, and answer as ever."""
        if kind == "run":
            self.started.append(arguments)
        return super().ask(kind, *arguments)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder of the test's own, with nothing in it, and work in a project there."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "CONDA", "MAMBA"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "own" / name))
    monkeypatch.setenv("JUPYTER_PATH", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")
    return home


def pretend(
    folder: Path, *packages: str, torch: str = "", settings: str = "home = /usr/bin\nversion = 3.11.2\n"
) -> Path:
    """Write the files by which an environment is known, and a Python that would betray that it was started."""
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    if settings:
        (folder / "pyvenv.cfg").write_text(settings)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text(f"#!/bin/sh\ntouch {folder}/started\n")
    (folder / "bin" / "python").chmod(0o755)
    for package in packages:
        name, _, version = package.partition("==")
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nRequires-Dist: lies\n"
        )
    if torch:
        (site / "torch").mkdir()
        (site / "torch" / "version.py").write_text(torch)
    return folder


def found(machine: Machine = HERE, *folders: Path) -> dict[str, EnvironmentSummary]:
    """Return what a survey finds, by the paths below the home folder."""
    seen = survey_environments(LiveHost(), machine, map(str, folders)).environments
    return {os.path.relpath(one.path, Path.home()): one for one in seen if str(one.path).startswith(str(Path.home()))}


def test_environments_are_found_where_people_have_them(home: Path) -> None:
    """Those of tools, of conda, of applications and beside the notebook; each by a name that says what it is."""
    pretend(home / ".virtualenvs" / "thesis")
    pretend(home / "course" / ".venv")
    pretend(home / "project" / "deep" / "down" / "env")
    conda = pretend(home / "miniconda3", settings="")
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta" / "python-3.12.4-h99e199e_1.json").write_text("{}")
    elsewhere = pretend(home / "disk" / "of" / "mine" / "science", settings="")
    (elsewhere / "conda-meta").mkdir()
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{elsewhere}\n/nowhere\n")
    pretend(home / "models" / "Packages" / "webui" / "venv")
    (home / ".config" / "StabilityMatrix").mkdir(parents=True)
    (home / ".config" / "StabilityMatrix" / "library.json").write_text(f'{{"LibraryPath": "{home}/models"}}')
    pretend(home / "ComfyUI" / "venv")
    uv = home / "project" / "app"
    pretend(uv / ".venv")
    (uv / "pyproject.toml").write_text("[tool.uv]\n")
    seen = found()
    told = {path: (one.name, one.kind, one.of, one.python) for path, one in seen.items()}
    assert told == {
        ".virtualenvs/thesis": ("thesis", "venv", "virtualenv", "3.11.2"),
        "course/.venv": ("course", "venv", "", "3.11.2"),
        "project/deep/down/env": ("down", "venv", "", "3.11.2"),
        "project/app/.venv": ("app", "project", "uv", "3.11.2"),
        "miniconda3": ("miniconda3", "conda", "conda", "3.12.4"),
        "disk/of/mine/science": ("science", "conda", "conda", "3.11"),
        "models/Packages/webui/venv": ("webui", "application", "Stability Matrix", "3.11.2"),
        "ComfyUI/venv": ("ComfyUI", "application", "ComfyUI", "3.11.2"),
    }
    assert not list(home.rglob("started"))


def test_links_are_not_followed_and_bounds_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A circle of links, a link out of the home folder, and more folders than anybody has time for."""
    outside = pretend(home.parent / "outside" / "env")
    (home / "project" / "round").symlink_to(home)
    (home / "project" / "out").symlink_to(outside.parent)
    pretend(home / "project" / "mine")
    assert list(found()) == ["project/mine"]
    for number in range(60):
        (home / "project" / f"a{number}" / "b").mkdir(parents=True)
    monkeypatch.setattr("assistant.install.environment_folder.MOST_FOLDERS", 50)
    short = survey_environments(LiveHost(), HERE)
    assert short.cut_short
    assert len(short.environments) <= 1


def test_a_folder_of_the_users_choice_is_searched_as_well(home: Path) -> None:
    """What lies elsewhere is found once it is named, and stays in the list."""
    other = home.parent / "another disk"
    pretend(other / "models" / "venv")
    assert found() == {}
    seen = survey_environments(LiveHost(), HERE, [str(other)])
    assert [(one.name, one.path) for one in seen.environments] == [("models", str(other / "models" / "venv"))]
    assert seen.folders == (str(other),)


def test_a_folder_that_is_none_is_named_and_forgotten(home: Path) -> None:
    """A slip of the pen, or a path that starts nowhere: a sentence, and the next search is as before."""
    pretend(home / "project" / "env")
    session = Session(LiveHost(), InlineRunner(), None, State(detected=Detected(detection=Detection(machine=HERE))))
    for folder in (str(home / "nowhere"), "some/where", "~nobody-of-this-name/envs"):
        session.dispatch(LookIn(folder=folder))
        session.begin(Task.SURVEY)
        survey = session.state.environments.survey
        assert [folder in str(note.text) for note in survey.notes] == [True]
        assert survey.folders == ()
        assert len(survey.environments) >= 1
    session.begin(Task.SURVEY)
    assert session.state.environments.survey.notes == ()


@pytest.mark.parametrize(
    ("packages", "machine", "light", "key", "mends"),
    [
        (["torch==2.13.0+cpu", "numpy==2.3.0"], HERE, Light.GOOD, "", False),
        (["torch==2.2.2", "numpy==2.1.0"], HERE, Light.BAD, "numpy2-abi", True),
        (["onnxruntime==1.20", "onnxruntime-gpu==1.20"], HERE, Light.WARNING, "onnxruntime-packages-conflict", True),
        (["torch-directml==0.2.5"], HERE, Light.WARNING, "directml-on-native-linux", True),
        (
            ["torch==2.13.0+cpu"],
            Machine(os="linux", arch="x86_64", wsl=False, gpus=(NVIDIA,), nvidia_driver="580.95.05"),
            Light.WARNING,
            "torch-cpu-build-installed",
            True,
        ),
        ([], HERE, Light.GOOD, "", False),
    ],
)
def test_a_light_is_what_the_findings_say(
    home: Path, packages: list[str], machine: Machine, light: Light, key: str, *, mends: bool
) -> None:
    """The same judge as everywhere else, asked about what the files say."""
    pretend(home / "project" / "env", *packages)
    (one,) = found(machine).values()
    assert (one.light, is_mendable(one)) == (light, mends)
    assert [finding.key for finding in one.findings] == [key] * bool(key)


def test_what_torch_was_built_for_is_read_off_its_own_file(home: Path) -> None:
    """PyPI's wheel for CUDA has a version like any other."""
    pretend(home / "project" / "a", "torch==2.9.0", torch="cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n")
    pretend(home / "project" / "b", "torch==2.9.0", torch="cuda: Optional[str] = None\nhip: Optional[str] = '6.4'\n")
    pretend(home / "project" / "c", "torch==2.9.0+cpu", torch="cuda: str | None = None\nhip: str | None = None\n")
    pretend(home / "project" / "d", "torch==2.9.0")
    assert [one.backend for one in found().values()] == [Backend.CUDA, Backend.ROCM, Backend.CPU, None]


def test_an_environment_whose_python_is_gone_says_so(home: Path) -> None:
    """As after an update of the system's Python."""
    env = pretend(home / "project" / "env", "torch==2.2.2", "numpy==2.1.0")
    (env / "bin" / "python").unlink()
    (env / "bin" / "python").symlink_to("/usr/bin/python3.7-that-went")
    (one,) = found().values()
    assert [finding.key for finding in one.findings] == ["environment-without-python"]
    assert not is_mendable(one)


class Closed(LiveHost):
    """A machine on which nobody may look below a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Refuse to look there."""
        refused = kind != "run" and any(Path(one).is_relative_to(self.place) for one in arguments)
        return Answer(status="denied") if refused else super().ask(kind, *arguments)


@pytest.mark.parametrize("place", ["lib", "lib/python3.11/site-packages"])
def test_an_environment_that_may_not_be_read_is_not_called_good(home: Path, place: str) -> None:
    """Could not look is not looked and found nothing wrong."""
    target = pretend(home / "project" / "env", "numpy==2.1.0")
    (seen,) = survey_environments(Closed(target / place), HERE).environments
    assert (seen.path, seen.light) == (str(target), Light.UNKNOWN)


def test_hostile_files_end_no_survey(home: Path) -> None:
    """Broken, binary and endless texts: the environment is listed, and so are the others."""
    env = pretend(home / "project" / "bad", "numpy==2.1.0", settings="\0\xff = \n= = =\nversion = ../..\n")
    site = env / "lib" / "python3.11" / "site-packages"
    for number, text in enumerate(
        ("", "Name: \nVersion: x\n", "Name: a\nVersion: b\nRequires-Dist: ((((\n", "\0" * 4096)
    ):
        info = site / f"x{number}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(text)
    (site / "pipe-1.dist-info").mkdir()
    os.mkfifo(site / "pipe-1.dist-info" / "METADATA")
    pretend(home / "project" / "good", "numpy==2.1.0")
    assert [(one.name, one.unread) for one in found().values()] == [("bad", False), ("good", False)]


class Broken(BrokenEnvironment):
    """A broken environment with a session that can mend it."""

    def __init__(self, index: LoopbackIndex, target: Path) -> None:
        super().__init__(index, target)
        self.host = Watched()
        sources = Sources(self.host, index_url=index.url)
        state = State(detected=Detected(detection=Detection(machine=HERE)))
        self.session = Session(self.host, InlineRunner(), None, state, sources=sources)

    def run(self, *tasks: Task) -> State:
        """Run tasks in order, each of which must end well."""
        for task in tasks:
            self.session.begin(task)
            assert self.session.state.environments.status.phase is Phase.DONE, self.session.state.environments.status
        return self.session.state

    @property
    def known(self) -> EnvironmentSummary:
        """What the list says of it now."""
        return self.session.state.environments.survey.summary_at(str(self.target))


@pytest.fixture
def broken(home: Path, loopback_index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch) -> Broken:
    """Give such an environment in the project of the home folder."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    return Broken(loopback_index, home / "project" / "broken")


def versions_of(broken: Broken) -> dict[str, str]:
    """Ask the environment's own Python what it holds."""
    return Site.ask(broken.target, LiveHost()).versions


@pytest.mark.process
def test_a_broken_environment_is_mended_and_undone(broken: Broken) -> None:
    """A second torch, two ONNX Runtimes, NumPy 2 with a torch for NumPy 1: shown, mended, proved, taken back."""
    before = broken.picture()
    state = broken.run(Task.SURVEY)
    assert broken.known.light is Light.BAD
    assert sorted(one.key for one in broken.known.findings) == KEYS
    assert broken.host.started == []
    broken.session.dispatch(Pick(path=str(broken.target)))
    state = broken.run(Task.COMPARE)
    assert {move.name: (move.before, move.after) for move in state.environments.repair.difference.moves} == {
        "numpy": ("2.1.0", "1.26.4"),
        "onnxruntime": ("1.20", "1.20"),
        "onnxruntime-gpu": ("1.20", ""),
        "torch": (broken.known.torch, "2.2.2"),
        "typing-extensions": ("4.5.0", "4.16.0"),
    }
    assert sorted(one.key for one in state.environments.repair.mends) == KEYS
    assert state.environments.repair.remains == ()
    assert broken.picture() == before
    broken.run(Task.REPAIR)
    assert (broken.known.light, broken.known.findings) == (Light.GOOD, ())
    assert broken.picture() != before
    broken.run(Task.UNDO)
    found = {one.key for one in broken.known.findings}
    assert found == {*KEYS} - {"package-installed-twice"}  # it is in no list of versions: the old one alone is back
    assert broken.known.torch == "2.1.0"
    assert {move.name for move in broken.known.undo.moves} >= {"numpy", "typing-extensions"}  # undoing can be undone


def test_constraints_that_are_deleted_meanwhile_are_no_failure_of_a_repair(home: Path) -> None:
    """The file itself says how to be rid of it, and somebody may do so while a repair is worked out."""
    site = Site.read(pretend(home / "project" / "env", "torch==2.13.0"), LiveHost())
    replaced = Finding(key="build-replaced", severity=Severity.ERROR, text="torch was replaced")
    assert mending_change(site, [replaced], HERE) == ChangeRequest()


@pytest.mark.process
def test_what_a_check_has_found_counts_as_long_as_nothing_is_installed(broken: Broken) -> None:
    """Looking again keeps it; once somebody has mended the environment by hand, what was true before is not said."""
    broken.session.dispatch(Pick(path=str(broken.target)))
    broken.run(Task.SURVEY, Task.CHECK)
    checked = broken.known
    assert "numpy2-abi" in {one.key for one in checked.findings}
    broken.run(Task.SURVEY)
    assert broken.known == checked
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--python", broken.target / "bin" / "python"]
    subprocess.run([*uv, "numpy==1.26.4"], check=True)
    broken.run(Task.SURVEY)
    assert broken.known.checked == ""
    assert "numpy2-abi" not in {one.key for one in broken.known.findings}


@pytest.mark.process
def test_what_does_not_import_does_not_count(broken: Broken, loopback_index: LoopbackIndex) -> None:
    """A change whose result cannot be imported is rolled back, and the reason is told."""
    (loopback_index.folder / "numpy" / "numpy-1.26.4-py3-none-any.whl").unlink()
    wheel = loopback_index.add("numpy", "1.26.0")
    spoil(wheel, "numpy/__init__.py", b"raise ImportError('no BLAS here')\n")
    broken.session.dispatch(Pick(path=str(broken.target)))
    broken.run(Task.SURVEY, Task.COMPARE)
    before = versions_of(broken)
    broken.session.begin(Task.REPAIR)
    status = broken.session.state.environments.status
    assert status.phase is Phase.FAILED
    assert "numpy cannot be imported: ImportError: no BLAS here" in str(status.message)
    assert versions_of(broken) == before


@pytest.mark.process
def test_the_assistants_own_environment_is_left_alone(home: Path) -> None:
    """It is listed as what it is, and never offered for mending."""
    own = home / "project" / ".assistant" / "python3.11-1"
    subprocess.run(
        [sys.executable, "-m", "uv", "venv", "-q", "--no-project", "--python", sys.executable, own], check=True
    )
    session = Session(LiveHost(), InlineRunner(), None, State(detected=Detected(detection=Detection(machine=HERE))))
    session.dispatch(LookIn(folder=str(own.parent)))
    session.dispatch(Pick(path=str(own)))
    session.begin(Task.SURVEY)
    known = session.state.environments.survey.summary_at(str(own))
    assert (known.own, known.light, is_mendable(known)) == (True, Light.GOOD, False)
    session.begin(Task.COMPARE)
    assert session.state.environments.status.phase is Phase.FAILED
    assert "own environment" in str(session.state.environments.status.message)


@pytest.mark.process
def test_the_page_looks_by_itself_and_never_over_a_setup(home: Path) -> None:
    """Whoever opens the page finds a list; the steps of the setup stand as they did."""
    pretend(home / "project" / "env", "numpy==2.1.0")
    session = Session(LiveHost(), InlineRunner(), None, State(), guided=True, sources=Sources(LiveHost(), offline=True))
    session.dispatch(Show(page=Page.ENVIRONMENTS))
    assert [one.name for one in session.state.environments.survey.environments if str(home) in one.path] == ["project"]
    assert session.state.page is Page.ENVIRONMENTS
    assert session.state.environments.status.phase is Phase.DONE


@pytest.mark.process
def test_the_command_shows_asks_mends_and_undoes(broken: Broken, loopback_index: LoopbackIndex) -> None:
    """Nothing happens without a yes; with it all is done that the page does, in words and as JSON."""
    before, path = broken.picture(), str(broken.target)
    source = ("--index-url", loopback_index.url)
    listed = json.loads(forked.run("envs", "--all", "--json").stdout)["environments"]
    assert [one["name"] for one in listed if one["path"] == path] == ["broken"]
    shown = forked.run("envs", "--mend", path, *source)
    assert shown.returncode == 130
    assert "numpy 2.1.0 → 1.26.4" in shown.stdout
    assert "would be mended: Several versions of torch are installed over one another" in shown.stdout
    told = json.loads(forked.run("envs", "--mend", path, "--json", *source).stdout)
    assert {move["name"] for move in told["moves"]} >= {"numpy", "torch", "onnxruntime-gpu"}
    assert broken.picture() == before
    done = json.loads(forked.run("envs", "--mend", path, "--yes", "--json", *source).stdout)
    assert done["environment"].get("findings", []) == []
    assert broken.picture() != before
    checked = json.loads(forked.run("envs", "--check", path, "--json").stdout)["environment"]
    assert checked["size"] > 0
    assert {one["key"].partition(".")[0] for one in checked["findings"]} == {"verify"}  # its torch computes nothing
    undone = forked.run("envs", "--undo", path)
    assert undone.returncode == 0, undone.stderr
    assert "NumPy 2.1.0 is installed" in undone.stdout
    assert forked.run("envs", "--forget", path).returncode == 0
    refused = forked.run("envs", "--undo", path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def spoil(wheel: Path, name: str, content: bytes) -> None:
    """Put another content into a wheel."""
    with zipfile.ZipFile(wheel) as old:
        held = {entry: old.read(entry) for entry in old.namelist()}
    with zipfile.ZipFile(wheel, "w") as new:
        for entry, old_content in {**held, name: content}.items():
            new.writestr(entry, old_content)
