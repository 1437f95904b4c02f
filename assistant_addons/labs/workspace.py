"""The folder of one lab: its files, its environments, what fails in it, and the judge that runs that apart."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from assistant.api import BadInput, Text, WorkFailed, _, say
from assistant.api.steps import EnvironmentFolder, LiveHost, Sources, Store, find_uv, system_name
from assistant.api.system import (
    RUNTIME,
    Isolation,
    Lock,
    child_environment,
    discard_folder,
    missing_extra_error,
    read_regular,
    running,
    user_cache,
    write_atomically,
)
from assistant.api.texts import STARTED_AS, remove_colours, verbatim
from assistant_addons.labs import activation
from assistant_addons.labs.definition import FILE_BYTES, Program, lab_at, program_of, programs_of
from assistant_addons.labs.intact import fault_of, packages_of

RECORD = ".lab"  # what the learner did; only a folder that holds it is ever emptied
JUDGED = ".judged"  # where the check runs what fails
LONGEST_LINE = 1 << 16  # chosen: characters; a longer line of a child comes in parts
WAIT_SECONDS = 0.5  # chosen: between looks at an environment that another process makes
LIMIT_SECONDS = 180.0  # of one command; chosen: a few small wheels over a slow line
INSTALL_SECONDS = 900.0  # of an environment with torch; chosen
# uv's hard links would lead into its cache, which what is edited in a lab would spoil for all environments; and Windows
# does not delete a file while a program has loaded another link to it: https://github.com/astral-sh/uv/issues/7918
PLAIN = {STARTED_AS: "", "UV_LINK_MODE": "copy"}
_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
SYSTEMS = {"win32": "windows", "darwin": "macos"}


class Outcome(NamedTuple):
    """The exit status of a command and all that it printed."""

    status: int
    text: str

    @property
    def last(self) -> str:
        """The last line that is not blank."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "")

    @property
    def reason(self) -> str:
        """The line that says what failed: that of the last exception, which may have several, else the last line."""
        errors = re.findall(r"^[\w.]+(?:Error|Exception): .*", self.text, re.MULTILINE)
        return errors[-1] if errors else self.last


def run_here(argv: list[str], variables: Mapping[str, str], folder: Path, limit: float = LIMIT_SECONDS) -> Outcome:
    """Run a command as this user; past its limit it ends with 124."""
    lines: list[str] = []
    environment = child_environment({**PLAIN, **variables})
    environment = {name: value for name, value in environment.items() if value or name not in activation.SOURCES}
    apart = Isolation(environment, folder, LONGEST_LINE, lambda _pid: False)
    try:
        with running(argv, limit=limit, isolation=apart) as child:
            lines.extend(child)
    except TimeoutError:
        return Outcome(124, "\n".join([*lines, say("Not finished after {seconds:.0f} s.", seconds=limit)]))
    return Outcome(child.returncode, remove_colours("\n".join(lines)))


def environment_with_torch(report: Callable[[str], object]) -> str:
    """Return the Python of the last setup, else of a CPU environment that is made in the assistant's cache folder.

    Where another lab makes it just now, it is waited for. `report` is told what takes long. Raises `WorkFailed` with
    the installer's last words when it cannot be made.
    """
    last = Store().environment()
    if last and Path(last.python).exists():
        return last.python
    own = user_cache()
    target = own / "torch-cpu"
    python = EnvironmentFolder(target).python
    lock = Lock(own / "torch-cpu.lock")
    if not python.exists():
        report(say("Installing PyTorch for the CPU once, for all labs: about 300 MB, a minute or more."))
    while not python.exists() and lock.take():
        time.sleep(WAIT_SECONDS)
    try:
        if not python.exists():
            install_torch(own, target)
    finally:
        lock.release()
    return str(python)


def install_torch(own: Path, target: Path) -> None:
    """Make a CPU environment with torch; `own` keeps the installer's notes. Raises `WorkFailed` with its last words."""
    places = {"XDG_STATE_HOME": str(own / "state"), "JUPYTER_DATA_DIR": str(own / "jupyter")}
    command = [sys.executable, "-m", "assistant", "install", "--backend", "cpu", "--yes", "--target", str(target)]
    need(run_here(command, places, Path.cwd(), INSTALL_SECONDS))


def need(outcome: Outcome) -> Outcome:
    """Return what came of a command; raise `WorkFailed` with its last words where it failed."""
    if outcome.status:
        raise WorkFailed(verbatim(outcome.last), hint=_("Fix that, then start the lab again."))
    return outcome


@cache
def package_sources() -> dict[str, str]:
    """Return the variables by which uv takes packages from where this user's pip does: mirror, proxy, certificates."""
    found = Sources(LiveHost()).environment
    return {name: value for name, value in found.items() if name != "PYTHONSAFEPATH"}


class Workspace:
    """The folder of the lab `key`; `report` is told what takes long, `torch` is a Python with torch, if there is one.

    Raises `BadInput` for an unknown key.
    """

    def __init__(
        self, key: str, folder: Path, *, report: Callable[[str], object] = lambda _text: None, torch: str = ""
    ) -> None:
        self.key, self.folder, self.report = key, folder.absolute(), report
        self.definition = lab_at(key)
        self._torch = torch

    @cached_property
    def program(self) -> Program:
        """What the lab does; to load it may take packages that are not here, for which `make` looks first."""
        return program_of(self.key)

    @cached_property
    def torch(self) -> str:
        """The Python with torch whose packages the lab's environment may see."""
        return self._torch or environment_with_torch(self.report)

    @property
    def beside(self) -> str:
        """The Python whose packages the lab's environment sees; "" for none."""
        if self.definition.beside == "torch":
            return self.torch
        return sys.executable if self.definition.beside else ""

    @property
    def variables(self) -> dict[str, str]:
        """The variables for all that runs in the lab, in a terminal as under the judge."""
        own = {"PYTHONPATH": str(RUNTIME), "PYTHONWARNINGS": "ignore", "UV_TORCH_BACKEND": ""}
        return {**package_sources(), **own, **self.program.variables(self)}

    def make(self) -> None:
        """Make the folder anew, with its fault; what the learner did so far is kept.

        Raises `BadInput` where the folder holds something else, or the lab cannot be played here.
        """
        self._check_system()
        self._clear()
        for name, content in self.own_files().items():
            self.write(self.folder / name, content)
        self.report(say("Making the environment of the lab."))
        self.venv("env", self.beside)
        self.program.breaks(self)
        activation.write(self)

    def own_files(self) -> dict[str, str | bytes]:
        """Return what lies in the folder at the start, by name."""
        return {**programs_of(self.key), **self.program.files(self)}

    def _clear(self) -> None:
        """Empty the folder; raise `BadInput` for one that is not a lab's."""
        self.folder.mkdir(parents=True, exist_ok=True)
        there = [path for path in self.folder.iterdir() if path.name != RECORD]
        if there and not (self.folder / RECORD).exists():
            raise BadInput(
                _("{folder} holds something other than a lab.", folder=self.folder), hint=_("Name another folder.")
            )
        for path in there:
            discard_folder(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        (self.folder / RECORD).touch()

    @staticmethod
    def write(path: Path, content: str | bytes) -> None:
        """Write a file of the lab, whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)

    def python(self, name: str = "env") -> Path:
        """Return the interpreter of one of the lab's environments."""
        return EnvironmentFolder(self.folder / name).python

    def venv(self, name: str, beside: str = "") -> None:
        """Make an environment with a pip, which sees the packages of the Python `beside`."""
        base, target = self._base(beside), self.folder / name
        need(self.call(base, "-m", "venv", "--without-pip", str(target)))
        for file, text in self.ours(name, beside).items():
            self.write((packages_of(target) or target) / file, text)
        pip = EnvironmentFolder.bundled_pip(Path(base)) or "pip"
        # An index of the lab's own holds no pip.
        line = [find_uv(), "pip", "install", "--python", str(self.python(name)), str(pip)]
        need(run_here(line, package_sources(), self.folder))

    def ours(self, name: str, beside: str) -> dict[str, str]:
        """Return the files that a lab itself puts among an environment's packages."""
        links = {"beside.pth": self.call(beside, "-c", _PURELIB).last} if beside else {}
        return {**links, **activation.hooks(self, name)}

    def _base(self, given: str) -> str:
        """Return a Python that the lab can be played on; raise `BadInput` where there is none."""
        versions = SpecifierSet(self.definition.python, prereleases=True)
        for python in (given,) if given else self._pythons():
            if Version(self._version_of(python) or "0") in versions:
                return python
        raise BadInput(
            _("This lab needs Python {versions}, and there is none here.", versions=self.definition.python),
            hint=_("Install such a Python, or choose another lab."),
        )

    def _pythons(self) -> Iterator[str]:
        """Yield the assistant's own Python, then another on this machine that the lab can be played on."""
        yield sys.executable
        versions = self.definition.python
        found = self.uv("python", "find", "--no-python-downloads", "--no-project", "--system", versions)
        if not found.status:
            yield found.last

    def _version_of(self, python: str) -> str:
        """Return the version of a Python; "" if it does not run."""
        if python == sys.executable:
            return platform.python_version()
        return self.call(python, "-c", "import platform; print(platform.python_version())").last

    def install(self, *arguments: str, name: str = "env") -> None:
        """Install into an environment of the lab; raise `WorkFailed` with uv's last words."""
        need(self.uv("pip", "install", "--python", str(self.python(name)), *arguments))

    def uv(self, *arguments: str) -> Outcome:
        """Run uv, which takes packages from where this user's pip does.

        A lab names exact versions, and an index that comes first may have only later ones: then the next one is asked.
        """
        strategy = {"UV_INDEX_STRATEGY": "unsafe-first-match"}
        return run_here([find_uv(), *arguments], {**self.variables, **strategy}, self.folder)

    def call(self, *argv: str | Path) -> Outcome:
        """Run a program in the lab's folder."""
        return run_here([str(part) for part in argv], self.variables, self.folder)

    def symptom(self) -> Outcome:
        """Run what fails, as the learner would in a terminal."""
        return self._run_symptom(self.python(), self.folder)

    def _run_symptom(self, python: Path | str, folder: Path) -> Outcome:
        variables = {**self.variables, "JUPYTER_PATH": str(folder)}
        argv = [str(python), *shlex.split(self.definition.symptom)[1:]]
        done = run_here(argv, variables, folder)
        return Outcome(done.status, done.text.replace(f"{folder}{os.sep}", ""))

    def judge(self) -> Text:
        """Return what is still wrong, as a sentence; "" where the lab is solved.

        What fails is run in a folder of the judge's, with the lab's own files made anew. Of the learner's only the
        files that may change are there, and the environments, if they may change and only installers changed them.
        """
        definition, place = self.definition, self.folder / JUDGED
        files = {name: self._learners(name) for name in definition.files}
        if lacking := [name for name, content in files.items() if not content]:
            return _("The file {file} is missing or cannot be read.", file=lacking[0])
        if place.exists():
            discard_folder(place)
        try:
            for name, content in {**self.own_files(), **files}.items():
                self.write(place / name, content)
            done = self._run_symptom(self.python() if definition.installs else self.beside, place)
        finally:
            discard_folder(place)
        if done.status:
            return _("The program still fails: {reason}", reason=done.reason)
        faults = map(self._environment_fault, definition.installs)
        return next((fault for fault in faults if fault), "")

    def _environment_fault(self, name: str) -> Text:
        def original(package: str, version: str) -> Mapping[str, str] | None:
            return self.program.original(self, package, version)

        beside = self.beside if name == "env" else self.torch
        return fault_of(self.folder / name, self.ours(name, beside), original)

    def _learners(self, name: str) -> bytes:
        """Return a file that the learner may change; b"" where there is none, or one too large for a lab."""
        try:
            return read_regular(self.folder / name, FILE_BYTES)
        except OSError:
            return b""

    def _check_system(self) -> None:
        """Raise `BadInput` where a lab cannot be played, `WorkFailed` where the assistant lacks a package."""
        if SYSTEMS.get(sys.platform, "linux") not in self.definition.systems:
            raise BadInput(
                _(
                    "The lab “{title}” can be played on {systems} alone.",
                    title=str(self.definition.title),
                    systems=", ".join(map(system_name, self.definition.systems)),
                ),
                hint=_("Choose another lab: `assistant labs list` shows where each can be played."),
            )
        for package in self.definition.needs:
            if find_spec(package) is None:
                raise missing_extra_error(package, "onnx" if package == "onnx" else "labs")
