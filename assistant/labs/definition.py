"""The labs that there are: one folder each, with its text in two languages, its program and its ways.

Labs lie in this package and in the folders that the variable `ASSISTANT_LABS` names. `docs/contributing.md` describes
the files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from assistant.diagnose import load_rules
from assistant.host.files import read_plain
from assistant.host.live import LiveHost
from assistant.i18n import _, language
from assistant.labs.scene import Outcome
from assistant.labs.variants import filled, variant_of
from assistant.model.errors import BadInput, unreadable
from assistant.model.record import Record, from_plain, replace

LIBRARY = Path(__file__).with_name("library")
VARIABLE = "ASSISTANT_LABS"
TEXT, PROGRAM, WAYS = "lab.toml", "scene.py", "ways.toml"
FILE_BYTES = 1 << 20
_KEY = re.compile(r"[a-z0-9][a-z0-9-]*")
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
    `machine` is the recorded machine that is played, "" for this one. Each `variant` gives values to the placeholders
    in texts and ways.
    """

    schema: Literal[1]
    minutes: int
    cause: str
    evidence: tuple[str, ...]
    diagnosis: str = ""
    order: int = 1000
    files: tuple[str, ...] = ()
    systems: tuple[Literal["linux", "windows", "macos"], ...] = ("linux", "windows", "macos")
    python: str = ""
    needs: tuple[str, ...] = ()
    machine: str = ""
    variant: tuple[dict[str, str], ...] = ()


class Way(Record, frozen=True):
    """One way of mending that a learner may take: lines for `Scene.do`, and what it is."""

    lines: tuple[str, ...]
    name: str = ""


class Ways(Record, frozen=True):
    """What ways.toml holds, for teachers and tests."""

    right: tuple[Way, ...]
    wrong: tuple[Way, ...]


class Definition:
    """A lab by its folder; its name is the lab's key. Raises `BadInput` for one that is not whole."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key = folder, folder.name
        self._what = f"{self.key}/{TEXT}"
        check_key(self.key)
        self.english = _read(folder / TEXT, LabText)
        if not (folder / PROGRAM).is_file():
            raise BadInput(
                _("The lab {key} has no {file}.", key=self.key, file=PROGRAM), hint=_("Write it, or move the lab away.")
            )
        self._check()

    def _check(self) -> None:
        """Refuse what cannot work."""
        text = self.english
        faults = {
            _("its cause “{cause}” is not among its causes", cause=text.cause): text.cause not in text.causes,
            _("there is no rule “{rule}”", rule=text.diagnosis): text.diagnosis not in {"", *load_rules().by_key},
            _("it has no hints"): not text.hints,
            _("its variants do not give values to the same names"): len({frozenset(one) for one in text.variant}) > 1,
        }
        try:
            SpecifierSet(text.python)
        except InvalidSpecifier:
            faults[_("“{text}” does not say which Pythons it runs on", text=text.python)] = True
        for fault, there in faults.items():
            if there:
                raise BadInput(
                    _("{what} cannot be used: {reason}.", what=self._what, reason=fault), hint=_("Correct it there.")
                )

    @cached_property
    def chinese(self) -> Translation | None:
        """The Chinese texts; None where there are none. Raises `BadInput` for a file that cannot be read."""
        path = self.folder / "lab.zh_CN.toml"
        return _read(path, Translation) if path.exists() else None

    def values(self, learner: str = "") -> Mapping[str, str]:
        """Return what the placeholders stand for in this learner's variant of the lab."""
        return variant_of(self.english.variant, self.key, learner)

    def text(self, learner: str = "", code: str = "") -> LabText:
        """Return the texts in the language of the moment or another one, in this learner's variant.

        The causes come in an order of the learner's own, the same each time, so that no place gives the right one away.
        """
        words = self.chinese if (code or language()) == "zh_CN" else None
        text = replace(self.english, **_fields(words)) if words else self.english
        return filled(replace(text, causes=self._in_order(text.causes, learner)), self.values(learner))

    def _in_order(self, causes: Mapping[str, str], learner: str) -> dict[str, str]:
        """Order causes by a hash of the lab, the learner and each key; a learner without a name is this user."""
        who = learner or LiveHost().facts("identity")["users"]
        return dict(
            sorted(causes.items(), key=lambda one: hashlib.sha256(f"{self.key}\n{who}\n{one[0]}".encode()).digest())
        )

    @cached_property
    def ways(self) -> Ways:
        """The right and wrong ways, which only a checkout and labs of one's own hold; raises `BadInput` without."""
        return _read(self.folder / WAYS, Ways)

    def filled_way(self, way: Way, learner: str = "") -> Way:
        """Return a way in a learner's variant."""
        return filled(way, self.values(learner))

    @cached_property
    def program(self) -> Program:
        """What the lab does; raises `BadInput` where scene.py cannot be imported."""
        module = self._imported()
        symptom, breaks = (getattr(module, name, None) for name in ("symptom", "breaks"))
        if not (symptom and breaks):
            raise BadInput(
                _("{what} cannot be used: {reason}.", what=f"{self.key}/{PROGRAM}", reason="breaks, symptom"),
                hint=_("It must define both functions."),
            )
        return Program(breaks, symptom, *(getattr(module, name, None) for name in ("fault", "variables", "names")))

    def _imported(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"assistant_lab_{self.key}", self.folder / PROGRAM)
        module = importlib.util.module_from_spec(spec) if spec else ModuleType("")
        try:
            if spec and spec.loader:
                spec.loader.exec_module(module)
        except Exception as error:  # a lab of the user's own may fail in any way
            raise BadInput(
                _(
                    "{what} cannot be used: {reason}.",
                    what=f"{self.key}/{PROGRAM}",
                    reason=f"{type(error).__name__}: {error}",
                ),
                hint=_("Correct it there."),
            ) from error
        return module

    @property
    def programs(self) -> tuple[Path, ...]:
        """The programs that lie beside scene.py; learners may read them."""
        found = (path for path in sorted(self.folder.iterdir()) if path.suffix in SOURCE_SUFFIXES)
        return tuple(path for path in found if path.name != PROGRAM)


def check_key(key: str) -> None:
    """Raise `BadInput` for what cannot be a lab's key."""
    if not _KEY.fullmatch(key):
        raise BadInput(
            _("A lab cannot be named {name}.", name=f'"{key}"'),
            hint=_("Name its folder with small letters, digits and hyphens."),
        )


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


def labs() -> dict[str, Definition]:
    """Return all labs that can be used by key, in teaching order."""
    return _found()[0]


def broken_labs() -> tuple[BadInput, ...]:
    """Return why labs of the user's own cannot be used."""
    return _found()[1]


def lab_at(place: str) -> Definition:
    """Return a lab by its key or its folder; raise `BadInput` where there is none, or where it cannot be used."""
    if (Path(place) / TEXT).is_file():
        return Definition(Path(place).resolve())
    if (found := labs().get(place)) is None:
        reasons = {folder.name: folder for folder in _folders()}
        if place in reasons:
            return Definition(reasons[place])
        raise BadInput(
            _("There is no lab named {name}.", name=place), hint=_("Choose one of: {names}.", names=", ".join(labs()))
        )
    return found


_KNOWN: dict[tuple[Path, ...], tuple[dict[str, Definition], tuple[BadInput, ...]]] = {}


def _found() -> tuple[dict[str, Definition], tuple[BadInput, ...]]:
    folders = tuple(_folders())
    if folders not in _KNOWN:
        found: dict[str, Definition] = {}
        broken: list[BadInput] = []
        for folder in folders:
            try:
                found.setdefault(folder.name, Definition(folder))
            except BadInput as error:
                broken.append(error)
        _KNOWN[folders] = dict(sorted(found.items(), key=lambda one: (one[1].english.order, one[0]))), tuple(broken)
    return _KNOWN[folders]


def _folders() -> Iterator[Path]:
    """Yield the folders of all labs, those of this package first: no other lab takes the place of one of them."""
    yield from _inside(LIBRARY)
    for place in filter(None, LiveHost().variable(VARIABLE).text.split(os.pathsep)):
        path = Path(place).expanduser()
        yield from [path.resolve()] if (path / TEXT).exists() else _inside(path)


def _inside(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path.resolve() for path in sorted(folder.iterdir()) if (path / TEXT).exists())


def _read(path: Path, kind: type[_R]) -> _R:
    what = f"{path.parent.name}/{path.name}"
    try:
        raw = tomllib.loads(read_plain(path, FILE_BYTES, follow=True).decode())
    except OSError as error:
        raise unreadable(what, error) from error
    except ValueError as error:  # no UTF-8, no TOML
        raise BadInput(
            _("{what} cannot be read: {reason}.", what=what, reason=str(error)), hint=_("Correct it there.")
        ) from error
    return from_plain(raw, kind, what)


def _fields(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
