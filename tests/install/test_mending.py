"""Environments that are broken as users break them, mended and undone by the real uv, file for file."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from install.broken import named
from install.faults import picture
from loopback import LoopbackIndex

from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import ChangeRequest, EnvironmentFolder, Sources, Tools
from assistant.install.conflicts import find_conflicts
from assistant.install.in_place import plan_for_resolving
from assistant.install.installation import Difference
from assistant.install.site import Site, interpreter, write_marker
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace
from assistant.model.report import Environment, Event

pytestmark = [pytest.mark.process, pytest.mark.full]

HOST = LiveHost()


class Patient:
    """An environment that is to be mended, and an index with everything that it may need."""

    def __init__(self, index: LoopbackIndex, folder: Path) -> None:
        self.index, self.target = index, folder / "an environment"
        self.events: list[Event] = []
        self.uv = [sys.executable, "-m", "uv"]
        subprocess.run([*self.uv, "venv", "-q", "--no-project", "--python", sys.executable, self.target], check=True)

    def install(self, *wheels: Path) -> None:
        """Install wheels one after the other, as pip does from an index, whatever they require or overwrite."""
        for wheel in wheels:
            self.pip("--no-deps", "--no-index", *named([wheel]))

    def pip(self, *words: str | Path) -> None:
        """Install by uv's pip."""
        python = self.target / "bin" / "python"
        environment = {**os.environ, "UV_LINK_MODE": "copy"}
        subprocess.run([*self.uv, "pip", "install", "-q", "--python", python, *words], check=True, env=environment)

    @property
    def tools(self) -> Tools:
        """Take all packages from the index on loopback."""
        return Tools(HOST, Sources(HOST, index_url=self.index.url), self.events.append, CancelToken())

    def difference(self, wanted: ChangeRequest) -> Difference:
        """Work out what a change would do."""
        return wanted.resolve_change(Site.ask(self.target, HOST), self.tools)

    def change(self, wanted: ChangeRequest, prove: Callable[..., None] = lambda _made, _lock: None) -> Environment:
        """Change it."""
        with self.difference(wanted).apply(self.tools) as built:
            prove(built.now, built.lock)
        return built.environment

    @property
    def versions(self) -> dict[str, str]:
        """The packages that its own Python sees."""
        return Site.ask(self.target, HOST).versions

    @property
    def problems(self) -> dict[str, str]:
        """What does not go together in it; whose `pip` is on this test's PATH is no matter."""
        found = find_conflicts(replace(Site.ask(self.target, HOST), pip="", pip_script=""), {})
        return {one.key: str(one.text) for one in found}

    def picture(self) -> dict[str, tuple[object, ...]]:
        """Describe every file but what Python compiled."""
        seen = picture(self.target).items()
        return {name: told for name, told in seen if "__pycache__" not in name}


@pytest.fixture
def patient(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """Give an environment of its own; all state, caches and settings lie in folders of the test's own."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    return Patient(loopback_index, tmp_path)


def moves(difference: Difference) -> list[tuple[str, str, str]]:
    """Name what moves."""
    return [(move.name, move.before, move.after) for move in difference.moves]


def test_a_package_steps_back_and_comes_again(patient: Patient) -> None:
    """What requires it is kept, nothing else moves, and undoing brings back every file."""
    add = patient.index.add
    add("numpy", "1.26.4")
    patient.install(add("torch", "2.2.2", requires=("numpy",)), add("numpy", "2.1.0"), add("extra", "1.0"))
    before, packages = patient.picture(), patient.versions
    difference = patient.difference(ChangeRequest(requires=("numpy<2",)))
    assert moves(difference) == [("numpy", "2.1.0", "1.26.4")]
    assert difference.download > 0
    assert patient.picture() == before
    patient.change(ChangeRequest(requires=("numpy<2",)))
    assert patient.versions == {**packages, "numpy": "1.26.4"}
    assert EnvironmentFolder(patient.target).last_change.moves == difference.moves
    EnvironmentFolder(patient.target).undo_last_change(patient.tools)
    assert patient.versions == packages
    assert EnvironmentFolder(patient.target).last_change.moves == tuple(
        replace(move, before=move.after, after=move.before) for move in difference.moves
    )


def test_one_of_ours_is_mended_aside_and_undone_file_for_file(patient: Patient) -> None:
    """It is built anew beside the old one; one that is refused leaves no trace."""
    add = patient.index.add
    add("numpy", "1.26.4")
    patient.install(add("torch", "2.2.2", requires=("numpy",)), add("numpy", "2.1.0"), add("extra", "1.0"))
    made = Environment(path=str(patient.target), python=str(interpreter(patient.target)), packages=patient.versions)
    write_marker(patient.target, plan_for_resolving(Site.ask(patient.target, HOST), ("torch",), None), made)
    before, packages = patient.picture(), patient.versions
    with pytest.raises(ZeroDivisionError):
        patient.change(ChangeRequest(requires=("numpy<2",)), lambda _made, _lock: 1 / 0)
    assert patient.picture() == before
    difference = patient.difference(ChangeRequest(requires=("numpy<2",)))
    patient.change(ChangeRequest(requires=("numpy<2",)))
    assert (
        patient.versions
        == {**packages, "numpy": "1.26.4"}
        == EnvironmentFolder(patient.target).marker.environment.packages
    )
    assert EnvironmentFolder(patient.target).last_change.moves == difference.moves
    EnvironmentFolder(patient.target).undo_last_change(patient.tools)
    assert patient.picture() == before


def test_of_two_that_share_files_one_stays_whole(patient: Patient) -> None:
    """The second flavour goes with all of its files, those of the one that stays come again, a third's are left."""
    add = patient.index.add
    first, second = add("onnxruntime", "1.20"), add("onnxruntime-gpu", "1.20")
    for wheel, module in ((first, "capi.py"), (second, "capi.py"), (second, "cuda.py")):
        with_module(wheel, f"onnxruntime/{module}", f"of = {wheel.name!r}\n")
    patient.install(first, second)
    patient.change(ChangeRequest(removes=("onnxruntime-gpu",), reinstalls=("onnxruntime",)))
    assert patient.versions == {"onnxruntime": "1.20"}
    assert complete(patient.target) == []
    site = next(patient.target.glob("lib/*/site-packages"))
    assert "onnxruntime-1.20" in (site / "onnxruntime" / "capi.py").read_text()
    assert not (site / "onnxruntime" / "cuda.py").exists()


def test_a_second_version_of_one_package_goes(patient: Patient) -> None:
    """Two lists of files for one name become one, and the files are those of its version."""
    add = patient.index.add
    old, new = add("torch", "2.4.1"), add("torch", "2.13.0")
    with_module(old, "torch/only_old.py", "x = 1\n")
    patient.install(old)
    info = next(patient.target.glob("lib/*/site-packages/torch-2.4.1.dist-info"))
    info.rename(info.with_name("kept"))
    patient.install(new)
    info.with_name("kept").rename(info)
    found = Site.ask(patient.target, HOST)
    assert sorted(one.version for one in found.own) == ["2.13.0", "2.4.1"]
    assert list(patient.problems) == ["package-installed-twice"]
    patient.change(ChangeRequest(requires=("torch==2.13.0",), reinstalls=("torch",)))
    assert [one.version for one in Site.ask(patient.target, HOST).own] == ["2.13.0"]
    assert patient.problems == {}
    assert not info.exists()
    assert not list(patient.target.glob("lib/**/only_old.py"))


def test_what_is_required_is_mended_along_the_way(patient: Patient) -> None:
    """A package that is too old for another comes up, and what has its own opinion of it is asked, too."""
    add = patient.index.add
    add("typing-extensions", "4.16.0"), add("typing-extensions", "5.0")
    patient.install(
        add("torch", "2.13.0", requires=("typing-extensions>=4.10",)),
        add("careful", "1.0", requires=("typing-extensions<5",)),
        add("typing-extensions", "4.5.0"),
    )
    (broken,) = patient.problems.values()
    assert broken == "torch 2.13.0 requires typing-extensions>=4.10, and typing-extensions 4.5.0 is installed."
    assert moves(patient.difference(ChangeRequest())) == [("typing-extensions", "4.5.0", "4.16.0")]


BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    files = {{
        "{name}.pth": __file__.rpartition("/")[0],
        "{name}-0.1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: 0.1\\n"
        "Requires-Dist: numpy>=2\\n",
        "{name}-0.1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    with zipfile.ZipFile(folder + "/{name}-0.1-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr("{name}-0.1.dist-info/RECORD", "".join(path + ",,\\n" for path in files))
    return "{name}-0.1-py3-none-any.whl"
"""


def project(folder: Path, name: str) -> Path:
    """Write a project that needs NumPy 2 and can be installed where it lies."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "0.1"\ndependencies = ["numpy>=2"]\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "backend.py").write_text(BACKEND.format(name=name))
    return folder


@pytest.mark.parametrize("how", ["folder", "file"])
def test_nothing_from_an_index_replaces_what_is_the_users_own(patient: Patient, tmp_path: Path, how: str) -> None:
    """A project that stands in the way keeps its place, though a stranger's package has its name and is newer."""
    add = patient.index.add
    add("numpy", "1.26.4")
    patient.install(add("torch", "2.2.2", requires=("numpy",)), add("numpy", "2.1.0"))
    if how == "folder":
        patient.pip("--no-deps", "--no-index", "-e", project(tmp_path / "tools of mine", "mytools"))
    else:
        patient.pip("--no-deps", "--no-index", add("mytools", "0.1", requires=("numpy>=2",)))
    assert patient.versions["mytools"] == "0.1"
    patient.install(add("needs", "1.0", requires=("mytools>=2",)))
    add("mytools", "99.0")
    assert moves(patient.difference(ChangeRequest())) == []
    with pytest.raises(WorkFailed):
        patient.difference(ChangeRequest(requires=("numpy<2",)))
    next(patient.target.glob("lib/*/site-packages/mytools-*/INSTALLER")).write_text("conda")
    with pytest.raises(BadInput, match="conda installed mytools"):  # its packages name the folder that built them
        patient.difference(ChangeRequest(requires=("numpy<2",)))


def with_module(wheel: Path, name: str, text: str) -> None:
    """Add a module to a wheel, and to its RECORD."""
    with zipfile.ZipFile(wheel) as old:
        held = {entry: old.read(entry) for entry in old.namelist()}
    record = next(entry for entry in held if entry.endswith("RECORD"))
    held |= {name: text.encode(), record: held[record] + f"{name},,\n".encode()}
    with zipfile.ZipFile(wheel, "w") as new:
        for entry, content in held.items():
            new.writestr(entry, content)


def complete(target: Path) -> list[str]:
    """Name the files that a RECORD lists and that are not there, or differ from its hash."""
    wrong = []
    for record in target.glob("lib/*/site-packages/*.dist-info/RECORD"):
        for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
            file = record.parents[1] / row[0]
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).decode().rstrip("=")
            wrong += [row[0]] if row[1] and row[1] != f"sha256={digest}" else []
    return wrong
