"""The scratch folder of one lab: its environments, its files, and the commands that run in it."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from assistant.host.files import discard_folder, write_whole
from assistant.host.folders import user_cache
from assistant.host.lock import Lock
from assistant.host.process import stream
from assistant.i18n import STARTED_AS, _, say, verbatim
from assistant.install import interpreter
from assistant.labs.shared import shared
from assistant.model.errors import BadInput, WorkFailed
from assistant.session.store import Store

PROGRAMS = Path(__file__).with_name("programs")
RUNTIME = Path(__file__).parents[1] / "runtime"
MARKER = ".lab"  # only a folder that holds it is ever removed
WAIT_SECONDS = 0.5  # chosen: between looks at an environment that another process makes
LIMIT_SECONDS = 180.0  # of one command; chosen: a few small wheels over a slow line
# Jupyter's kernels force colours, which hide words; and a lab's own line takes `assistant`, however this was started.
PLAIN = {"NO_COLOR": "1", "FORCE_COLOR": "", "CLICOLOR_FORCE": "0", STARTED_AS: ""}
_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


class Outcome(NamedTuple):
    """The exit status of a command and all that it printed."""

    status: int
    text: str

    @property
    def last(self) -> str:
        """The last line that is not blank."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "")


def environment_with_torch() -> str:
    """Return the Python of the last setup, else of a CPU environment that is made in the assistant's cache folder.

    A folder that all learners share has one. Where another lab makes it just now, it is waited for. Raises `WorkFailed`
    with the installer's last words when it cannot be made.
    """
    if place := shared():
        return place.torch
    last = Store().environment()
    if last and Path(last.python).exists():
        return last.python
    own = user_cache()
    target = own / "torch-cpu"
    python = interpreter(target)
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
    """Make a CPU environment with torch; `own` is for the installer's notes. Raises `WorkFailed` with its words."""
    places = {"XDG_STATE_HOME": str(own / "state"), "JUPYTER_DATA_DIR": str(own / "jupyter")}
    command = [sys.executable, "-m", "assistant", "install", "--backend", "cpu", "--yes", "--target", str(target)]
    done = run_program(command, places, 900.0)
    if done.status:
        raise WorkFailed(verbatim(done.last), hint=_("Fix that, then start the lab again."))


class Scene:
    """The folder of one lab; `torch` is the Python of an environment with torch, made when needed."""

    def __init__(self, folder: Path, torch: str = "") -> None:
        self.folder = folder
        self._torch = torch

    @property
    def torch(self) -> str:
        """The Python with torch whose packages a lab's environment may see."""
        self._torch = self._torch or environment_with_torch()
        return self._torch

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

    def write(self, name: str, text: str) -> Path:
        """Write a file of the scene; raise `BadInput` for a name that leads out of it."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise BadInput(_("{file} is not in the lab's folder.", file=name), hint=_("Name a file inside it."))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self._filled(text))
        return path

    def read(self, name: str) -> str:
        """Read a file of the scene; "" where there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def python(self, name: str = "env") -> Path:
        """Return the interpreter of one of the scene's environments."""
        return interpreter(self.folder / name)

    def venv(self, name: str = "env", *, version: str = "", beside_torch: bool = False, seed: bool = False) -> None:
        """Make an environment, with another Python by `version`; `beside_torch` lets it see the packages of torch's."""
        base = version or (self.torch if beside_torch else sys.executable)
        self._need(self.uv("venv", *(["--seed"] if seed else []), "--python", base, str(self.folder / name)))
        if beside_torch:
            mine, other = (
                run_program([python, "-c", _PURELIB]).last for python in (str(self.python(name)), self.torch)
            )
            write_whole(Path(mine, "beside.pth"), other)

    def install(self, *requirements: str, name: str = "env") -> None:
        """Install into an environment of the scene; raise `WorkFailed` with uv's last words."""
        self._need(self.uv("pip", "install", "--python", str(self.python(name)), *requirements))

    def uv(self, *arguments: str) -> Outcome:
        """Run uv."""
        return self._linked(run_program([sys.executable, "-m", "uv", *arguments]))

    def program(self, name: str, *arguments: str, python: str | Path = "") -> Outcome:
        """Run one of the labs' programs in the scene's environment, or with another python."""
        return self.call(python or self.python(), str(PROGRAMS / name), *arguments)

    def call(self, *argv: str | Path) -> Outcome:
        """Run a program that finds the scene's kernels and the files of assistant/runtime; warnings are left out."""
        places = {"JUPYTER_PATH": str(self.folder), "PYTHONPATH": str(RUNTIME), "PYTHONWARNINGS": "ignore"}
        return run_program([str(part) for part in argv], places)

    def run(self, command: str) -> Outcome:
        """Run a line as the learner types it: python, pip, uv or assistant first, `> FILE` last where it is wanted.

        No shell takes part. Raises `BadInput` for any other program.
        """
        words = [self._filled(word) for word in shlex.split(command)]
        words, target = (words[:-2], words[-1]) if words[-2:-1] == [">"] else (words, "")
        outcome = self._linked(run_program(self._argv(*words), {"PYTHONPATH": ""}))
        if target and not outcome.status:
            self.write(target, outcome.text)
            return Outcome(0, say("Written to {file}.", file=target))
        return outcome

    def _argv(self, program: str = "", *arguments: str) -> list[str]:
        """Point a line at the scene's environment: uv would take the one that this Python runs in."""
        own, uv = str(self.python()), [sys.executable, "-m", "uv"]
        if program == "uv" and arguments[:1] == ("pip",):
            program, arguments = "uv pip", arguments[1:]
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
        return [*tools[program], *arguments]

    def _linked(self, outcome: Outcome) -> Outcome:
        """Shorten what an installer has linked to in the folder that learners share."""
        if place := shared():
            place.shorten(self.folder)
        return outcome

    def bare(self, text: str) -> str:
        """Replace this machine's paths in what a program printed by short names."""
        known = {self.folder: "lab", PROGRAMS: "programs", Path(self._torch or self.folder).parents[1]: "torch"}
        for path, name in known.items():
            text = text.replace(str(path), name)
        return text

    def _filled(self, text: str) -> str:
        """Fill in a text's placeholders: the scene's folder, the python of `work`, the address of `upstream`."""
        places = {
            "{lab}": str(self.folder),
            "{work}": str(self.python("work")),
            "{upstream}": (self.folder / "upstream" / "simple").as_uri(),
        }
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    @staticmethod
    def _need(outcome: Outcome) -> None:
        if outcome.status:
            raise WorkFailed(verbatim(outcome.last), hint=_("Fix that, then start the lab again."))


def run_program(argv: list[str], environment: Mapping[str, str] | None = None, limit: float = LIMIT_SECONDS) -> Outcome:
    """Run a program with the labs' own settings, for at most `limit` seconds; the status is 124 past them."""
    lines: list[str] = []
    # Windows does not delete a file while a program has loaded another hard link to it, such as this very Python from
    # uv's cache: https://github.com/astral-sh/uv/issues/7918
    settings = {**PLAIN, "UV_LINK_MODE": "copy"} if sys.platform == "win32" else PLAIN
    place = shared()
    settings = {**settings, **place.variables()} if place else settings
    try:
        status = stream(argv, lines.append, environment={**settings, **(environment or {})}, limit=limit)
    except TimeoutError:
        return Outcome(124, "\n".join([*lines, say("Not finished after {seconds:.0f} s.", seconds=limit)]))
    return Outcome(status, os.linesep.join(lines).replace(os.linesep, "\n"))
