"""Reads what this room knows as data: rules, checks of health and the tables beside them, TOML files by area.

The facts of a rule are questions about a machine (`QUESTIONS`); each is answered by yes, no, or None for unknown.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import TorchWheel, has_code, identify_gpu, load_catalog, number
from assistant.catalog.companions import installed_of_clash
from assistant.i18n import _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.record import Record, from_plain, replace

Verdict = bool | None
UNKNOWN_COSTS = 0.1  # chosen: confidence lost for each fact that could not be told


def _os(machine: Machine, systems: list[str]) -> Verdict:
    """Return whether the system is among `systems`: linux, windows, macos, native-linux (outside WSL), wsl (inside).

    None if it is unknown, or unknown whether it is inside WSL where that matters.
    """
    linux = {"wsl"} if machine.wsl else {"native-linux"} if machine.wsl is False else {"native-linux", "wsl"}
    is_apple = any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus)
    system = machine.os or ("macos" if is_apple else "linux" if machine.wsl else None)
    if system is None:
        return None
    possible = linux if system == "linux" else {system}
    listed = {*systems, "native-linux", "wsl"} if "linux" in systems else {*systems}
    return True if possible <= listed else None if possible & listed else False


def _vendor(machine: Machine, vendors: list[str]) -> Verdict:
    """Return whether a GPU's maker is among `vendors`; None if no GPU is known, or none with a known maker."""
    present = {gpu.vendor.value for gpu in machine.gpus} - {Vendor.UNKNOWN.value}
    return bool(present & set(vendors)) if present else None


def _gpu(machine: Machine, pattern: str) -> Verdict:
    """Return whether a pattern is in the GPUs' names, targets and PCI ids, joined by " + "; None if none is known."""
    texts = [f"{gpu.name or ''} {gpu.gfx or ''} {gpu.pci_id or ''}".lower() for gpu in machine.gpus]
    texts = list(dict.fromkeys(text for text in texts if text.strip() and "unstated" not in text))
    return bool(re.search(pattern, " + ".join(texts))) if texts else None


def _all_hold(verdicts: Iterable[Verdict]) -> Verdict:
    """Return whether all hold: False if one does not, else None if one is unknown."""
    answers = list(verdicts)
    return False if False in answers else None if None in answers else True


def _packages(machine: Machine, specifiers: dict[str, str]) -> Verdict:
    """Return whether each package fits (see `_fits`); None if one is not listed, False if one that is does not fit."""
    versions = machine.packages
    return _all_hold(
        _fits(versions[name], specifier) if name in versions else None for name, specifier in specifiers.items()
    )


def _fits(value: object, specifier: str) -> Verdict:
    """Return whether a version or a number fits: `*` any, `>=2,<3` a range, `/x/` a pattern; None if it is neither."""
    if specifier == "*":
        return True
    if specifier.startswith("/"):
        return bool(re.search(specifier.strip("/"), str(value).lower()))
    return is_within(re.split("[+ ]", str(value))[0].rstrip("t"), specifier)  # 2.9.1+cu130     3.13t


@lru_cache(maxsize=4096)
def is_within(version: object, specifier: str) -> Verdict:
    """Return whether a version or a number is within a specifier; None if one of them is none."""
    try:
        return SpecifierSet(specifier, prereleases=True).contains(Version(str(version)))
    except (InvalidSpecifier, InvalidVersion):
        return None


def _attribute(name: str, fits: Callable[[Any, Any], Verdict]) -> Callable[[Machine, Any], Verdict]:
    """Return a question: whether an attribute of the machine fits the rule's argument; None if it is None."""

    def question(machine: Machine, argument: object) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else fits(value, argument)

    return question


def _matches(value: object, pattern: str) -> bool:
    """Return whether a pattern is in a value's text in lower case."""
    return bool(re.search(pattern, str(value).lower()))


def installed_of(machine: Machine, names: list[str] | str) -> tuple[str, ...]:
    """Return the installed packages among `names`, or among those of the catalogue's clash that has the key `names`."""
    if isinstance(names, str):
        return installed_of_clash(names, machine.packages)
    return tuple(name for name in names if name in machine.packages)


def _builds_differ(machine: Machine, names: list[str]) -> Verdict:
    """Return whether packages come from different indexes, by their local versions (`2.9.1+cu130`); never None."""
    versions = [machine.packages[name] for name in names if name in machine.packages]
    tags = {re.split(r"\.git|\.lw", version.partition("+")[2])[0] for version in versions if "+" in version}
    return len(tags) > 1


def _targets_differ(machine: Machine, minimum: int) -> Verdict:
    """Return whether AMD's GPUs have at least so many different targets (gfx…); None if none is known."""
    targets = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    return len(targets) >= minimum if targets else None


def _driver_fits(machine: Machine, expected: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether NVIDIA's driver runs (or, for False, does not run) torch's CUDA; None if one is unknown."""
    build, driver = _installed_build(machine), number(machine.nvidia_driver)
    on_windows = machine.os == "windows" or bool(machine.wsl)
    minimum = load_catalog().drivers.get((build.variant, on_windows)) if build else None
    return (driver >= minimum.least) == expected if minimum and minimum.least and driver else None


def _code_fits(machine: Machine, expected: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether torch's build holds code for a GPU at least (or, for False, for none); None if that is unknown."""
    build = _installed_build(machine)
    pairs = [(gpu, identify_gpu(gpu)) for gpu in machine.gpus]
    if build and build.gfx:
        targets = {gpu.gfx or (identity.gfx if identity else None) for gpu, identity in pairs} - {None}
        return bool(targets & {*build.gfx}) == expected if targets else None
    codes = {gpu.compute_capability or (identity.compute_capability if identity else None) for gpu, identity in pairs}
    capabilities = [number(code) for code in codes if code]
    if build is None or not build.sm or not capabilities:
        return None
    return any(has_code(build.sm, build.ptx, capability, alone=False) for capability in capabilities) == expected


def _installed_build(machine: Machine) -> TorchWheel | None:
    """Return the catalogue's row of the torch that a machine has, by version, tag (+cu128) and platform.

    A version without a tag is the build that PyPI has for the platform. None if there is no torch, or no such row.
    """
    version, _plus, tag = machine.packages.get("torch", "").partition("+")
    platform = {"windows": "windows_amd64", "macos": "macos_arm64"}.get(machine.os or "", "linux_x86_64")
    if platform == "linux_x86_64" and machine.arch in {"aarch64", "arm64"}:
        platform = "linux_aarch64"
    variant = tag or load_catalog().build_of(version, "pypi", platform)
    wheels = load_catalog().wheels(platform, None, variant) if version and variant else ()
    return next((wheel for wheel in wheels if wheel.version == version and wheel.variant == variant), None)


def _variables_match(machine: Machine, patterns: dict[str, str]) -> Iterator[Verdict]:
    """Yield for each variable whether its value matches its pattern; None for one that is not listed."""
    for name, pattern in patterns.items():
        yield bool(re.search(pattern, machine.env[name])) if name in machine.env else None


QUESTIONS: dict[str, Callable[[Machine, Any], Verdict]] = {
    "os": _os,
    "os_version": _attribute("os_version", _matches),
    "arch": _attribute("arch", _matches),
    "vendor": _vendor,
    "gpu": _gpu,
    "gpus": lambda machine, least: len(machine.gpus) >= least if machine.gpus else None,
    "packages": _packages,
    "python": _attribute("python", _fits),
    "python_bits": _attribute("python_bits", operator.eq),
    "rosetta": _attribute("rosetta", operator.eq),
    "container": _attribute("container", _matches),
    "driver": _attribute("nvidia_driver", _fits),
    "disk_free_gb": _attribute("disk_free_gb", _fits),
    "memory_gb": _attribute("memory_gb", _fits),
    "driver_fits": _driver_fits,
    "code_fits": _code_fits,
    # Whether so many are known to be: never None, though others may be installed as well.
    "installed": lambda machine, condition: len(installed_of(machine, condition["of"])) >= condition["least"],
    "builds_differ": _builds_differ,
    "targets": _targets_differ,
    "env": lambda machine, patterns: _all_hold(_variables_match(machine, patterns)),
    # Whether at least one does; None if none of them is listed.
    "env_any": lambda machine, patterns: max(
        (found for found in _variables_match(machine, patterns) if found is not None), default=None
    ),
}


def evaluate(machine: Machine, facts: Mapping[str, Any]) -> dict[str, Verdict]:
    """Return the answers to a rule's questions about a machine, by the question's name; None is "unknown"."""
    return {name: QUESTIONS[name](machine, argument) for name, argument in facts.items()}


def holds(machine: Machine, facts: Mapping[str, Any], unless: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Return whether all of `facts` are known to hold on a machine, and none of `unless` is."""
    return all(evaluate(machine, facts).values()) and not any(evaluate(machine, unless).values())


# The parts of a pattern: `\.` (a character), `\d` or `[a-z]`, `(` `)` `|`, `?` `*` `{0,3}`, `+` `{2}` `.` `^`, `x`.
_PARTS = re.compile(
    r"\\([^A-Za-z0-9])|\\.|\[(?:\\.|[^\]\\]){1,200}\]|([()|])|([?*]|\{0(?:,\d*)?\})\??|[+^$.]\??|\{\d+(?:,\d*)?\}\??|(.)",
    re.DOTALL,
)
_MARKED = re.compile("«([^»]{1,200})»")
PLACEHOLDER = re.compile(r"\{([a-z_]{2,20})\}")


FOUND = 0.85  # chosen: confidence in what is told and a check finds


class Sign(Record, frozen=True):
    """One way in which a cause shows: all that is named must hold.

    `any`: patterns of which one matches in the log; `all`: patterns that all do; `none`: patterns of which none may.
    Patterns are lower-case regular expressions; «…» marks texts of which each match holds one (see `literals`).
    `facts` must be known to hold, `unless` must not be known to hold; `likely` must not be known to fail, and if
    it is unknown the user is asked. `fatal` asks that the program did not go on without what the first line of `any`
    lacks.

    In prose.toml, of what a person wrote: `told` and `silent` are keys of what is told and is not (see `told_lines`);
    `near` are patterns that all match near one another, `without` patterns of which none may. `named` is the
    placeholder that the first of `near` fills. `found`: the check with the rule's key finds the cause on this machine.
    """

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    likely: dict[str, object] = {}
    fatal: bool = False
    confidence: float = 0.8
    told: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    named: str = ""
    found: bool = False


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
    """One remedy of a rule: it can work if no `facts` are known not to hold, all `requires` hold and no `unless` does.

    It is for those whose log matches each pattern in `said` and none in `unsaid`: what a person may not change, the
    program that runs, the way a package was installed. It is for one of the places `place` alone, and for none of
    `outside` (see environments.toml).
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
    requires: dict[str, object] = {}
    said: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    names: dict[str, str] = {}

    @property
    def placeholders(self) -> set[str]:
        """The names of the placeholders in its text, commands, check and pins."""
        texts = (self.text, *self.commands, *self.check, *(self.plan.pins if self.plan else ()))
        return {name for text in texts for name in PLACEHOLDER.findall(text)}

    @property
    def shown(self) -> Remedy:
        """The remedy as users see it; a plan that it asks for is still to be made."""
        return Remedy(text=_(self.text, **self.names), commands=self.commands, env=self.env, check=self.check)


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
    that a function works out needs no sign. Texts and commands may hold placeholders such as {package}: a remedy with
    one that is not filled is left out, and `general` is said in place of such a cause.
    `check` are the commands that show whether a remedy worked, unless that has its own.
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
    general: str = ""
    check: tuple[str, ...] = ()
    asks: Asks | None = None

    def lacks(self, names: Mapping[str, str]) -> bool:
        """Return whether `cause` has a placeholder that `names` does not fill."""
        return bool({*PLACEHOLDER.findall(self.cause)} - {*names})


class Case(Record, frozen=True):
    """One answer of a check: what must be known to hold, what must not, and the sentence to show then.

    `live` needs the machine at hand: a recording may not know it. `gpu_plan` needs a plan that takes a GPU.
    """

    severity: Severity
    text: str
    facts: dict[str, Any] = {}
    unless: dict[str, Any] = {}
    live: bool = False
    gpu_plan: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the environment variables that its facts read."""
        return tuple(name for fact in ("env", "env_any") for name in self.facts.get(fact, ()))


class Check(Record, frozen=True):
    """One thing that can be wrong with a machine, judged by its facts: its cases in order, and who says so."""

    key: str
    source: str
    case: tuple[Case, ...]


class ProseSign(Sign, frozen=True, kw_only=True):
    """A sign in what people write, of the rule with this key."""

    key: str
    confidence: float = 0.78  # chosen: below what a program's own words are worth


class RuleFile(Record, frozen=True):
    """A file of rules, of checks of machines or of signs in what people write, as of a day (YYYY-MM-DD).

    `found` are the checks whose finding explains what is told, by the key of that.
    """

    as_of: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    rule: tuple[Rule, ...] = ()
    check: tuple[Check, ...] = ()
    sign: tuple[ProseSign, ...] = ()
    found: dict[str, tuple[str, ...]] = {}


class Rules:
    """All rules and checks in the order of their files, and for each pattern the texts of which every match holds one.

    `marks` are those of the signs: of a long log the lines that hold one are kept. `variables` are the names of the
    environment variables that checks read, which `Machine.env` should hold if set.
    """

    def __init__(self, rule_files: Sequence[RuleFile]) -> None:
        # Of messages that the same words retell, the one in an earlier row goes first.
        told = enumerate(sign for file in rule_files for sign in file.sign)
        by_check = [(thing, key) for file in rule_files for thing, keys in file.found.items() for key in keys]
        signs = [ProseSign(key=key, told=(thing,), found=True, confidence=FOUND) for thing, key in by_check]
        signs += [replace(sign, confidence=sign.confidence - (place / 1e6 if sign.near else 0)) for place, sign in told]
        self.rules = tuple(
            replace(rule, sign=(*rule.sign, *(sign for sign in signs if sign.key == rule.key)))
            for file in rule_files
            for rule in file.rule
        )
        self.checks = tuple(check for file in rule_files for check in file.check)
        self.by_key = {rule.key: rule for rule in self.rules}
        of_signs = [text for rule in self.rules for sign in rule.sign for text in (*sign.any, *sign.all, *sign.none)]
        of_remedies = [text for rule in self.rules for each in rule.remedy for text in (*each.said, *each.unsaid)]
        self.literals = {text: literals(text) for text in (*of_signs, *of_remedies)}
        self.marks = frozenset().union(*map(literals, of_signs))
        self.variables = tuple(
            dict.fromkeys(name for check in self.checks for case in check.case for name in case.variables)
        )

    def check_up(
        self,
        machine: Machine,
        skipped: Collection[str] = (),
        *,
        live: bool = False,
        gpu_plan: bool = True,
        of_packages: bool = False,
    ) -> tuple[Finding, ...]:
        """Return a finding for each check of which a case holds on a machine, unless its key is in `skipped`.

        `live` admits cases that need the machine at hand, `gpu_plan` those that need a plan that takes a GPU. With
        `of_packages`, only what is wrong with packages is found: among one another, or with the machine's GPUs.
        """
        findings = []
        for check in self.checks:
            is_of_packages = any({"packages", "installed", "builds_differ"} & {*case.facts} for case in check.case)
            admitted = (case for case in check.case if live >= case.live and gpu_plan >= case.gpu_plan)
            case = next((case for case in admitted if holds(machine, case.facts, case.unless)), None)
            finding = _finding_of(check, case, machine) if case and check.key not in skipped else None
            if finding and (not of_packages or (is_of_packages and finding.wrong)):
                findings.append(finding)
        return tuple(findings)


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
    """Return a pattern as a regular expression, without its marks « and »; a Chinese character ends an English word."""
    return re.compile(pattern.replace("«", "").replace("»", ""), re.ASCII)


@cache
def load_rules() -> Rules:
    """Return all shipped rules and checks, read once; raise `BadInput` for an unknown key or a wrong kind in them."""
    folder = files("assistant.diagnose")
    shipped = [*folder.joinpath("rules").iterdir(), *map(folder.joinpath, ("health.toml", "prose.toml"))]
    named = {item.name: tomllib.loads(item.read_text("utf-8")) for item in shipped if item.name.endswith(".toml")}
    shared = plain_table("shared.toml")
    return Rules([from_plain(_with_shared(named[name], shared), RuleFile, name) for name in sorted(named)])


def _with_shared(value: Any, shared: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever TOML holds
    """Return a file's value with what shared.toml has in place of "@NAME" in lists and of `same = "NAME"` in rows."""
    if isinstance(value, dict):
        row = {**shared["remedy"][value["same"]], **value} if "same" in value else value
        return {key: _with_shared(each, shared) for key, each in row.items() if key != "same"}
    if isinstance(value, list):
        parts = (shared["texts"][each[1:]] if str(each).startswith("@") else [each] for each in value)
        return [_with_shared(each, shared) for part in parts for each in part]
    return value


@cache
def plain_table(name: str) -> dict[str, Any]:
    """Return a shipped TOML file of this room that is only looked up, read once."""
    return tomllib.loads(files("assistant.diagnose").joinpath(name).read_text("utf-8"))


NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Cause(NamedTuple):
    """A cause that fits: the key of its rule, and on what it rests.

    `basis` is a row of evidence.toml, or a sign's confidence; `lines` are indexes in `Log.lines`; `names` fill the
    placeholders of the rule's texts and commands; `known` are questions whose answers decided, `unknown` those that
    would.
    """

    key: str
    basis: str | float
    lines: tuple[int, ...] = ()
    names: Mapping[str, str] = NO_NAMES
    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        """How often causes on this basis are right, from 0 to 1, less `UNKNOWN_COSTS` for each unknown question."""
        basis = self.basis
        if isinstance(basis, str):
            basis = float(plain_table("evidence.toml")["basis"][basis]["confidence"])
        return basis - UNKNOWN_COSTS * len(self.unknown)


def _finding_of(check: Check, case: Case, machine: Machine) -> Finding:
    """Return the finding of a check's case that holds on a machine, its sentence filled with the machine's values."""
    names = case.facts.get("installed", {}).get("of") or case.facts.get("builds_differ", ())
    installed = installed_of(machine, names)
    variables_set = [name for name in case.variables if machine.env.get(name)]
    values = {
        "python": machine.python,
        "torch": machine.packages.get("torch"),
        "numpy": machine.packages.get("numpy"),
        "driver": machine.nvidia_driver,
        "gpus": ", ".join(gpu.name or gpu.vendor.value for gpu in machine.gpus),
        "targets": ", ".join(sorted({gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx})),
        "memory": machine.memory_gb,
        "disk": machine.disk_free_gb,
        "names": ", ".join(installed),
        "packages": ", ".join(f"{name} {machine.packages[name]}" for name in installed),
        "variables": ", ".join(variables_set),
        "value": machine.env[variables_set[0]] if variables_set else None,
    }
    text = _(case.text, **{name: value for name, value in values.items() if f"{{{name}}}" in case.text})
    finding = Finding(key=check.key, severity=case.severity, text=text)
    evidence = tuple(f"{name}=={machine.packages[name]}" for name in installed)
    return replace(finding, evidence=evidence) if finding.wrong else finding
