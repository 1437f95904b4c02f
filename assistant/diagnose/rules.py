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

from assistant.diagnose.predicates import check_facts, evaluate, installed_of, rule_file_error
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
    `facts` must be known to hold, `unless` must not be known to hold; `likely` must not be known to fail, and if
    it is unknown the user is asked. `fatal` asks that the program did not go on
    without what the first line of `any` lacks.
    """

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    likely: dict[str, object] = {}
    fatal: bool = False
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
    """One remedy of a rule; `facts` and `unless` are the conditions under which it can work, as in `Sign`.

    It is for those whose log matches each pattern in `said` and none in `unsaid`: what a person may not change, the
    program that runs, the way a package was installed.
    `launch` is set if applications are to be started for the backend of the diagnosis' first plan. `names` are the
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

    `started` is said if one of the program's arguments holds `argument`, else `asks`; `unnamed` if no program is
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
        """Return whether this is a computed cause with a placeholder in `cause` that `names` does not fill."""
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

    def __init__(self, rule_files: tuple[RuleFile, ...]) -> None:
        self.rules = tuple(rule for file in rule_files for rule in file.rule)
        self.checks = tuple(check for file in rule_files for check in file.check)
        self.by_key = {rule.key: rule for rule in self.rules}
        self.literals = {text: literals(text) for rule in self.rules for text in rule.patterns}
        self.marks = frozenset().union(*(literals(text) for rule in self.rules for text in rule.signs))


@cache
def literals(pattern: str) -> frozenset[str]:
    """Return texts of which every match holds at least one: those marked with «…», else one for each alternative.

    Unmarked, it is an alternative's longest run of plain characters outside all brackets; "" if it has none.
    """
    if marked := _MARKED.findall(pattern):
        return frozenset(re.sub(r"\\(.)", r"\1", text) for text in marked)
    runs_of_alternatives, depth = [[""]], 0
    for escaped, bracket, optional, plain in _PARTS.findall(pattern):
        depth += {"(": 1, ")": -1}.get(bracket, 0)
        runs = runs_of_alternatives[-1]
        if bracket == "|" and depth == 0:
            runs_of_alternatives.append([""])
        elif depth == 0 and (escaped or plain):
            runs[-1] += escaped or plain
        else:
            runs[-1] = runs[-1][:-1] if optional else runs[-1]
            runs.append("")
    return frozenset(max(runs, key=len) for runs in runs_of_alternatives)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as a regular expression, without its marks « and »; texts are searched with plain quotes."""
    return re.compile(pattern.replace("«", "").replace("»", ""))


def read_rules(text: str, name: str) -> RuleFile:
    """Return the rules and checks of a TOML text; raise `BadInput` naming the file, the rule and what is wrong in it.

    `name` is the file's, for that message.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise rule_file_error(name, _("it is not TOML: {reason}", reason=error)) from error
    try:
        file = from_plain(data, RuleFile, name)
    except BadInput:
        _raise_for_broken_rule(data, name)
        raise
    for rule in file.rule:
        where = f"{name}, {rule.key}"
        for pattern in rule.patterns:
            if reason := _pattern_fault(pattern):
                raise rule_file_error(where, reason)
        sign_facts = [facts for sign in rule.sign for facts in (sign.facts, sign.unless, sign.likely)]
        remedy_facts = [facts for remedy in rule.remedy for facts in (remedy.facts, remedy.unless)]
        for facts in (rule.needs, *sign_facts, *remedy_facts):
            check_facts(facts, where)
    for check in file.check:
        for facts in (facts for case in check.case for facts in (case.facts, case.unless)):
            check_facts(facts, f"{name}, {check.key}")
    return file


def _raise_for_broken_rule(data: Mapping[str, object], name: str) -> None:
    """Raise `BadInput` for the first rule or check that cannot be read, by its key instead of its number.

    Return if there is none with a key: then the fault is elsewhere in the file.
    """
    for section, kind in (("rule", Rule), ("check", Check)):
        rows = data.get(section)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "key" in row:
                from_plain(row, kind, f"{name}, {row['key']}")


def _pattern_fault(pattern: str) -> Message | None:
    """Return what is wrong with a pattern, as a sentence; None if it can be searched for."""
    if re.search(r"(?<!\\)[A-Z]", pattern):
        return _("the pattern {pattern} has capitals, but logs are searched in lower case", pattern=pattern)
    if min(map(len, literals(pattern))) < (SHORTEST if pattern.isascii() else 2):
        return _("the pattern {pattern} shows no literal text; mark one, as in «out of memory»", pattern=pattern)
    return None


@cache
def load_rules() -> Rules:
    """Return all shipped rules and checks, read once; raise `BadInput` for what is wrong in them."""
    folder = files("assistant.diagnose")
    shipped = [*folder.joinpath("rules").iterdir(), folder.joinpath("health.toml")]
    shipped = sorted((item for item in shipped if item.name.endswith(".toml")), key=lambda item: item.name)
    return Rules(tuple(read_rules(item.read_text("utf-8"), item.name) for item in shipped))


@cache
def plain_table(name: str) -> dict[str, Any]:
    """Return a shipped TOML file of this room that is only looked up, read once."""
    return tomllib.loads(files("assistant.diagnose").joinpath(name).read_text("utf-8"))


T = TypeVar("T", bound=Record)


def table(name: str, kind: type[T]) -> T:
    """Return a shipped file of this room as a record, read once; raise `BadInput` for what is wrong in it."""
    rows: T = _read_table(name, kind)
    return rows


@cache
def _read_table(name: str, kind: Any) -> Any:  # noqa: ANN401 - see below
    """Return what `table` returns; it is a function of its own since a cache keeps no type variable."""
    return from_plain(plain_table(name), kind, name)


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
        """How often causes on this basis were right in labelled cases, from 0 to 1."""
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
    """Return how often causes were right, from 0 to 1, by the key of the evidence they rest on."""
    return {row.key: row.confidence for row in table("evidence.toml", _EvidenceFile).basis}


# Facts by which a check is known to be about packages.
_ABOUT_PACKAGES = {"packages", "installed", "builds_differ"}


def check_up(
    machine: Machine, skipped: Collection[str] = (), *, live: bool = False, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Return a finding for each check of which a case holds on a machine, unless its key is in `skipped`.

    `live` admits cases that need the machine at hand, `gpu_plan` those that need a plan that takes a GPU.
    """
    findings = (
        _finding_of(check, machine, live=live, gpu_plan=gpu_plan)
        for check in load_rules().checks
        if check.key not in skipped
    )
    return tuple(finding for finding in findings if finding)


def check_packages(machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Return the findings of what is wrong with a machine's packages: among one another, or with its GPUs."""
    checks = [check for check in load_rules().checks if any(_ABOUT_PACKAGES & set(case.facts) for case in check.case)]
    findings = (_finding_of(check, machine, live=False, gpu_plan=gpu_plan) for check in checks)
    return tuple(finding for finding in findings if finding and finding.wrong)


def variables() -> tuple[str, ...]:
    """Return the names of the environment variables that checks read, which `Machine.env` should hold if set."""
    return tuple(
        dict.fromkeys(name for check in load_rules().checks for case in check.case for name in _case_variables(case))
    )


def _finding_of(check: Check, machine: Machine, *, live: bool, gpu_plan: bool) -> Finding | None:
    """Return the finding of the first case of a check that is known to hold on a machine; None if none is."""
    for case in check.case:
        if (case.live and not live) or (case.gpu_plan and not gpu_plan):
            continue
        if all(evaluate(machine, case.facts).values()) and not any(evaluate(machine, case.unless).values()):
            condition = case.facts.get("installed")
            packages = condition.get("of") if isinstance(condition, dict) else case.facts.get("builds_differ")
            listed = packages if isinstance(packages, str) else _as_names(packages)
            installed = list(installed_of(machine, listed))
            values = _sentence_values(case, machine, installed)
            wrong = case.severity in {Severity.WARNING, Severity.ERROR}
            return Finding(
                key=check.key,
                severity=case.severity,
                text=_(case.text, **{name: value for name, value in values.items() if f"{{{name}}}" in case.text}),
                evidence=tuple(f"{name}=={machine.packages[name]}" for name in installed) if wrong else (),
            )
    return None


def _sentence_values(case: Case, machine: Machine, installed: list[str]) -> dict[str, object]:
    """Return the values for a case's sentence, by placeholder: all that any sentence may hold."""
    targets = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    variables_set = [name for name in _case_variables(case) if machine.env.get(name)]
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
        "variables": ", ".join(variables_set),
        "value": machine.env.get(variables_set[0]) if variables_set else None,
    }


def _case_variables(case: Case) -> list[str]:
    """Return the names of the environment variables that a case's facts read."""
    return [name for fact in ("env", "env_any") for name in _as_names(case.facts.get(fact))]


def _as_names(value: object) -> list[str]:
    """Return the keys of a mapping or the items of a list, as texts; [] for anything else."""
    return list(map(str, value)) if isinstance(value, dict | list) else []
