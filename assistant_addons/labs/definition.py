"""The labs that there are: one folder each, with its text in two languages, its program and its ways.

`docs/contributing.md` describes the files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple, TypeVar

from assistant.api import BadInput, Record, _, replace
from assistant.api.records import from_plain
from assistant.api.steps import LiveHost
from assistant.api.system import read_regular, unreadable_error
from assistant.api.texts import language
from assistant_addons.labs.scene import Outcome

LIBRARY = Path(__file__).with_name("library")
TEXT, PROGRAM, WAYS = "lab.toml", "scene.py", "ways.toml"
FILE_BYTES = 1 << 20
_R = TypeVar("_R", bound=Record)


class Translation(Record, frozen=True):
    """What lab.zh_CN.toml holds: the texts for the learner.

    `hints` go from general to exact. `remember` closes the lab: what to keep in mind, and how to see it elsewhere.
    `causes` are those that the learner chooses from. `faults` are sentences for what `fault` of scene.py finds.
    """

    title: str
    objectives: tuple[str, ...]
    story: str
    hints: tuple[str, ...]
    explanation: str
    remember: str
    causes: dict[str, str]
    faults: dict[str, str] = {}


class LabText(Translation, frozen=True, kw_only=True):
    """What lab.toml holds: the texts in English, what the lab needs, and what is right.

    `minutes` is how long a learner takes. `cause` is the right one of `causes`, and each of `evidence` is a piece of
    the failing program's output that proves it. `diagnosis` is the rule that must come first in the assistant's own
    diagnosis, "" where nothing in the output is a known error. `files` are those that the learner changes. `python`
    limits the Python of the lab's environment ("" for any), `needs` are packages of the assistant's own Python.
    `machine` is the recorded machine that is played, "" for this one.
    """

    schema: Literal[1]
    order: int
    minutes: int
    cause: str
    evidence: tuple[str, ...]
    diagnosis: str = ""
    files: tuple[str, ...] = ()
    systems: tuple[Literal["linux", "windows", "macos"], ...] = ("linux", "windows", "macos")
    python: str = ""
    needs: tuple[str, ...] = ()
    machine: str = ""


class Way(Record, frozen=True):
    """One way of mending that a learner may take, and what it is.

    A line is a command, or `FILE <<< text`, which writes a file. In it `{lab}` stands for the lab's folder, and
    `{work}` for the Python of its environment of that name.
    """

    lines: tuple[str, ...]
    name: str = ""


class Ways(Record, frozen=True):
    """What ways.toml holds, for teachers and tests."""

    right: tuple[Way, ...]
    wrong: tuple[Way, ...]


class Definition:
    """A lab by its folder; its name is the lab's key."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key = folder, folder.name
        self.english = _read(folder / TEXT, LabText)

    @cached_property
    def chinese(self) -> Translation:
        """The Chinese texts."""
        return _read(self.folder / "lab.zh_CN.toml", Translation)

    def text(self, learner: str = "", code: str = "") -> LabText:
        """Return the texts in the language of the moment or another one.

        The causes come in an order of the learner's own, the same each time, so that no place gives the right one away.
        """
        text = self.english
        if (code or language()) == "zh_CN":
            words = {name: getattr(self.chinese, name) for name in self.chinese.__struct_fields__}
            text = replace(text, **words)
        return replace(text, causes=self._in_order(text.causes, learner))

    def _in_order(self, causes: Mapping[str, str], learner: str) -> dict[str, str]:
        """Order causes by a hash of the lab, the learner and each key; a learner without a name is this user."""
        who = learner or LiveHost().facts("identity")["users"]
        return dict(
            sorted(causes.items(), key=lambda one: hashlib.sha256(f"{self.key}\n{who}\n{one[0]}".encode()).digest())
        )

    @cached_property
    def ways(self) -> Ways:
        """The right and wrong ways, which only a checkout holds; raises `BadInput` without."""
        return _read(self.folder / WAYS, Ways)

    @cached_property
    def program(self) -> Program:
        """What the lab does."""
        spec = importlib.util.spec_from_file_location(f"assistant_lab_{self.key}", self.folder / PROGRAM)
        module = importlib.util.module_from_spec(spec) if spec else ModuleType("")
        if spec and spec.loader:
            spec.loader.exec_module(module)
        optional = (getattr(module, name, None) for name in ("fault", "variables", "names"))
        return Program(module.breaks, module.symptom, *optional)

    @property
    def programs(self) -> tuple[Path, ...]:
        """The programs that lie beside scene.py; learners may read them."""
        found = (path for path in sorted(self.folder.iterdir()) if path.suffix in SOURCE_SUFFIXES)
        return tuple(path for path in found if path.name != PROGRAM)


class Program(NamedTuple):
    """What scene.py defines: `breaks` prepares the folder, `symptom` runs what fails.

    `fault` returns what is still wrong, "" for nothing; without it a lab is solved when its symptom succeeds.
    `variables` returns variables for all that runs in the scene, `names` what a learner may type for an address.
    """

    breaks: Callable[..., None]
    symptom: Callable[..., Outcome]
    fault: Callable[..., str] | None = None
    variables: Callable[..., Mapping[str, str]] | None = None
    names: Callable[..., Mapping[str, str]] | None = None


@cache
def labs() -> dict[str, Definition]:
    """Return all labs by key, in teaching order."""
    found = [Definition(path.parent) for path in LIBRARY.glob(f"*/{TEXT}")]
    return {one.key: one for one in sorted(found, key=lambda one: one.english.order)}


def lab_at(key: str) -> Definition:
    """Return a lab by its key; raise `BadInput` where there is none."""
    if key not in labs():
        raise BadInput(
            _("There is no lab named {name}.", name=key), hint=_("Choose one of: {names}.", names=", ".join(labs()))
        )
    return labs()[key]


def _read(path: Path, kind: type[_R]) -> _R:
    what = f"{path.parent.name}/{path.name}"
    try:
        raw = tomllib.loads(read_regular(path, FILE_BYTES, follow=True).decode())
    except OSError as error:
        raise unreadable_error(what, error) from error
    except ValueError as error:  # no UTF-8, no TOML
        raise BadInput(
            _("{what} cannot be read: {reason}.", what=what, reason=str(error)), hint=_("Correct it there.")
        ) from error
    return from_plain(raw, kind, what)
