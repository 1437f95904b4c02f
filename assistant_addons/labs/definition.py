"""The labs that there are: one folder each, with its text in two languages and the programs that fail.

`docs/contributing.md` describes the files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from assistant.api import BadInput, Record, _
from assistant.api.records import from_plain
from assistant.api.system import read_regular, unreadable_error
from assistant.api.texts import language

if TYPE_CHECKING:
    from assistant_addons.labs.workspace import Workspace

LIBRARY = Path(__file__).with_name("library")
TEXT, PROGRAM = "lab.toml", "scene.py"
FILE_BYTES = 8 << 20
System = Literal["linux", "windows", "macos"]
EVERYWHERE: tuple[System, ...] = ("linux", "windows", "macos")


class Words(Record, frozen=True):
    """One text in each language of the assistant; as `str` the one in force."""

    en: str
    zh_CN: str  # noqa: N815 - the language's code

    def __str__(self) -> str:
        return self.zh_CN if language() == "zh_CN" else self.en


class Definition(Record, frozen=True, kw_only=True):
    """What lab.toml holds: the words for the learner, what the lab needs, and what is right.

    `symptom` is the line that fails; where it succeeds in a fresh process, the lab is solved. Only `files` and the
    environments `installs` may change. `beside` says whose packages the lab's environment sees: those of an environment
    with torch, or the assistant's own. `cause` is the right one of `causes`, and each of `shows` is a regular
    expression for words that show it, in any case. `hints` go from general to exact. `python` limits the Python of the
    lab's environment ("" for any), `needs` are packages of the assistant's own Python, `machine` is the recorded
    machine that is played, "" for this one.
    """

    schema: Literal[2]
    order: int
    minutes: int
    symptom: str
    cause: str
    shows: tuple[str, ...]
    title: Words
    task: Words
    causes: dict[str, Words]
    hints: tuple[Words, ...]
    explanation: Words
    remember: Words
    files: tuple[str, ...] = ()
    installs: tuple[str, ...] = ()
    beside: Literal["", "torch", "assistant"] = ""
    systems: tuple[System, ...] = EVERYWHERE
    python: str = ""
    needs: tuple[str, ...] = ()
    machine: str = ""

    def in_order_of(self, learner: str) -> dict[str, str]:
        """Return the causes in an order of the learner's own, the same each time: no place gives the right one away."""

        def rank(key: str) -> bytes:
            return hashlib.sha256(f"{self.order}\n{learner}\n{key}".encode()).digest()

        return {key: str(self.causes[key]) for key in sorted(self.causes, key=rank)}

    def is_shown_by(self, evidence: str) -> bool:
        """Return whether a learner's words, or a line that a program printed, show the right cause."""
        words = " ".join(evidence.split())
        return any(re.search(one, words, re.IGNORECASE) for one in self.shows)


class Program:
    """What scene.py defines, all of it optional, for a lab's `Workspace`.

    `files` returns what lies in the folder beside the programs, by name. `breaks` installs what is wrong. `variables`
    returns variables for all that runs in the lab. `original` returns the files of a stand-in package by its name and
    version, `None` for a version that the lab does not offer.
    """

    def __init__(self, module: ModuleType) -> None:
        def given(name: str) -> Callable[..., Any]:
            return getattr(module, name, lambda *_given: {})

        self.files: Callable[[Workspace], Mapping[str, str | bytes]] = given("files")
        self.breaks: Callable[[Workspace], object] = given("breaks")
        self.variables: Callable[[Workspace], Mapping[str, str]] = given("variables")
        self.original: Callable[[Workspace, str, str], Mapping[str, str] | None] = given("original")


@cache
def labs() -> dict[str, Definition]:
    """Return all labs by key, in teaching order."""
    found = {path.parent.name: _read(path) for path in LIBRARY.glob(f"*/{TEXT}")}
    return dict(sorted(found.items(), key=lambda one: one[1].order))


def lab_at(key: str) -> Definition:
    """Return a lab by its key; raise `BadInput` where there is none."""
    if key not in labs():
        raise BadInput(
            _("There is no lab named {name}.", name=key), hint=_("Choose one of: {names}.", names=", ".join(labs()))
        )
    return labs()[key]


@cache
def program_of(key: str) -> Program:
    """Return what a lab does."""
    path = LIBRARY / key / PROGRAM
    spec = importlib.util.spec_from_file_location(f"assistant_lab_{key}", path)
    module = importlib.util.module_from_spec(spec) if spec else ModuleType("")
    if spec and spec.loader and path.exists():
        spec.loader.exec_module(module)
    return Program(module)


def programs_of(key: str) -> dict[str, bytes]:
    """Return the programs that lie beside scene.py, by name; learners may read them."""
    paths = (path for path in sorted((LIBRARY / key).iterdir()) if path.suffix in SOURCE_SUFFIXES)
    return {path.name: read_regular(path, FILE_BYTES, follow=True) for path in paths if path.name != PROGRAM}


def _read(path: Path) -> Definition:
    what = f"{path.parent.name}/{path.name}"
    try:
        raw = tomllib.loads(read_regular(path, FILE_BYTES, follow=True).decode())
    except OSError as error:
        raise unreadable_error(what, error) from error
    except ValueError as error:  # no UTF-8, no TOML
        raise BadInput(
            _("{what} cannot be read: {reason}.", what=what, reason=str(error)), hint=_("Correct it there.")
        ) from error
    return from_plain(raw, Definition, what)
