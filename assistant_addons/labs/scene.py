"""The scratch folder of one lab: its environments, its files, and the commands that run in it."""

from __future__ import annotations

import csv
import hashlib
import platform
import shlex
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.api import BadInput, WorkFailed, _, say
from assistant.api.steps import EnvironmentFolder, LiveHost, Sources, Store
from assistant.api.system import (
    RUNTIME,
    Isolation,
    Lock,
    child_environment,
    discard_folder,
    read_regular,
    running,
    user_cache,
    write_atomically,
)
from assistant.api.texts import STARTED_AS, remove_colours, verbatim

PACKAGE_FILE_BYTES = 4 << 30
LONGEST_LINE = 1 << 16  # chosen: characters; a longer line of a child comes in parts
OURS = {"beside.pth", "_virtualenv.py", "_virtualenv.pth", "__pycache__"}  # of `Scene.venv` and of uv


def altered(environment: Path, name: str) -> bool:
    """Return whether a package is not installed, or not as its list says, or something lies beside all packages."""
    folder = packages_of(environment)
    lists = dict(_lists(folder)) if folder else {}
    mine = lists.get(canonicalize_name(name))
    if folder is None or mine is None:
        return True
    known = {Path(row).parts[0] for rows in lists.values() for row in rows}
    foreign = {path.name for path in folder.iterdir() if _holds_something(path)} - known - OURS
    return bool(foreign) or any(_differs(environment, folder / path, promised) for path, promised in mine.items())


def _holds_something(path: Path) -> bool:
    """Return whether something is more than the empty folders that an uninstalled package leaves."""
    return path.is_symlink() or not path.is_dir() or any(not one.is_dir() for one in path.rglob("*"))


def consists_of(environment: Path, name: str, files: Mapping[str, str]) -> bool:
    """Return whether a package is installed as its list says, and these files of its wheel are unchanged."""
    folder = packages_of(environment)
    if folder is None or altered(environment, name):
        return False
    try:
        return all(read_regular(folder / path).decode() == text for path, text in files.items())
    except (OSError, ValueError):
        return False


def packages_of(environment: Path) -> Path | None:
    """Return an environment's folder of packages."""
    places = (*environment.glob("lib/python3*/site-packages"), environment / "Lib" / "site-packages")
    return next((place for place in places if place.is_dir() and not place.is_symlink()), None)


def _lists(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each package with its files and their hashes."""
    for about in folder.glob("*.dist-info"):
        try:
            rows = csv.reader(read_regular(about / "RECORD").decode().splitlines())
            yield canonicalize_name(about.name.partition("-")[0]), {row[0]: row[1] for row in rows if len(row) > 1}
        except (OSError, ValueError):
            continue


def _differs(environment: Path, path: Path, promised: str) -> bool:
    if not promised:  # of RECORD itself, and of what an installer makes
        return not any(part.endswith(".dist-info") or part == "__pycache__" for part in path.parts)
    path = path.resolve()
    if not path.is_relative_to(environment.resolve()):
        return True
    kind, _sign, value = promised.partition("=")
    try:
        content = read_regular(path, PACKAGE_FILE_BYTES)
        found = urlsafe_b64encode(hashlib.new(kind, content).digest()).rstrip(b"=").decode()
    except (OSError, ValueError):
        return True
    return found != value


MARKER = ".lab"  # only a folder that holds it is ever removed
FILE_BYTES = 8 << 20  # of a file that is read as text
WAIT_SECONDS = 0.5  # chosen: between looks at an environment that another process makes
LIMIT_SECONDS = 180.0  # of one command; chosen: a few small wheels over a slow line
# A lab's own line takes `assistant`, however this was started.
# uv's hard links would lead into its cache, which what is edited in a lab would spoil for all environments; and Windows
# does not delete a file while a program has loaded another link to it: https://github.com/astral-sh/uv/issues/7918
PLAIN = {STARTED_AS: "", "UV_LINK_MODE": "copy"}
_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
_INDEXES = {"-i", "--index-url", "--extra-index-url", "--default-index", "--index"}
_LOOKS_AT_ENVIRONMENT = {"doctor": (), "verify": ("--target",)}  # by which words, before the folder


class Outcome(NamedTuple):
    """The exit status of a command and all that it printed."""

    status: int
    text: str

    @property
    def last(self) -> str:
        """The last line that is not blank."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "")


def run_here(argv: list[str], variables: Mapping[str, str], folder: Path, limit: float) -> Outcome:
    """Run a command as this user; past its limit it ends with 124."""
    lines: list[str] = []
    apart = Isolation(child_environment({**PLAIN, **variables}), folder, LONGEST_LINE, lambda _pid: False)
    try:
        with running(argv, limit=limit, isolation=apart) as child:
            lines.extend(child)
    except TimeoutError:
        return Outcome(124, "\n".join([*lines, say("Not finished after {seconds:.0f} s.", seconds=limit)]))
    return Outcome(child.returncode, "\n".join(lines))


def environment_with_torch() -> str:
    """Return the Python of the last setup, else of a CPU environment that is made in the assistant's cache folder.

    Where another lab makes it just now, it is waited for. Raises `WorkFailed` with the installer's last words when it
    cannot be made.
    """
    last = Store().environment()
    if last and Path(last.python).exists():
        return last.python
    own = user_cache()
    target = own / "torch-cpu"
    python = EnvironmentFolder(target).python
    lock = Lock(own / "torch-cpu.lock")
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
    done = run_here(command, places, Path.cwd(), 900.0)
    if done.status:
        raise WorkFailed(verbatim(done.last), hint=_("Fix that, then start the lab again."))


@cache
def package_sources() -> dict[str, str]:
    """Return the variables by which uv takes packages from where this user's pip does: mirror, proxy, certificates."""
    found = Sources(LiveHost()).environment
    return {name: value for name, value in found.items() if name != "PYTHONSAFEPATH"}


class Scene:
    """The folder of one lab: `library` is the lab's own folder.

    `machine` is the recorded machine that is played, `faults` are the lab's sentences, `variables` are there for all
    commands, `names` stand for what else a learner may type, `pythons` limits the Python of the lab's environments.
    `torch` is the Python of an environment with torch, made when needed.
    """

    def __init__(
        self,
        folder: Path,
        library: Path,
        *,
        torch: str = "",
    ) -> None:
        self.folder, self.library = folder.resolve(), library
        self.machine = ""
        self.faults: Mapping[str, str] = {}
        self.variables: Mapping[str, str] = {}
        self.names: Mapping[str, str] = {}
        self.pythons = ""
        self._torch = torch

    @property
    def torch(self) -> str:
        """The Python with torch whose packages a lab's environment may see."""
        self._torch = self._torch or environment_with_torch()
        return self._torch

    def wrong(self, fault: str, **params: object) -> str:
        """Return one of the lab's own sentences about what is wrong, with its placeholders filled."""
        return self.faults[fault].format(**params)

    @staticmethod
    def fails(outcome: Outcome) -> str:
        """Return that a program still fails, "" where it succeeds."""
        return say("The program still fails: {reason}", reason=outcome.last) if outcome.status else ""

    def clear(self) -> None:
        """Empty the folder; raise `BadInput` for one that is not a lab's."""
        if self.folder.exists():
            if not (self.folder / MARKER).exists():
                raise BadInput(
                    _("{folder} holds something other than a lab.", folder=self.folder),
                    hint=_("Name another folder."),
                )
            discard_folder(self.folder)
        self.folder.mkdir(parents=True)
        self.write(MARKER, "")

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the scene, whole; raise `BadInput` for a name that leads out of it."""
        path = self._inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.filled(text) if isinstance(text, str) else text)
        return path

    def read(self, name: str) -> str:
        """Read a file of the scene; "" where there is none. Raises `BadInput` for a name that leads out of it."""
        path = self._inside(name)
        try:
            return read_regular(path, FILE_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return ""

    def _inside(self, name: str) -> Path:
        """Return where a file of the scene lies; links that lead out of the folder are not followed."""
        path = (self.folder / self.filled(name)).resolve()
        if not path.is_relative_to(self.folder):
            raise BadInput(_("{file} is not in the lab's folder.", file=name), hint=_("Name a file inside it."))
        return path

    def python(self, name: str = "env") -> Path:
        """Return the interpreter of one of the scene's environments."""
        return EnvironmentFolder(self.folder / name).python

    def venv(self, name: str = "env", *, beside_torch: bool = False, seed: bool = False) -> None:
        """Make an environment, with a pip of its own by `seed`; `beside_torch` lets it see the packages of torch's."""
        base = self._base(self.torch if beside_torch else "")
        target = str(self.folder / name)
        # The pip that comes with a Python needs no network; Debian's Python comes without.
        if not seed or self.call(base, "-m", "venv", target).status:
            self.need(self.uv("venv", "--clear", "--python", base, target))
            if seed:
                self.install("pip", name=name)
        if beside_torch:
            mine, other = (self.call(python, "-c", _PURELIB).last for python in (self.python(name), self.torch))
            self.write(str(Path(mine).relative_to(self.folder) / "beside.pth"), other)

    def _base(self, given: str) -> str:
        """Return a Python that the lab can be played on; raise `BadInput` where there is none."""
        for python in (given,) if given else (sys.executable, self.pythons):
            if python and Version(self._version_of(python) or "0") in SpecifierSet(self.pythons, prereleases=True):
                return python
        raise BadInput(
            _("This lab needs Python {versions}, and there is none here.", versions=self.pythons),
            hint=_("Install such a Python, or choose another lab."),
        )

    def _version_of(self, python: str) -> str:
        """Return the version of a Python by its path, or of one at hand by a specifier; "" for none."""
        if python == sys.executable:
            return platform.python_version()
        if not Path(python).is_absolute():
            found = self.uv("python", "find", "--no-python-downloads", "--no-project", "--system", python)
            return self._version_of(found.last) if not found.status else ""
        return self.call(python, "-c", "import platform; print(platform.python_version())").last

    def install(self, *requirements: str, name: str = "env") -> None:
        """Install into an environment of the scene; raise `WorkFailed` with uv's last words."""
        self.need(self.uv("pip", "install", "--python", str(self.python(name)), *requirements))

    def uv(self, *arguments: str) -> Outcome:
        """Run uv, which takes packages from where this user's pip does.

        A lab names exact versions, and an index that comes first may have only later ones: then the next one is asked.
        """
        return self._run([sys.executable, "-m", "uv", *arguments], {"UV_INDEX_STRATEGY": "unsafe-first-match"})

    def program(self, name: str, *arguments: str, python: str | Path = "") -> Outcome:
        """Run a program that lies beside scene.py, in the scene's environment or with another Python."""
        return self.call(python or self.python(), str(self.library / name), *arguments)

    def call(self, *argv: str | Path) -> Outcome:
        """Run a program in the scene's folder; it finds its kernels and assistant/runtime, and warnings are off."""
        places = {"JUPYTER_PATH": str(self.folder), "PYTHONPATH": str(RUNTIME), "PYTHONWARNINGS": "ignore"}
        return self._run([str(part) for part in argv], places)

    def altered(self, package: str, name: str = "env") -> bool:
        """Return whether a package is not installed as its own list of files says, or something lies beside it."""
        return altered(self.folder / name, package)

    def consists_of(self, package: str, files: Mapping[str, str], name: str = "env") -> bool:
        """Return whether a package is installed with exactly these files, by their places among the packages."""
        return consists_of(self.folder / name, package, files)

    def run(self, command: str) -> Outcome:
        """Run a line as the learner types it: python, pip, uv or assistant first, `> FILE` last where it is wanted.

        No shell takes part. Raises `BadInput` for any other program, and for quotation marks that do not match.
        """
        try:
            words = [self.filled(word) for word in shlex.split(command)]
        except ValueError:
            raise BadInput(
                _("A quotation mark of this line has no partner: {line}", line=command),
                hint=_("Close it, or put quotation marks of the other kind around it."),
            ) from None
        words, target = (words[:-2], words[-1]) if words[-2:-1] == [">"] else (words, "")
        outcome = self._run(self._argv(*self._addressed(words)), {"PYTHONPATH": ""})
        if target and not outcome.status:
            self.write(target, outcome.text)
            return Outcome(0, say("Written to {file}.", file=target))
        return outcome

    def _addressed(self, words: Sequence[str]) -> Iterator[str]:
        """Give an index that is a folder of the lab by its address: pip fails at a relative one beside another index.

        `_AuthIndex` in pip/_internal/network/auth.py compares the paths of all indexes.
        """
        for before, word in zip(["", *words], words, strict=False):
            option, sign, value = word.partition("=")
            named = word if before in _INDEXES else value if sign and option in _INDEXES else ""
            folder = self.folder / named
            yield word.replace(named, folder.as_uri()) if named and folder.is_dir() else word

    def _argv(self, program: str = "", *arguments: str) -> list[str]:
        """Point a line at the scene's environment: uv would take the one that this Python runs in."""
        there = self.python().exists()
        own, uv = str(self.python() if there else sys.executable), [sys.executable, "-m", "uv"]
        if program == "uv" and arguments[:1] == ("pip",):
            program, arguments = "uv pip", arguments[1:]
        if program in {"pip", "uv pip"} and not there:
            raise BadInput(_("This lab has no environment to install into."), hint=_("Look at its files."))
        seeded = any((self.folder / "env").glob("[Ll]ib*/**/site-packages/pip"))
        if program == "pip" and seeded:
            return [own, "-m", "pip", *arguments, *(["--yes"] if arguments[:1] == ("uninstall",) else [])]
        tools = {"python": [own], "assistant": [sys.executable, "-m", "assistant"], "uv": uv}
        if program in {"pip", "uv pip"}:
            return [*uv, "pip", *arguments[:1], "--python", own, *arguments[1:]]
        if program not in tools:
            raise BadInput(
                _("{program} is not a program that labs can run.", program=program or '""'),
                hint=_("A line begins with one of: {names}.", names="python, pip, uv, assistant"),
            )
        looks = program == "assistant" and arguments and arguments[0] in _LOOKS_AT_ENVIRONMENT
        names = arguments[:1] == ("doctor",) and any(not word.startswith("-") for word in arguments[1:])
        if looks and there and not names and not {"--target", "--replay"} & set(arguments):
            arguments = (*arguments, *_LOOKS_AT_ENVIRONMENT[arguments[0]], str(self.folder / "env"))
        return [*tools[program], *arguments]

    def bare(self, text: str) -> str:
        """Replace this machine's paths in what a program printed by what can be typed in the lab's folder."""
        places = {f"{self.folder.as_uri()}/": "", f"{self.folder}/": "", f"{self.folder}\\": "", str(self.folder): "."}
        places |= {f"{self.library}/": "", f"{self.library}\\": ""}
        return _replaced(text, places | {path: name for name, path in self._torch_place().items()})

    def filled(self, text: str) -> str:
        """Fill in what `{torch}`, as `bare` writes it, and the names that scene.py gives stand for."""
        return _replaced(text, {**self._torch_place(), **self.names})

    def _torch_place(self) -> dict[str, str]:
        """Return the environment with torch by its placeholder, where there is one already."""
        return {"{torch}": str(Path(self._torch).parents[1])} if self._torch else {}

    @staticmethod
    def need(outcome: Outcome) -> None:
        """Raise `WorkFailed` with a command's last words where it failed."""
        if outcome.status:
            raise WorkFailed(verbatim(outcome.last), hint=_("Fix that, then start the lab again."))

    def _run(self, argv: list[str], variables: Mapping[str, str] | None = None) -> Outcome:
        done = run_here(argv, {**self.variables, **(variables or {})}, self.folder, LIMIT_SECONDS)
        return Outcome(done.status, remove_colours(done.text))


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text
