"""Reads what this room knows as data: rules, checks of health and the tables beside them, TOML files by area.

What is misspelt or unknown fails at loading. A `Cause` points to a rule that was worked out rather than matched.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from msgspec import Meta

from assistant.diagnose.predicates import ask, check_facts, installed_of, wrong_in
from assistant.i18n import Message, _
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine, Vendor
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

    def lacks(self, names: Mapping[str, str]) -> bool:
        """Return whether a placeholder of the cause has no name."""
        return self.computed and bool({*PLACEHOLDER.findall(self.cause)} - {*names})

    @property
    def signs(self) -> tuple[str, ...]:
        """All patterns of all signs, by which a log shows the cause."""
        return tuple(text for sign in self.sign for group in (sign.any, sign.all, sign.none) for text in group)

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of all signs and remedies."""
        words = (group for remedy in self.remedy for group in (remedy.said, remedy.unsaid))
        return (*self.signs, *(text for group in words for text in group))


class Case(Record, frozen=True):
    """One answer of a check: what must be known to hold, what must not, and the sentence to show then.

    `live` needs the machine at hand: a recording may not know it. `gpu_plan` needs a plan that takes a GPU.
    """

    severity: Severity
    text: str
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    live: bool = False
    gpu_plan: bool = False


class Check(Record, frozen=True):
    """One thing that can be wrong with a machine, judged by its facts: its cases in order, and who says so."""

    key: str
    source: str
    case: tuple[Case, ...]


class RuleFile(Record, frozen=True):
    """A file of rules and of checks of machines, as of a day (YYYY-MM-DD)."""

    as_of: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    rule: tuple[Rule, ...] = ()
    check: tuple[Check, ...] = ()


class Rules:
    """All rules and checks in the order of their files, and for each pattern the texts of which every match holds one.

    `marks` are those of the signs: of a long log the lines that hold one are kept.
    """

    def __init__(self, read: tuple[RuleFile, ...]) -> None:
        self.rules = tuple(rule for file in read for rule in file.rule)
        self.checks = tuple(check for file in read for check in file.check)
        self.by_key = {rule.key: rule for rule in self.rules}
        self.literals = {text: literals(text) for rule in self.rules for text in rule.patterns}
        self.marks = frozenset().union(*(literals(text) for rule in self.rules for text in rule.signs))


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


def read_rules(text: str, name: str) -> RuleFile:
    """Read one file of rules; raise `BadInput` naming the file, the rule and what is wrong in it."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise wrong_in(name, _("it is not TOML: {reason}", reason=error)) from error
    try:
        file = from_plain(plain, RuleFile, name)
    except BadInput:
        _name_the_rule(plain, name)
        raise
    for rule in file.rule:
        where = f"{name}, {rule.key}"
        for pattern in rule.patterns:
            if reason := _fault(pattern):
                raise wrong_in(where, reason)
        of_signs = [facts for sign in rule.sign for facts in (sign.facts, sign.unless, sign.likely)]
        of_remedies = [facts for remedy in rule.remedy for facts in (remedy.facts, remedy.unless)]
        for facts in (rule.needs, *of_signs, *of_remedies):
            check_facts(facts, where)
    for check in file.check:
        for facts in (facts for case in check.case for facts in (case.facts, case.unless)):
            check_facts(facts, f"{name}, {check.key}")
    return file


def _name_the_rule(plain: Mapping[str, object], name: str) -> None:
    """Raise `BadInput` for the first rule or check of a file that cannot be read, by its key instead of its number."""
    for section, kind in (("rule", Rule), ("check", Check)):
        rows = plain.get(section)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "key" in row:
                from_plain(row, kind, f"{name}, {row['key']}")


def _fault(pattern: str) -> Message | None:
    """Return what is wrong with a pattern; None where it can be searched for."""
    if re.search(r"(?<!\\)[A-Z]", pattern):
        return _("the pattern {pattern} has capitals, but logs are searched in lower case", pattern=pattern)
    if min(map(len, literals(pattern))) < (SHORTEST if pattern.isascii() else 2):
        return _("the pattern {pattern} shows no literal text; mark one, as in «out of memory»", pattern=pattern)
    return None


@cache
def load_rules() -> Rules:
    """Read all rules and checks, once."""
    folder = files("assistant.diagnose")
    shipped = [*folder.joinpath("rules").iterdir(), folder.joinpath("health.toml")]
    shipped = sorted((item for item in shipped if item.name.endswith(".toml")), key=lambda item: item.name)
    return Rules(tuple(read_rules(item.read_text("utf-8"), item.name) for item in shipped))


T = TypeVar("T", bound=Record)


def table(name: str, kind: type[T]) -> T:
    """Read a shipped file as a record, once; raise `BadInput` naming what is wrong in it."""
    read: T = _read(name, kind)
    return read


@cache
def _read(name: str, kind: Any) -> Any:  # noqa: ANN401 - a cache keeps no type variable
    text = files("assistant.diagnose").joinpath(name).read_text("utf-8")
    return from_plain(tomllib.loads(text), kind, name)


NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Cause(NamedTuple):
    """A cause that fits: the key of its rule, and on what it rests.

    `basis` is a row of evidence.toml; `lines` are indexes in `Log.lines`; `names` fill the placeholders of the rule's
    texts and commands; `known` are questions of predicates.py whose answers decided, `unknown` those that would.
    """

    key: str
    basis: str
    lines: tuple[int, ...] = ()
    names: Mapping[str, str] = NO_NAMES
    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        """How often causes on this basis were right."""
        return confidences()[self.basis]


class Basis(Record, frozen=True):
    """A kind of evidence, and how often what rests on it was right in labelled cases."""

    key: str
    text: str
    confidence: float
    right: int = 0
    of: int = 0


class _EvidenceFile(Record, frozen=True):
    as_of: str
    source: str
    basis: tuple[Basis, ...]


@cache
def confidences() -> dict[str, float]:
    """Read the shipped kinds of evidence, once."""
    return {row.key: row.confidence for row in table("evidence.toml", _EvidenceFile).basis}


# Facts by which a check is known to be about packages.
_ABOUT_PACKAGES = {"packages", "installed", "builds_differ"}


def check_up(
    machine: Machine, known: Collection[str] = (), *, live: bool = False, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Judge a machine's facts: one finding for each check that can be answered, unless its key is `known` already."""
    found = (
        _judged(check, machine, live=live, gpu_plan=gpu_plan) for check in load_rules().checks if check.key not in known
    )
    return tuple(finding for finding in found if finding)


def check_packages(machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Return which of a machine's packages do not go together with one another or with its GPUs."""
    asked = [check for check in load_rules().checks if any(_ABOUT_PACKAGES & set(case.facts) for case in check.case)]
    found = (_judged(check, machine, live=False, gpu_plan=gpu_plan) for check in asked)
    return tuple(finding for finding in found if finding and finding.wrong)


def variables() -> tuple[str, ...]:
    """Name the environment variables that checks ask for, which `Machine.env` should hold where they are set."""
    return tuple(
        dict.fromkeys(name for check in load_rules().checks for case in check.case for name in _variables(case))
    )


def _judged(check: Check, machine: Machine, *, live: bool, gpu_plan: bool) -> Finding | None:
    for case in check.case:
        if (case.live and not live) or (case.gpu_plan and not gpu_plan):
            continue
        if all(ask(machine, case.facts).values()) and not any(ask(machine, case.unless).values()):
            installed = _installed(case, machine)
            values = _values(case, machine, installed)
            wrong = case.severity in {Severity.WARNING, Severity.ERROR}
            return Finding(
                key=check.key,
                severity=case.severity,
                text=_(case.text, **{name: value for name, value in values.items() if f"{{{name}}}" in case.text}),
                evidence=tuple(f"{name}=={machine.packages[name]}" for name in installed) if wrong else (),
            )
    return None


def _values(case: Case, machine: Machine, installed: list[str]) -> dict[str, object]:
    """Return what a case's sentence may name, by its placeholders."""
    targets = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    set_here = [name for name in _variables(case) if machine.env.get(name)]
    return {
        "python": machine.python,
        "torch": machine.packages.get("torch"),
        "numpy": machine.packages.get("numpy"),
        "driver": machine.nvidia_driver,
        "gpus": ", ".join(gpu.name or gpu.vendor.value for gpu in machine.gpus),
        "targets": ", ".join(sorted(targets)),
        "memory": machine.memory_gb,
        "disk": machine.disk_free_gb,
        "names": ", ".join(installed),
        "packages": ", ".join(f"{name} {machine.packages[name]}" for name in installed),
        "variables": ", ".join(set_here),
        "value": machine.env.get(set_here[0]) if set_here else None,
    }


def _installed(case: Case, machine: Machine) -> list[str]:
    """Name the packages that a case asks for and that are there."""
    wanted = case.facts.get("installed")
    asked = wanted.get("of") if isinstance(wanted, dict) else case.facts.get("builds_differ")
    return list(installed_of(machine, asked if isinstance(asked, str) else _names(asked)))


def _variables(case: Case) -> list[str]:
    return [name for fact in ("env", "env_any") for name in _names(case.facts.get(fact))]


def _names(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, dict | list) else []
