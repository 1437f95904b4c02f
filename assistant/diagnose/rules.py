"""Reads the rules: TOML files, one per backend; what is misspelt, unknown or could run away fails at loading."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from assistant.diagnose.predicates import check_facts
from assistant.model.finding import Severity
from assistant.model.plan import Backend
from assistant.model.record import Record, from_plain

SHORTEST = 3  # characters of a literal that is looked for; two where they are Chinese
# The parts of a pattern: `\.` (a character), `\d` or `[a-z]`, `(` `)` `|`, `?` `*` `{0,3}`, `+` `{2}` `.` `^`, `x`.
_PARTS = re.compile(
    r"\\([^A-Za-z0-9])|\\.|\[(?:\\.|[^\]\\]){1,200}\]|([()|])|([?*]|\{0(?:,\d*)?\})\??|[+^$.]\??|\{\d+(?:,\d*)?\}\??|(.)",
    re.DOTALL,
)
_MARKED = re.compile("«([^»]{1,200})»")


PLACEHOLDER = re.compile(r"\{([a-z_]{2,20})\}")  # in the texts and commands of a computed cause


class Sign(Record, frozen=True):
    """One way in which a cause shows: all that is named must hold.

    `any`: patterns of which one matches in the log; `all`: patterns that all do; `none`: patterns of which none may.
    Patterns are lower-case regular expressions; «…» marks texts of which each match holds one (see `literals`).
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


class PlanRequest(Record, frozen=True):
    """The plan that a remedy asks for: a backend, or whatever fits the machine for None; other pins, another Python.

    `changes` tells how much of an environment that stands has to change: the build alone, so that torch's release can
    stay, the release, or the environment as a whole.
    """

    backend: Backend | None = None
    python: str | None = None
    pins: tuple[str, ...] = ()
    changes: Literal["build", "release", "environment"] = "release"


class RuleRemedy(Record, frozen=True):
    """One remedy of a rule; `facts` and `unless` say where it can work, as in `Sign`.

    It is for those whose log matches each pattern in `said` and none in `unsaid`: what a person may not change, the
    program that runs, the way a package was installed.
    `launch` is set where applications are to be started for the backend of the diagnosis' first plan. `names` are the
    values of the placeholders in `text`, once a cause was computed; a `general` remedy takes the place of those whose
    names are not known.
    """

    text: str
    commands: tuple[str, ...] = ()
    env: dict[str, str] = {}
    check: tuple[str, ...] = ()
    plan: PlanRequest | None = None
    launch: bool = False
    general: bool = False
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    said: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    names: dict[str, str] = {}


class Asks(Record, frozen=True):
    """What a program does that brings a cause about, in a sentence each.

    `started` is said where one of the program's arguments holds `argument`, else `asks`; `unnamed` where no program is
    known.
    """

    argument: str
    started: str
    asks: str
    unnamed: str


class Rule(Record, frozen=True):
    """One cause: how it shows (`sign`, alternatives), why it happens, what helps (`remedy`), and who says so.

    It cannot be on a machine that is known to fail one of its `needs`, whatever a log says.
    A rule outside the project brings its own examples: logs that it `shows` first for, and `healthy` ones that it must
    leave alone (`assistant rules test`).
    A cause that is `software_only` lies in programs and packages: a GPU with a build of its own is not at fault. One
    that is `computed` needs no sign, and its texts and commands may hold placeholders such as {package}: a remedy with
    one that is not filled is left out, and `general` is said in place of such a cause.
    """

    key: str
    title: str
    cause: str
    remedy: tuple[RuleRemedy, ...]
    sources: tuple[str, ...]
    severity: Severity = Severity.ERROR
    needs: dict[str, object] = {}
    sign: tuple[Sign, ...] = ()
    software_only: bool = False
    computed: bool = False
    general: str = ""
    asks: Asks | None = None
    shows: tuple[str, ...] = ()
    healthy: tuple[str, ...] = ()

    def lacks(self, names: Mapping[str, str]) -> bool:
        """Return whether a placeholder of the cause has no name."""
        return self.computed and bool({*PLACEHOLDER.findall(self.cause)} - {*names})

    @property
    def named(self) -> bool:
        """Whether the title is whole as it stands, without a name to fill in."""
        return not PLACEHOLDER.search(self.title)

    @property
    def signs(self) -> tuple[str, ...]:
        """All patterns of all signs, by which a log shows the cause."""
        return tuple(text for sign in self.sign for group in (sign.any, sign.all, sign.none) for text in group)

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of all signs and remedies."""
        words = (group for remedy in self.remedy for group in (remedy.said, remedy.unsaid))
        return (*self.signs, *(text for group in words for text in group))


class RuleFile(Record, frozen=True):
    """A file of rules; `zh_CN` holds the Chinese of its sentences, by the English one, where the project has none."""

    as_of: str
    rule: tuple[Rule, ...]
    zh_CN: dict[str, str] = {}  # noqa: N815 - the language's code


class Rules:
    """All rules in the order of their files, and for each pattern the texts of which every match holds one.

    `marks` are those of the signs: of a long log the lines that hold one are kept.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.by_key = {rule.key: rule for rule in rules}
        self.literals = {text: literals(text) for rule in rules for text in rule.patterns}
        self.marks = frozenset().union(*(literals(text) for rule in rules for text in rule.signs))


@cache
def literals(pattern: str) -> frozenset[str]:
    """Return texts of which every match holds at least one: those marked with «…», else one for each alternative.

    Unmarked, it is the longest run of plain characters that stands outside all brackets; "" where there is none.
    """
    if marked := _MARKED.findall(pattern):
        return frozenset(re.sub(r"\\(.)", r"\1", text) for text in marked)
    alternatives, depth = [[""]], 0
    for escaped, bracket, optional, plain in _PARTS.findall(pattern):
        depth += {"(": 1, ")": -1}.get(bracket, 0)
        runs = alternatives[-1]
        if bracket == "|" and depth == 0:
            alternatives.append([""])
        elif depth == 0 and (escaped or plain):
            runs[-1] += escaped or plain
        else:
            runs[-1] = runs[-1][:-1] if optional else runs[-1]
            runs.append("")
    return frozenset(max(runs, key=len) for runs in alternatives)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression; texts are searched with plain quotes, so « and » can only be marks."""
    return re.compile(pattern.replace("«", "").replace("»", ""))


def read_rules(text: str, name: str) -> tuple[Rule, ...]:
    """Read one file of rules; raise `BadInput`, `ValueError` or `TypeError` naming what is wrong in it."""
    return read_file(text, name).rule


def read_file(text: str, name: str) -> RuleFile:
    """Read one file of rules with its translations; raise as `read_rules` does."""
    whole = from_plain(tomllib.loads(text), RuleFile, name)
    for rule in whole.rule:
        for pattern in rule.patterns:
            if re.search(r"(?<!\\)[A-Z]", pattern):
                raise ValueError(f"{name}, {rule.key}: {pattern!r} has capitals, but logs are searched in lower case")
            if min(map(len, literals(pattern))) < (SHORTEST if pattern.isascii() else 2):
                raise ValueError(
                    f"{name}, {rule.key}: {pattern!r} shows no literal text; mark one, as in «out of memory»"
                )
        of_signs = [facts for sign in rule.sign for facts in (sign.facts, sign.unless, sign.likely)]
        of_remedies = [facts for remedy in rule.remedy for facts in (remedy.facts, remedy.unless)]
        for facts in (rule.needs, *of_signs, *of_remedies):
            check_facts(facts, f"{name}, {rule.key}")
    return whole


@cache
def load_rules() -> Rules:
    """Read the shipped rules, once, and put those that a user added behind them."""
    return Rules((*shipped_rules(), *_added))


_added: list[Rule] = []


def add_rules(rules: Iterable[Rule]) -> None:
    """Add rules to the shipped ones in this process, in place of those that were added before."""
    _added[:] = rules
    load_rules.cache_clear()


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """Read the shipped rules, once."""
    folder = files("assistant.diagnose").joinpath("rules")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".toml"))
    texts = {name: folder.joinpath(name).read_text("utf-8") for name in names}
    return tuple(rule for name, text in texts.items() for rule in read_rules(text, name))
