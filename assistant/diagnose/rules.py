"""Reads the rules: TOML files, one per backend; what is misspelt, unknown or could run away fails at loading."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from assistant.diagnose.patterns import literals
from assistant.diagnose.predicates import check_facts
from assistant.model.finding import Severity
from assistant.model.plan import Backend
from assistant.model.record import Record, from_plain

SHORTEST = 3  # characters of a literal that is looked for; two where they are Chinese


class Sign(Record, frozen=True):
    """One picture of a cause: all that is named must hold.

    `any`: patterns of which one stands in a line of the log; `all`: patterns that all do; `none`: that none may.
    Patterns are lower-case regular expressions; «…» marks texts of which each match holds one (see `patterns.py`).
    `facts` must be known to hold, `unless` must not be known to hold; `likely` must not be known to fail, and where
    it is unknown the user is asked.
    """

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    likely: dict[str, object] = {}
    confidence: float = 0.8


class Wish(Record, frozen=True):
    """The plan that a remedy means: a backend, or none for whatever fits the machine; other pins, another Python."""

    backend: Backend | None = None
    python: str | None = None
    pins: tuple[str, ...] = ()


class Way(Record, frozen=True):
    """One remedy; `facts` and `unless` say where it can work. `plan` is a wish that the shell turns into a plan.

    `launch` is set where applications are to be started for the backend of the diagnosis' first plan.
    """

    text: str
    commands: tuple[str, ...] = ()
    env: dict[str, str] = {}
    check: tuple[str, ...] = ()
    plan: Wish | None = None
    launch: bool = False
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}


class Rule(Record, frozen=True):
    """One cause: how it shows (`sign`, alternatives), why it happens, the ways out (`remedy`), who says so."""

    key: str
    title: str
    cause: str
    sign: tuple[Sign, ...]
    remedy: tuple[Way, ...]
    sources: tuple[str, ...]
    severity: Severity = Severity.ERROR


class _File(Record, frozen=True):
    as_of: str
    rule: tuple[Rule, ...]


class Rules:
    """All rules in the order of their files, and for each pattern the texts of which every match holds one."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.literals = {text: literals(text) for rule in rules for text in _patterns(rule)}


def read_rules(text: str, name: str) -> tuple[Rule, ...]:
    """Read one file of rules; raise `BadInput` or `ValueError` naming what is wrong in it."""
    rules = from_plain(tomllib.loads(text), _File, name).rule
    for rule in rules:
        for pattern in _patterns(rule):
            if re.search(r"(?<!\\)[A-Z]", pattern):
                raise ValueError(f"{name}, {rule.key}: {pattern!r} has capitals, but logs are searched in lower case")
            if min(map(len, literals(pattern))) < (SHORTEST if pattern.isascii() else 2):
                raise ValueError(
                    f"{name}, {rule.key}: {pattern!r} shows no literal text; mark one, as in «out of memory»"
                )
        for facts in (*(f for s in rule.sign for f in (s.facts, s.unless, s.likely)), *_remedy_facts(rule)):
            check_facts(facts, f"{name}, {rule.key}")
    return rules


@cache
def load_rules() -> Rules:
    """Read the shipped rules, once."""
    folder = files("assistant.diagnose").joinpath("rules")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".toml"))
    texts = {name: folder.joinpath(name).read_text("utf-8") for name in names}
    return Rules(tuple(rule for name, text in texts.items() for rule in read_rules(text, name)))


def _patterns(rule: Rule) -> list[str]:
    return [text for sign in rule.sign for group in (sign.any, sign.all, sign.none) for text in group]


def _remedy_facts(rule: Rule) -> list[dict[str, object]]:
    return [facts for way in rule.remedy for facts in (way.facts, way.unless)]
