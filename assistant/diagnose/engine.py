"""Matches the rules against a log and the facts of a machine, and ranks the causes that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from assistant.catalog import load_catalog
from assistant.diagnose.companions import companion_causes
from assistant.diagnose.environments import sure_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.log import Log, ended_well, read_log
from assistant.diagnose.remedies import family_shown, remedies_for, with_remedy_names
from assistant.diagnose.rules import (
    NO_NAMES,
    Cause,
    Rule,
    RuleRemedy,
    Rules,
    Sign,
    compiled,
    evaluate,
    holds,
    load_rules,
    plain_table,
)
from assistant.diagnose.words import compiled_ascii
from assistant.i18n import _
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Machine, Vendor
from assistant.model.record import replace
from assistant.parsers.mentioned import find_replaced_torch
from assistant.privacy import redact

# Chosen, like the confidences in the rules; the cases in tests/diagnose hold the ranking in place.
UNKNOWN_COSTS = 0.1  # confidence lost for each fact that could not be told
PRINTED = 0.85  # confidence from which on a program's own words show a cause, and not what a person retells
READ = 4000  # characters of a line that are searched for secrets: the search costs time
SHOWN = 300  # characters of a line that are shown as evidence
# The last line of a traceback: who pastes it has pasted what the program said.
_WHOLE = re.compile(
    r"traceback \(most recent call last\)[\s\S]{10,20000}^[\w.]{3,60}(?:error|exception): [^\n]{8}", re.MULTILINE
)
_FAILED = re.compile(
    r"(?<!\bno )(?<!without )error\b|\bfailed\b|\btraceback\b|\bexception\b|\bfatal\b|\bcannot\b|错误|失败"
    r"|(?<!没)(?<!不)报错|异常"
)
_ON_THE_CPU = re.compile(r"\b(?:just|only) (?:the )?cpu\b|\bcpu only\b|只(?:有|能用|用) ?cpu")
# RuntimeError: …     error: subprocess-exited-with-error
_ERROR = re.compile(r"\w(?:error|exception)\b ?:|^error:", re.MULTILINE)
# What goes wrong once another build is there.
_NO_LONGER = re.compile(
    r"not compiled with cuda|not able to use gpu|\bfalse\b|is none|\bnone\b|no longer|error:"
    r"|stopped working|不能用|用不了|没有gpu|变成|失效|报错"
)
# (as wanted, the bare one stays CPU)     a change from one extra of a project to another, told as such
_AS_WANTED = re.compile(r"(?<!not )\bas (?:wanted|intended|designed)\b|符合预期")
_OF_AMD = re.compile(r"https://(?:repo|rocm\.nightlies)\.amd\.com/[\w./-]{4,60}")  # AMD's own indexes
_INSTALLS_PACKAGES = re.compile(r"\b(?:pip|uv|conda|mamba) (?:un)?install\b|\buv (?:add|sync|pip)\b")
# What to ask the user when a fact decides and nobody knows it, with the commands that tell it.
_DETECT = ("assistant detect",)
_ANY_OTHER = (_("First let the assistant look at the machine."), _DETECT)
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


class Match(NamedTuple):
    """One cause that fits: its diagnosis and the index of the first line in the log that shows it; None if none does.

    `origins` holds, for each of its remedies, the rule's remedy that it was made of; None for a question.
    """

    diagnosis: Diagnosis
    line: int | None
    origins: tuple[RuleRemedy | None, ...]


class SignMatch(NamedTuple):
    """A sign, or a computed cause, that fits: its confidence, the indexes of the lines that show it, and its names.

    `unknown` are the questions of rules.py that lower the confidence, `known` those whose answers decided; `names`
    fill the placeholders of the rule.
    """

    confidence: float
    lines: tuple[int, ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]
    names: Mapping[str, str] = NO_NAMES


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
    if log.prose.is_solved or (ended_well(log) and not log.prose.symptoms):
        return ()
    if not machine.os_version and machine.os in {"linux", None} and (family := family_shown(log.text)):
        machine = replace(machine, os=machine.os or "linux", os_version=family)
    search = _search_in(log, load_rules())
    fitting = _ranked_matches(search, [cause for find in FINDERS for cause in find(log, machine)], machine)
    if not fitting and supposing:
        fitting = _ranked_matches(search, [*_fact_causes(log, machine)], machine)
    context = LogContext(log, machine)
    found = []
    for rule, match in fitting:
        names = sure_names(context, rule, with_remedy_names(context, rule, match.names))
        adapted = _for_program(rule, _to_match(rule, match._replace(names=names), search, machine), log)
        found += [adapted] if adapted else []
    return tuple(found)


def _for_program(rule: Rule, match: Match, log: Log) -> Match | None:
    """Return a match as it is told of the program of a log; None if it tells nothing then.

    For one that brings its own runtime, such as Ollama, or is no Python, remedies that install Python packages are left
    out. If none is left, the first is told without its commands; with an own runtime, a cause that the program itself
    printed with what to look at in that program.
    """
    has_own_runtime = _names_program(log, "own_runtime")
    if not has_own_runtime and not _names_program(log, "not_python"):
        return match
    pairs = [
        (remedy, origin)
        for remedy, origin in zip(match.diagnosis.remedies, match.origins, strict=True)
        if not (origin and (origin.plan or origin.launch)) and not any(map(_INSTALLS_PACKAGES.search, remedy.commands))
    ]
    if has_own_runtime and not any(origin and (origin.said or not rule.software_only) for _remedy, origin in pairs):
        hint = _hint_for(log, Machine(), about_a_gpu=False)
        if hint is None or match.diagnosis.confidence < PRINTED:
            return None
        pairs = [(hint, None)]
    pairs = pairs or [(replace(match.diagnosis.remedies[0], commands=(), check=()), None)]
    remedies, origins = zip(*pairs, strict=True)
    return match._replace(diagnosis=replace(match.diagnosis, remedies=remedies), origins=origins)


def _names_program(log: Log, kind: str) -> bool:
    """Return whether a log is of a program of a kind in programs.toml, and shows no Python beside it."""
    row = plain_table("programs.toml")[kind]
    is_named, uses_python = (re.search("|".join(row[name]), log.text) for name in ("marks", "unless"))
    return bool(is_named) and not uses_python


def _ranked_matches(search: _Search, causes: list[Cause], machine: Machine) -> list[tuple[Rule, SignMatch]]:
    """Return the rules with a sign that matches or a cause among `causes`, each with its best match, the best first.

    Rules whose `needs` the machine is known to fail are left out.
    """
    problems = (
        {finding.key for finding in load_rules().check_up(machine) if finding.wrong} if search.prose.told else set()
    )
    fitting = []
    for rule in load_rules().rules:
        if False in evaluate(machine, rule.needs).values():
            continue
        signs = (sign for sign in rule.sign if not sign.found or rule.key in problems)
        candidates = [match for sign in signs if (match := _match_sign(sign, search, machine))]
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


class _Search:
    """A log with the patterns that were searched in it, each once, and with what a person wrote in it."""

    def __init__(self, log: Log, rules: Rules) -> None:
        self.log, self._rules = log, rules
        self.prose = log.prose
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

    def holds(self, pattern: str) -> bool:
        """Return whether a pattern matches in the log."""
        return self.line(pattern) is not None


_search_in = lru_cache(maxsize=1)(_Search)  # one log is judged for several machines in a row


def _match_sign(sign: Sign, search: _Search, machine: Machine) -> SignMatch | None:
    """Return the match of a rule's sign in a log and on a machine; None if a pattern or a fact excludes it.

    Each question in `likely` that has no answer costs confidence.
    """
    any_lines = [line for text in sign.any if (line := search.line(text)) is not None]
    all_lines = [line for text in sign.all if (line := search.line(text)) is not None]
    if (sign.any and not any_lines) or len(all_lines) < len(sign.all) or any(map(search.holds, sign.none)):
        return None
    if sign.fatal and search.went_on(min(any_lines)):
        return None
    prose = search.prose.find(sign) if sign.told or sign.near else ((), NO_NAMES)
    likely = evaluate(machine, sign.likely)
    if prose is None or not holds(machine, sign.facts, sign.unless) or False in likely.values():
        return None
    unknown = tuple(name for name, verdict in likely.items() if verdict is None)
    decisive = (*sign.facts, *(name for name, verdict in likely.items() if verdict))
    lines = tuple(dict.fromkeys((*any_lines[:2], *all_lines, *prose[0])))
    return SignMatch(sign.confidence - UNKNOWN_COSTS * len(unknown), lines, unknown, decisive, prose[1])


def _to_match(rule: Rule, match: SignMatch, search: _Search, machine: Machine) -> Match:
    """Return a match as users read it: the rule's texts with the names, the evidence redacted, the remedies.

    Questions about unknown facts go first; one that tells nobody what to look at goes last.
    """
    log = search.log
    questions = [(_question_about(name), None) for name in match.unknown]
    answers = [(remedy.shown, remedy) for remedy in remedies_for(rule, machine, match.names, search.holds)]
    vague = [pair for pair in questions if pair[0].text == _ANY_OTHER[0]]
    pairs = [*(pair for pair in questions if pair not in vague), *answers, *vague]
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
    decisive = dict.fromkeys("gpu" if name in {"vendor", "integrated", "gpus"} else name for name in match.known)
    return tuple(f"{name}: {values[name]}" for name in decisive if values.get(name))


def next_step(log: Log, machine: Machine) -> tuple[tuple[Finding, ...], Remedy | None]:
    """Return the symptoms that a log without a known cause tells, and what to look at or to find out next.

    An error that says all itself goes first, then the first unknown fact that tells the causes of the symptoms apart,
    then a check of the GPU; None if nothing can be said.
    """
    seen = log.prose.symptoms
    step = _hint_for(log, Machine(), about_a_gpu=False) or _question(seen, machine)
    step = step or _hint_for(log, machine, about_a_gpu=bool(seen) or bool(_ON_THE_CPU.search(log.text)))
    if step is None and not seen and _FAILED.search(log.text) and not _WHOLE.search(log.text):
        step = Remedy(text=_("Paste the whole output, from the command on: what matters often stands above the end."))
    return tuple(Finding(key=row["key"], severity=Severity.INFO, text=_(row["text"])) for row in seen), step


def _hint_for(log: Log, machine: Machine, *, about_a_gpu: bool) -> Remedy | None:
    """Return what to look at next for a text without a known cause, by hints.toml; None if nothing can be said.

    Programs go before errors, and the error that stands last in the text before those above it, and any of them before
    the check of the GPU, which is given if the text is `about_a_gpu` and all GPUs are of one maker.
    """
    rows = plain_table("hints.toml")["hint"]
    vendors = {gpu.vendor.value for gpu in machine.gpus}
    ranked = [
        (row.get("program", False), 0 if row.get("program") else found[-1].start(), row)
        for row in rows
        if (found := [*compiled_ascii("|".join(row.get("any", ["(?!)"]))).finditer(log.text)])
        and all(compiled_ascii(pattern).search(log.text) for pattern in row.get("all", ()))
    ]
    hints = [row for _program, _at, row in sorted(ranked, key=lambda entry: entry[:2], reverse=True)]
    if about_a_gpu:
        hints += [row for row in rows if {row.get("vendor")} == vendors and machine.os in row.get("os", [machine.os])]
    return Remedy(text=_(hints[0]["text"]), commands=tuple(hints[0].get("commands", ()))) if hints else None


def _question(seen: Iterable[dict[str, Any]], machine: Machine) -> Remedy | None:
    """Return a remedy that asks for the first unknown fact that symptoms ask for; None if all of them are known.

    Such a fact tells the causes of a symptom apart. The driver is asked for where nvidia-smi can tell it.
    """
    vendors = {gpu.vendor for gpu in machine.gpus}
    values = {"gpu": machine.gpus or machine.evidence, "packages": machine.packages, "driver": machine.nvidia_driver}
    if vendors and not vendors & {Vendor.NVIDIA, Vendor.UNKNOWN}:
        values["driver"] = "none"
    facts = (name for symptom in seen for name in symptom.get("asks", ()))
    unknown = next((name for name in facts if not (values[name] if name in values else getattr(machine, name))), None)
    return _question_about(unknown) if unknown else None


def _question_about(fact: str) -> Remedy:
    """Return the remedy that tells the user how to find out a fact, such as "os" or "driver"."""
    text, commands = _QUESTIONS.get(fact, _ANY_OTHER)
    return Remedy(text=text, commands=commands)


def _fact_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what a machine's facts alone show to be wrong, if a text without errors tells of trouble with a GPU.

    An error that a program printed has a cause of its own.
    """
    prose = log.prose
    trouble = prose.told.get("trouble", prose.told.get("how-long"))
    if trouble is None or "about-a-gpu" not in prose.told or prose.asks_for_nothing or _ERROR.search(log.text):
        return
    problems = {finding.key for finding in load_rules().check_up(machine) if finding.wrong}
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
    index = of_amd[0].rstrip(".") if of_amd else load_catalog().index_url(removed.partition("+")[2])
    beside = "".join(f" {name}" for name in ("torchvision", "torchaudio") if name in log.text)
    restore = f'python -m pip install "torch=={removed}"{beside}' + (f" --index-url {index}" if index else "")
    for_other_gpu = not present.endswith("+cpu") and "+" in present  # a build for another maker's GPU tells the rest
    yield Cause(
        "torch-replaced",
        "library-sure" if for_other_gpu or "but you have torch " in log.text else "installer",
        (log.index_at(log.text.find(removed)),),
        {"removed": removed, "present": present, "restore": restore},
    )


# Each works out the causes of its own kind from a log and its machine.
FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    installer_causes,
    companion_causes,
    _replaced_build_causes,
)
