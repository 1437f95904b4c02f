"""Matches the rules against a log and the facts of a machine, and ranks the causes that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose.builds import compiler_command
from assistant.diagnose.companions import companion_causes
from assistant.diagnose.context import LogContext
from assistant.diagnose.environments import sure_names
from assistant.diagnose.hints import hint_for
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.log import Log, ended_well, read_log
from assistant.diagnose.predicates import evaluate
from assistant.diagnose.remedies import with_remedy_names
from assistant.diagnose.rules import (
    PLACEHOLDER,
    Cause,
    Rule,
    RuleRemedy,
    Rules,
    Sign,
    compiled,
    load_rules,
    plain_table,
)
from assistant.diagnose.words import Symptom, fact_causes, is_solved, retold_causes, symptom_causes, symptoms
from assistant.i18n import Message, _
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine, Vendor
from assistant.model.record import replace
from assistant.privacy import redact

# Each works out the causes of its own kind from a log and its machine.
FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    installer_causes,
    companion_causes,
    retold_causes,
    symptom_causes,
)
# Chosen, like the confidences in the rules; the cases in tests/diagnose hold the ranking in place.
UNKNOWN_COSTS = 0.1  # confidence lost for each fact that could not be told
# The last line of a traceback: who pastes it has pasted what the program said.
_WHOLE = re.compile(
    r"traceback \(most recent call last\)[\s\S]{10,20000}^[\w.]{3,60}(?:error|exception): [^\n]{8}", re.MULTILINE
)
_FAILED = re.compile(
    r"(?<!\bno )(?<!without )error\b|\bfailed\b|\btraceback\b|\bexception\b|\bfatal\b|\bcannot\b|错误|失败"
    r"|(?<!没)(?<!不)报错|异常"
)
_ON_THE_CPU = re.compile(r"\b(?:just|only) (?:the )?cpu\b|\bcpu only\b|只(?:有|能用|用) ?cpu")
PRINTED = 0.85  # confidence from which on a program's own words show a cause, and not what a person retells
READ = 4000  # characters of a line that are searched for secrets: the search costs time
SHOWN = 300  # characters of a line that are shown as evidence
# What to ask the user when a fact decides and nobody knows it, with the commands that tell it.
_DETECT = ("assistant detect",)
_QUESTIONS = {
    "os": (_("First find out which system this is: Windows, WSL, native Linux or macOS."), ("uname -a", "ver")),
    "vendor": (_("First find out which GPU is in the computer."), _DETECT),
    "gpu": (_("First find out which GPU is in the computer."), _DETECT),
    "packages": (_("First find out which versions are installed."), ("python -m pip list",)),
    "python": (_("First find out which Python runs the program."), ("python -VV",)),
    "index": (
        _("First find out which index the installer asks, and whether Python is a 64-bit build."),
        ("python -m pip config list", "python -VV"),
    ),
    "driver": (_("First find out the version of NVIDIA's driver."), ("nvidia-smi",)),
    "container": (_("First find out whether the program runs in a container."), ("cat /proc/1/cgroup",)),
}
_INSTALLS_PACKAGES = re.compile(r"\b(?:pip|uv|conda|mamba) (?:un)?install\b|\buv (?:add|sync|pip)\b")
# What a person says of something that changed nothing, and of the time before an update.
_IN_VAIN = (
    r"no effect|changes? nothing|d(?:oes|id)(?:n.t| not) help|does nothing|in vain|no difference|still the same"
    r"|没用|没有用|没效果|无效|不管用|不起作用|还是一样|没变化"
)
_WORKED_BEFORE = re.compile(
    r"\b(?:last (?:week|month)|yesterday|before|until (?:then|now)|was (?:there|fine|ok)|worked|used to)\b"
    r"|之前|以前|原来|上周|昨天|本来"
)
_ANY_OTHER = (_("First let the assistant look at the machine."), _DETECT)


class Match(NamedTuple):
    """One cause that fits: its diagnosis and the index of the first line in the log that shows it; None if none does.

    `origins` holds, for each of its remedies, the rule's remedy that it was made of; None for a question.
    """

    diagnosis: Diagnosis
    line: int | None
    origins: tuple[RuleRemedy | None, ...]


class SignMatch(NamedTuple):
    """A sign, or a computed cause, that fits: its confidence, the indexes of the lines that show it, and its names.

    `unknown` are the questions of predicates.py that lower the confidence, `known` those whose answers decided; `names`
    fill the placeholders of the rule.
    """

    confidence: float
    lines: tuple[int, ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]
    names: Mapping[str, str] = {}


def diagnose(log: Log | bytes | str, machine: Machine | None = None) -> tuple[Diagnosis, ...]:
    """Return the causes that a log and the facts of its machine point to, best first; () if none fits.

    None fits a log that ended well without telling a symptom, or that tells how a problem was solved.
    Facts that the log itself states fill what `machine` leaves open. Remedies hold no plans yet (see `matches`).
    """
    parsed_log = log if isinstance(log, Log) else read_log(log)
    return tuple(match.diagnosis for match in matches(parsed_log, merged(machine or Machine(), parsed_log.facts)))


def merged(first: Machine, second: Machine) -> Machine:
    """Return the first machine with the second's facts where the first has none; packages and variables are joined.

    The first machine's version of a package, and its value of a variable, go before the second's.
    """
    system = ("os", "os_version", "arch", "wsl", "container", "glibc", "python", "python_bits", "rosetta")
    changes: dict[str, Any] = {
        name: getattr(second, name)
        for name in (*system, "gpus", "evidence", "nvidia_driver")
        if getattr(first, name) in {None, ()}
    }
    if first.os and second.wsl and first.os != "linux":
        changes.pop("wsl", None)
    # onnxruntime 1.27 beside onnxruntime-gpu 1.27 is that variant's other name.
    variants = {version for name, version in first.packages.items() if name.startswith("onnxruntime-")}
    packages = {
        name: version for name, version in second.packages.items() if name != "onnxruntime" or version not in variants
    }
    return replace(first, **changes, packages={**packages, **first.packages}, env={**second.env, **first.env})


def matches(log: Log, machine: Machine, *, supposing: bool = True) -> tuple[Match, ...]:
    """Return what `diagnose` returns, each diagnosis with its line in the log and its rule's remedies.

    `machine` holds all facts, those of the log included. If nothing in the text fits and `supposing` is set, causes are
    derived from the machine's facts alone.
    """
    if is_solved(log) or (ended_well(log) and not symptoms(log)):
        return ()
    search, machine = _search_in(log, load_rules()), _with_distribution(machine, log)
    fitting = _ranked_matches(search, [cause for find in FINDERS for cause in find(log, machine)], machine)
    if not fitting and supposing:
        fitting = _ranked_matches(search, [*fact_causes(log, machine)], machine)
    context = LogContext(log, machine)
    named = (
        (rule, match._replace(names=sure_names(context, rule, with_remedy_names(context, rule, match.names))))
        for rule, match in fitting
    )
    found = [(rule, _to_match(rule, match, search, machine)) for rule, match in named]
    if has_own_runtime(log):
        found = [(rule, adapted) for rule, match in found if (adapted := _for_own_runtime(rule, match, log))]
    elif _names_program(log, "not_python"):
        found = [(rule, _without_python(match)) for rule, match in found]
    ordered = [_done_last(match, log) for _rule, match in found]
    back = _release_before(log, machine, found[0][0].cause) if found and found[0][0].software_only else None
    if back:
        first = ordered[0]
        diagnosis = replace(first.diagnosis, remedies=(back, *first.diagnosis.remedies))
        ordered[0] = first._replace(diagnosis=diagnosis, origins=(None, *first.origins))
    return tuple(ordered)


def has_own_runtime(log: Log) -> bool:
    """Return whether a log is of a program such as Ollama, which has a runtime of its own and needs no PyTorch."""
    return _names_program(log, "own_runtime")


def _names_program(log: Log, kind: str) -> bool:
    """Return whether a log is of a program of a kind in programs.toml, and shows no Python beside it."""
    row = plain_table("programs.toml")[kind]
    is_named, uses_python = (re.search("|".join(row[name]), log.text) for name in ("marks", "unless"))
    return bool(is_named) and not uses_python


def _without_python(match: Match) -> Match:
    """Return a match for a program that is no Python: without remedies that install Python packages.

    If all do, the first is told without its commands.
    """
    pairs = list(zip(match.diagnosis.remedies, match.origins, strict=True))
    left = [
        (remedy, origin)
        for remedy, origin in pairs
        if not (origin and (origin.plan or origin.launch)) and not any(map(_INSTALLS_PACKAGES.search, remedy.commands))
    ]
    remedies, origins = zip(*(left or [(replace(pairs[0][0], commands=(), check=()), None)]), strict=True)
    return match._replace(diagnosis=replace(match.diagnosis, remedies=remedies), origins=origins)


def _done_last(match: Match, log: Log) -> Match:
    """Return a match with those remedies last of which a person says that they are done, or did not help."""
    pairs = list(zip(match.diagnosis.remedies, match.origins, strict=True))
    pairs.sort(key=lambda pair: _is_done(pair[0], log))
    remedies, origins = zip(*pairs, strict=True) if pairs else ((), ())
    return match._replace(diagnosis=replace(match.diagnosis, remedies=remedies), origins=origins)


def _is_done(remedy: Remedy, log: Log) -> bool:
    """Return whether a person says that a remedy is done already, or that its variable changes nothing."""
    text = " ".join((remedy.text.id if isinstance(remedy.text, Message) else remedy.text, *remedy.commands))
    rows = (row for row in plain_table("programs.toml")["done"] if re.search(row["remedy"], text))
    told = "\n".join(line.lower() for (_number, line), written in zip(log.lines, log.written, strict=True) if written)
    if any(re.search("|".join(row["words"]), told, re.ASCII) for row in rows):
        return True
    return any(
        re.search(rf"{name.lower()}[^\n]{{0,80}}?(?:{_IN_VAIN})", told)
        or (name.lower() in log.text and re.search(rf"(?:variable|变量)[^\n]{{0,30}}?(?:{_IN_VAIN})", told))
        for name in remedy.env
    )


def _release_before(log: Log, machine: Machine, about: str) -> Remedy | None:
    """Return the remedy that goes back to the release before an update that a person tells; None if none is told.

    The package that was updated is one that the cause is `about`. PyTorch itself is left alone, which others are made
    for.
    """
    if not _WORKED_BEFORE.search(log.text):
        return None
    for name, version in machine.packages.items():
        if name not in about:
            continue
        spelt = re.escape(name).replace("\\-", "[-_ ]")
        updated, named = r"(?:upgrad|updat|升级|更新)", rf"(?<![\w-]){spelt}(?![\w-])"
        told = rf"{updated}[^\n.,;]{{0,24}}?{named}|{named}[^\n.,;]{{0,12}}?{updated}"
        if name not in {*CORE, *FAMILY} and re.match(r"\d", version) and re.search(told, log.text):
            return Remedy(
                text=_("It began with the update of {package}: go back to the release before it.", package=name),
                commands=(f'python -m pip install "{name}<{version.partition("+")[0]}"',),
                check=(f"python -m pip show {name}",),
            )
    return None


def _for_own_runtime(rule: Rule, match: Match, log: Log) -> Match | None:
    """Return a match as it is told of a program with a runtime of its own; None if it tells nothing then.

    Remedies that install Python packages are left out. If none for this program is left, a cause in Python's packages
    that the program itself printed is told with what to look at in that program.
    """
    pairs = [
        (remedy, origin)
        for remedy, origin in zip(match.diagnosis.remedies, match.origins, strict=True)
        if not (origin and (origin.plan or origin.launch)) and not any(map(_INSTALLS_PACKAGES.search, remedy.commands))
    ]
    if not any(origin and (origin.said or not rule.software_only) for _remedy, origin in pairs):
        hint = hint_for(log, Machine(), about_a_gpu=False)
        if hint is None or match.diagnosis.confidence < PRINTED:
            return None
        pairs = [(hint, None)]
    remedies, origins = zip(*pairs, strict=True)
    return match._replace(diagnosis=replace(match.diagnosis, remedies=remedies), origins=origins)


def _ranked_matches(search: _Search, causes: list[Cause], machine: Machine) -> list[tuple[Rule, SignMatch]]:
    """Return the rules with a sign that matches or a cause among `causes`, each with its best match, the best first.

    Rules whose `needs` the machine is known to fail are left out.
    """
    fitting = []
    for rule in load_rules().rules:
        if False in evaluate(machine, rule.needs).values():
            continue
        candidates = [match for sign in rule.sign if (match := _match_sign(sign, search, machine))]
        for cause in (cause for cause in causes if cause.key == rule.key):
            confidence = cause.confidence - UNKNOWN_COSTS * len(cause.unknown)
            candidates.append(SignMatch(confidence, cause.lines, cause.unknown, cause.known, cause.names))
        if candidates:
            fitting.append((rule, max(candidates, key=lambda match: match.confidence)))
    ranked = sorted(fitting, key=lambda pair: -pair[1].confidence)
    best = ranked[0][1] if ranked else None
    # Beside a sure cause, those that only explain the same lines are no help.
    sure_lines = set(best.lines) if best and best.confidence >= PRINTED else set()
    return [pair for pair in ranked if pair[1] is best or not sure_lines or not set(pair[1].lines) <= sure_lines]


def next_step(log: Log, machine: Machine) -> Remedy | None:
    """Return what to look at or to find out next for a log without a known cause; None if nothing can be said.

    An error that says all itself goes first, then the first unknown fact that tells the causes of the text's symptoms
    apart, then a check of the GPU.
    """
    seen = symptoms(log)
    step = hint_for(log, Machine(), about_a_gpu=False) or _question(seen, machine)
    step = step or hint_for(log, machine, about_a_gpu=bool(seen) or bool(_ON_THE_CPU.search(log.text)))
    if step is None and seen == () and _FAILED.search(log.text) and not _WHOLE.search(log.text):
        return Remedy(text=_("Paste the whole output, from the command on: what matters often stands above the end."))
    return step


def _question(seen: Iterable[Symptom], machine: Machine) -> Remedy | None:
    """Return a remedy that asks for the first unknown fact in `Symptom.asks`; None if all of them are known.

    Such a fact tells the causes of a symptom apart.
    """
    others = {gpu.vendor for gpu in machine.gpus} - {Vendor.NVIDIA, Vendor.UNKNOWN}
    is_without_nvidia = bool(others) and all(gpu.vendor in others for gpu in machine.gpus)
    facts = (
        name
        for symptom in seen
        for name in symptom.asks
        if not (name == "driver" and is_without_nvidia)  # nvidia-smi is all that tells it
    )
    values = {"gpu": machine.gpus or machine.evidence, "packages": machine.packages, "driver": machine.nvidia_driver}
    unknown = next((name for name in facts if not (values[name] if name in values else getattr(machine, name))), None)
    return _question_about(unknown) if unknown else None


def _question_about(fact: str) -> Remedy:
    """Return the remedy that tells the user how to find out a fact, such as "os" or "driver"."""
    text, commands = _QUESTIONS.get(fact, _ANY_OTHER)
    return Remedy(text=text, commands=commands)


class _Search:
    """A log with the patterns that were searched in it; each pattern is searched once."""

    def __init__(self, log: Log, rules: Rules) -> None:
        self.log, self._rules = log, rules
        self._found: dict[str, int | None] = {}

    def line(self, pattern: str) -> int | None:
        """Return the index of the first line in which a pattern matches; None if it matches nowhere."""
        if pattern not in self._found:
            match = None
            if any(text in self.log.text for text in self._rules.literals[pattern]):
                match = compiled(pattern).search(self.log.text)
            self._found[pattern] = self.log.index_at(match.start()) if match else None
        return self._found[pattern]

    def went_on(self, line: int) -> bool:
        """Return whether the program went on without what the line at an index lacks."""
        return LogContext(self.log, Machine()).went_on(self.log.start_of(line))


_search_in = lru_cache(maxsize=1)(_Search)  # one log is judged for several machines in a row


def _match_sign(sign: Sign, search: _Search, machine: Machine) -> SignMatch | None:
    """Return the match of a rule's sign in a log and on a machine; None if a pattern or a fact excludes it.

    Each question in `likely` that has no answer costs confidence.
    """
    any_lines = [line for text in sign.any if (line := search.line(text)) is not None]
    all_lines = [search.line(text) for text in sign.all]
    if (sign.any and not any_lines) or None in all_lines or any(search.line(text) is not None for text in sign.none):
        return None
    if sign.fatal and search.went_on(min(any_lines)):
        return None
    facts, likely = evaluate(machine, sign.facts), evaluate(machine, sign.likely)
    if not all(facts.values()) or False in likely.values() or any(evaluate(machine, sign.unless).values()):
        return None
    unknown = tuple(name for name, verdict in likely.items() if verdict is None)
    decisive = (*facts, *(name for name, verdict in likely.items() if verdict))
    lines = (*any_lines[:2], *(line for line in all_lines if line is not None))
    return SignMatch(sign.confidence - UNKNOWN_COSTS * len(unknown), tuple(dict.fromkeys(lines)), unknown, decisive)


def _to_match(rule: Rule, match: SignMatch, search: _Search, machine: Machine) -> Match:
    """Return a match as users read it: the rule's texts with the names, the evidence redacted, the remedies."""
    log = search.log
    remedies = remedies_for(rule, machine, match.names, lambda pattern: search.line(pattern) is not None)
    questions = [(_question_about(name), None) for name in match.unknown]
    answers = [(as_remedy(remedy), remedy) for remedy in remedies]
    vague = [pair for pair in questions if pair[0].text == _ANY_OTHER[0]]  # they tell nobody what to look at
    exact = [pair for pair in questions if pair not in vague]
    pairs: list[tuple[Remedy, RuleRemedy | None]] = [*exact, *answers, *vague]
    log_lines = (redact(log.lines[line][1].strip()[:READ])[:SHOWN] for line in match.lines)
    diagnosis = Diagnosis(
        key=rule.key,
        title=_(rule.title, **match.names),
        cause=_(rule.general if rule.lacks(match.names) else rule.cause, **match.names),
        evidence=(*log_lines, *_decisive_facts(match, machine)),
        remedies=tuple(remedy for remedy, _origin in pairs),
        confidence=round(match.confidence, 2),
        sources=rule.sources,
        severity=rule.severity,
    )
    return Match(diagnosis, match.lines[0] if match.lines else None, tuple(origin for _remedy, origin in pairs))


def _decisive_facts(match: SignMatch, machine: Machine) -> tuple[str, ...]:
    """Return the machine's facts that decided a match, as `os: windows`; those without a value are left out."""
    values: dict[str, Any] = {
        "os": " ".join(filter(None, (machine.os, "WSL" if machine.wsl else None))),
        "gpu": ", ".join(gpu.name or gpu.gfx or gpu.vendor.value for gpu in machine.gpus),
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items())[:8]),
        "python": machine.python,
    }
    decisive = dict.fromkeys(
        {"vendor": "gpu", "integrated": "gpu", "gpus": "gpu"}.get(name, name) for name in match.known
    )
    return tuple(f"{name}: {values[name]}" for name in decisive if values.get(name))


def remedies_for(
    rule: Rule,
    machine: Machine,
    names: Mapping[str, str] | None = None,
    is_in_log: Callable[[str], bool] = lambda _pattern: False,
) -> tuple[RuleRemedy, ...]:
    """Return the remedies of a rule that are not excluded on a machine, without commands whose program it lacks.

    `names` fill placeholders; `is_in_log` returns whether a pattern is in the log, by default that none is. A remedy
    that does something gets a check if its rule or its variables give one. If no remedy remains, the first that the log
    admits is returned as advice, without its commands.
    """
    candidates = tuple(
        remedy for remedy in rule.remedy if all(map(is_in_log, remedy.said)) and not any(map(is_in_log, remedy.unsaid))
    )
    if rule.computed:
        pairs = [(remedy, _fill_placeholders(remedy, names or {})) for remedy in candidates]
        has_specific = any(remedy is not filled for remedy, filled in pairs if filled) and not rule.lacks(names or {})
        candidates = tuple(filled for remedy, filled in pairs if filled and not (remedy.general and has_specific))
    compiler_install = compiler_command(machine)
    able = [
        replace(
            remedy,
            commands=_available(
                [text.replace("{install-compiler}", compiler_install) for text in remedy.commands], machine
            ),
            check=tuple(check for check in remedy.check if _runs_on(check, machine)),
        )
        for remedy in candidates
        if False not in evaluate(machine, remedy.facts).values()
        and not any(evaluate(machine, remedy.unless).values())
        and all(_runs_on(command, machine) for command in remedy.commands)
    ]
    usual = next((remedy.check for remedy in able if remedy.check), ())
    advice = tuple(replace(remedy, commands=(), check=()) for remedy in candidates[:1])
    told_once = {remedy.text: remedy for remedy in reversed(able)}
    told_once |= {remedy.text: remedy for remedy in reversed(able) if remedy.commands or remedy.plan}
    order = dict.fromkeys(remedy.text for remedy in able)
    return tuple(_with_check(told_once[text], usual) for text in order) or advice


def _fill_placeholders(remedy: RuleRemedy, names: Mapping[str, str]) -> RuleRemedy | None:
    """Return a computed cause's remedy with its placeholders filled; None if one of them has no name."""
    texts = (remedy.text, *remedy.commands, *remedy.check, *(remedy.plan.pins if remedy.plan else ()))
    placeholders = {name for text in texts for name in PLACEHOLDER.findall(text)}
    if not placeholders <= {*names}:
        return None
    if not placeholders:
        return remedy

    def fill(text: str) -> str:
        return PLACEHOLDER.sub(lambda match: names[match[1]], text)

    plan = remedy.plan and replace(remedy.plan, pins=tuple(map(fill, remedy.plan.pins)))
    commands, check = tuple(map(fill, remedy.commands)), tuple(map(fill, remedy.check))
    return replace(remedy, commands=commands, check=check, plan=plan, names=dict(names))


def _runs_on(command: str, machine: Machine) -> bool:
    """Return whether a command may run on a machine: False if its program is of systems that this one is not."""
    systems_of = {
        program: systems for systems, row in plain_table("programs.toml")["systems"].items() for program in row
    }
    systems = systems_of.get(_program_name(command), "linux" if command.startswith("sudo ") else None)
    return systems is None or evaluate(machine, {"os": systems.split()})["os"] is not False


def _available(commands: list[str], machine: Machine) -> tuple[str, ...]:
    """Return the commands whose program this machine's distribution has; () if none is left of those that differ."""
    able = tuple(command for command in commands if command and not _is_unavailable(command, machine))
    manager_is_left = any(_program_name(command) in plain_table("programs.toml")["has"] for command in able)
    return able if manager_is_left or len(able) == len([*filter(None, commands)]) else ()


def _is_unavailable(command: str, machine: Machine) -> bool:
    """Return whether this machine's Linux distribution is of a family that lacks a command's program.

    An unknown one is taken for one of the many that have apt or dnf.
    """
    family, families = (
        family_of(machine.os_version or ""),
        plain_table("programs.toml")["has"].get(_program_name(command)),
    )
    if not family:
        return bool(families) and not {"ubuntu", "fedora"} & {*families}
    return bool(families) and family not in families


def family_of(system: str) -> str:
    """Return the family of Linux distributions that a system's name is of, such as "fedora"; "" if it is of none."""
    rows = plain_table("programs.toml")["family"]
    return next((row["name"] for row in rows if re.search("|".join((*row["names"], row["name"])), system.lower())), "")


def _with_distribution(machine: Machine, log: Log) -> Machine:
    """Return a machine with the distribution that a log's tools show, if no fact names its system."""
    if machine.os_version or machine.os not in {"linux", None}:
        return machine
    rows = plain_table("programs.toml")["family"]
    shown = (row["name"] for row in rows if "text" in row and re.search("|".join(row["text"]), log.text))
    name = next(shown, "")
    return replace(machine, os=machine.os or "linux", os_version=name) if name else machine


def _program_name(command: str) -> str:
    """Return the first word of a command, or the second after sudo."""
    return command.removeprefix("sudo ").partition(" ")[0]


def _with_check(remedy: RuleRemedy, usual_check: tuple[str, ...]) -> RuleRemedy:
    """Return a remedy with a check if it does something: its own, the usual one, or that its variables are set."""
    if remedy.check or not (remedy.commands or remedy.env or remedy.plan or remedy.launch):
        return remedy
    are_set = (
        f"""python -c "import os; assert os.environ['{name}'] == '{value}'\"""" for name, value in remedy.env.items()
    )
    return replace(remedy, check=usual_check or tuple(are_set))


def as_remedy(remedy: RuleRemedy) -> Remedy:
    """Return a rule's remedy as users see it; a plan that it asks for is still to be made."""
    return Remedy(text=_(remedy.text, **remedy.names), commands=remedy.commands, env=remedy.env, check=remedy.check)
