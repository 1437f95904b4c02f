"""Matches the rules against a log and the facts of a machine, and ranks the causes that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from assistant.catalog import load_catalog
from assistant.diagnose.companions import companion_causes
from assistant.diagnose.environments import places_of, sure_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.log import ERROR, Log, ended_well, is_said, read_log
from assistant.diagnose.remedies import family_shown, remedies_for, with_remedy_names
from assistant.diagnose.rules import (
    NO_NAMES,
    Cause,
    Rule,
    RuleRemedy,
    Sign,
    compiled,
    evaluate,
    holds,
    load_rules,
    plain_table,
)
from assistant.i18n import _
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.parsers.mentioned import find_replaced_torch
from assistant.privacy import redact

# Chosen, like the confidences in the rules; the cases in tests/diagnose hold the ranking in place.
PRINTED = 0.85  # confidence from which on a program's own words show a cause, and not what a person retells
READ = 4000  # characters of a line that are searched for secrets: the search costs time
SHOWN = 300  # characters of a line that are shown as evidence
# What goes wrong once another build is there.
_NO_LONGER = re.compile(
    r"not compiled with cuda|not able to use gpu|\bfalse\b|is none|\bnone\b|no longer|error:"
    r"|stopped working|不能用|用不了|没有gpu|变成|失效|报错"
)
# (as wanted, the bare one stays CPU)     a change from one extra of a project to another, told as such
_AS_WANTED = re.compile(r"(?<!not )\bas (?:wanted|intended|designed)\b|符合预期")
_OF_AN_INDEX = re.compile(r"cpu|xpu|cu\d{2,3}|rocm\d[\d.]*")  # 2.9.0+rocmsdk20251116 is a file of somebody's
_OF_AMD = re.compile(r"https://(?:repo|rocm\.nightlies)\.amd\.com/[\w./-]{4,60}")  # AMD's own indexes
_INSTALLS_PACKAGES = re.compile(r"\b(?:pip|uv|conda|mamba) (?:un)?install\b|\buv (?:add|sync|pip)\b")
# What to ask the user when a fact decides and nobody knows it, with the commands that tell it.
_WHICH_GPU = Remedy(text=_("First find out which GPU is in the computer."), commands=("assistant detect",))
_QUESTIONS = {
    "os": Remedy(
        text=_("First find out which system this is: Windows, WSL, native Linux or macOS."),
        commands=("uname -a", "ver"),
    ),
    "vendor": _WHICH_GPU,
    "gpu": _WHICH_GPU,
    "packages": Remedy(text=_("First find out which versions are installed."), commands=("python -m pip list",)),
    "python": Remedy(text=_("First find out which Python runs the program."), commands=("python -VV",)),
    "driver": Remedy(text=_("First find out the version of NVIDIA's driver."), commands=("nvidia-smi",)),
}


class Match(NamedTuple):
    """One cause that fits: its diagnosis and the index of the first line in the log that shows it; None if none does.

    `origins` holds, for each of its remedies, the rule's remedy that it was made of; None for a question or a hint.
    """

    diagnosis: Diagnosis
    line: int | None
    origins: tuple[RuleRemedy | None, ...]


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
    if tells_no_trouble(log):
        return ()
    if not machine.os_version and machine.os in {"linux", None} and (family := family_shown(log.text)):
        machine = replace(machine, os=machine.os or "linux", os_version=family)
    excluded = excluded_causes(log, machine)
    causes = [cause for find in FINDERS for cause in find(log, machine) if cause.key not in excluded]
    ranked = _ranked(causes, machine)
    if not ranked and supposing:
        ranked = _ranked([*_fact_causes(log, machine)], machine)
    context = LogContext(log, machine)
    found = (match_of(rule, cause, context) for rule, cause in ranked)
    return tuple(match for match in found if match)


def excluded_causes(log: Log, machine: Machine) -> set[str]:
    """Return the keys of the causes that a log excludes, whatever speaks for them."""
    rows = (row for row in plain_table("evidence.toml")["excluded"] if holds(machine, {}, row.get("unless", {})))
    places = {None, *places_of(log, machine.container)}
    return {key for row in rows if is_said(row, log) and row.get("place") in places for key in row["keys"]}


def tells_no_trouble(log: Log) -> bool:
    """Return whether a log tells how a problem was solved, or ended well without telling a symptom."""
    return log.prose.is_solved or (ended_well(log) and not (log.prose.symptoms or "trouble" in log.prose.told))


def _ranked(causes: list[Cause], machine: Machine) -> list[tuple[Rule, Cause]]:
    """Return the rules of some causes, each with its most confident cause, the best first; [] if none fits the machine.

    Rules whose `needs` the machine is known to fail are left out.
    """
    fitting = []
    for rule in load_rules().rules:
        own = [cause for cause in causes if cause.key == rule.key]
        if own and False not in evaluate(machine, rule.needs).values():
            fitting.append((rule, max(own, key=lambda cause: cause.confidence)))
    ranked = sorted(fitting, key=lambda pair: -pair[1].confidence)
    best = ranked[0][1] if ranked else None
    # Beside a sure cause, those that only explain the same lines are no help.
    sure_lines = {*best.lines} if best and best.confidence >= PRINTED else set()
    return [pair for pair in ranked if pair[1] is best or not sure_lines or not {*pair[1].lines} <= sure_lines]


def _sign_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause for each sign of a rule that matches in a log and on a machine."""
    problems = _problems(machine) if log.prose.told else set()
    for rule in load_rules().rules:
        for sign in rule.sign:
            if (rule.key in problems or not sign.found) and (cause := _match_sign(rule.key, sign, log, machine)):
                yield cause


def _problems(machine: Machine) -> set[str]:
    """Return the keys of the checks that find something wrong with a machine."""
    return {finding.key for finding in load_rules().check_up(machine) if finding.wrong}


def _match_sign(key: str, sign: Sign, log: Log, machine: Machine) -> Cause | None:
    """Return the cause with a key that its sign shows in a log; None if a pattern or a fact of the machine excludes it.

    Questions in `likely` that have no answer are among the cause's unknown ones.
    """
    any_lines = [line for text in sign.any if (line := log.first_line(text)) is not None]
    all_lines = [line for text in sign.all if (line := log.first_line(text)) is not None]
    if (sign.any and not any_lines) or len(all_lines) < len(sign.all) or any(map(log.holds, sign.none)):
        return None
    if sign.fatal and LogContext(log, machine).went_on(log.start_of(min(any_lines))):
        return None
    prose = log.prose.find(sign) if sign.told or sign.near else ((), NO_NAMES)
    likely = evaluate(machine, sign.likely)
    if prose is None or not holds(machine, sign.facts, sign.unless) or False in likely.values():
        return None
    lines = tuple(dict.fromkeys((*any_lines[:2], *all_lines, *prose[0])))
    known = (*sign.facts, *(name for name, verdict in likely.items() if verdict))
    unknown = tuple(name for name, verdict in likely.items() if verdict is None)
    return Cause(key, sign.confidence, lines, prose[1], known, unknown)


# A remedy, and the rule's remedy that it was made of; None for a question or a hint.
_Pair = tuple[Remedy, RuleRemedy | None]


def match_of(rule: Rule, cause: Cause, context: LogContext) -> Match | None:
    """Return a cause as users read it: the rule's texts with the names, the evidence redacted, the remedies.

    Questions about unknown facts go first. None if no remedy suits the program of the log (see `_for_program`).
    """
    log, machine = context.log, context.machine
    names = sure_names(context, rule, with_remedy_names(context, rule, cause.names))
    places = places_of(log, machine.container)
    questions = [(_QUESTIONS[name], None) for name in cause.unknown if name in _QUESTIONS]
    answers = [(remedy.shown, remedy) for remedy in remedies_for(rule, machine, names, log.holds, places)]
    pairs = _untried_first(_for_program([*questions, *answers], rule, log), log, places)
    if not pairs:
        return None
    remedies, origins = zip(*pairs, strict=True)
    log_lines = (quoted(log.lines[line][1]) for line in cause.lines)
    diagnosis = Diagnosis(
        key=rule.key,
        title=_(rule.title, **names),
        cause=_(rule.general if rule.lacks(names) else rule.cause, **names),
        evidence=(*log_lines, *_decisive_facts(cause, machine)),
        remedies=remedies,
        confidence=round(cause.confidence, 2),
        sources=rule.sources,
        severity=rule.severity,
    )
    return Match(diagnosis, cause.lines[0] if cause.lines else None, origins)


def quoted(line: str) -> str:
    """Return a line of a log as it is shown: redacted and cut."""
    return redact(line.strip()[:READ])[:SHOWN]


def _for_program(pairs: list[_Pair], rule: Rule, log: Log) -> list[_Pair]:
    """Return the remedies of a cause that help with the program of a log; [] if the cause says nothing of it.

    For a program that brings its own runtime, such as Ollama, or is no Python, those that install Python packages are
    left out. If none is left, the first is told without its commands.
    """
    programs = plain_table("programs.toml")
    has_own_runtime = is_said(programs["own_runtime"], log)
    if not has_own_runtime and not is_said(programs["not_python"], log):
        return pairs
    fitting = [
        (remedy, origin)
        for remedy, origin in pairs
        if not (origin and (origin.plan or origin.launch)) and not any(map(_INSTALLS_PACKAGES.search, remedy.commands))
    ]
    if has_own_runtime and not any(origin and (origin.said or not rule.software_only) for _remedy, origin in fitting):
        return []
    return fitting or [(replace(pairs[0][0], commands=(), check=()), None)]


def _untried_first(pairs: list[_Pair], log: Log, places: Collection[str]) -> list[_Pair]:
    """Return the remedies; those tried, to blame, or not to be had where the program runs last, without commands."""
    rows = (row for row in plain_table("evidence.toml")["tried"] if row.get("place") in {None, *places})
    does = [row["does"] for row in rows if is_said(row, log)]
    untried: list[_Pair] = []
    tried: list[_Pair] = []
    for remedy, origin in pairs:
        told = f"{origin.text} {' '.join(remedy.commands)}".lower() if origin else ""
        if any(compiled(pattern).search(told) for pattern in does):
            tried.append((replace(remedy, commands=(), check=()), None))
        else:
            untried.append((remedy, origin))
    return untried + tried


def _decisive_facts(cause: Cause, machine: Machine) -> tuple[str, ...]:
    """Return the machine's facts that decided a cause, as `os: windows`; those without a value are left out."""
    values: dict[str, Any] = {
        "os": " ".join(filter(None, (machine.os, "WSL" if machine.wsl else None))),
        "gpu": ", ".join(gpu.name or gpu.gfx or gpu.vendor.value for gpu in machine.gpus),
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items())[:8]),
        "python": machine.python,
    }
    decisive = dict.fromkeys("gpu" if name in {"vendor", "gpus"} else name for name in cause.known)
    return tuple(f"{name}: {values[name]}" for name in decisive if values.get(name))


def _fact_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what a machine's facts alone show to be wrong, if a text without errors tells of trouble with a GPU.

    An error that a program printed has a cause of its own.
    """
    prose = log.prose
    trouble = prose.told.get("trouble", prose.told.get("how-long"))
    if trouble is None or "about-a-gpu" not in prose.told or prose.asks_for_nothing or ERROR.search(log.text):
        return
    problems = _problems(machine)
    for rule in load_rules().rules:
        if rule.key in problems and any(sign.found for sign in rule.sign):
            yield Cause(rule.key, "fact-alone", (trouble,))


def _replaced_build_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause if a GPU build of torch was removed for a CPU build, or for any other one and something fails."""
    removed, present = find_replaced_torch(log.text) or ("", "")
    plain_is_cpu = "+" not in present and machine.os in {"windows", "macos"}
    fails = present.endswith("+cpu") or plain_is_cpu or _NO_LONGER.search(log.text)
    if not removed or not fails or _AS_WANTED.search(log.text):
        return
    addresses = (_OF_AMD.search(line) for _number, line in log.lines) if "+rocm" in removed else iter(())
    of_amd = next(filter(None, addresses), None)
    variant = removed.partition("+")[2]
    index = of_amd[0].rstrip(".") if of_amd else load_catalog().index_url(variant)
    beside = "".join(f" {name}" for name in ("torchvision", "torchaudio") if name in log.text)
    restore = f'python -m pip install "torch=={removed}"{beside}' + (f" --index-url {index}" if index else "")
    for_other_gpu = not present.endswith("+cpu") and "+" in present  # a build for another maker's GPU tells the rest
    yield Cause(
        "torch-replaced",
        "library-sure" if for_other_gpu or "but you have torch " in log.text else "installer",
        (log.index_at(log.text.find(removed)),),
        {"removed": removed, "present": present}
        | ({"restore": restore} if of_amd or _OF_AN_INDEX.fullmatch(variant) else {}),
    )


# Each works out the causes of its own kind from a log and its machine.
FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    _sign_causes,
    installer_causes,
    companion_causes,
    _replaced_build_causes,
)
