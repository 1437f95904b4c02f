"""Matches the rules against a log and the facts of a machine, and ranks the causes that fit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from assistant.diagnose.companions import companion_causes
from assistant.diagnose.distributions import sure_names
from assistant.diagnose.environments import environment_causes
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.kits import compiler_command
from assistant.diagnose.log import Log, ended_well, read_log
from assistant.diagnose.predicates import ask
from assistant.diagnose.remedies import named
from assistant.diagnose.rules import PLACEHOLDER, Cause, Rule, RuleRemedy, Rules, Sign, compiled, load_rules
from assistant.diagnose.surroundings import Surroundings
from assistant.diagnose.words import Symptom, fact_causes, is_solved, retold_causes, symptom_causes, symptoms
from assistant.i18n import _
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.privacy import redact

# Each works out the causes of its own kind from a log and its machine.
FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    installer_causes,
    environment_causes,
    companion_causes,
    retold_causes,
    symptom_causes,
)
# Chosen, like the confidences in the rules; the cases in tests/diagnose hold the ranking in place.
UNKNOWN_COSTS = 0.1  # confidence lost for each fact that could not be told
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
_ANY_OTHER = (_("First let the assistant look at the machine."), _DETECT)


class Match(NamedTuple):
    """One cause that fits: its diagnosis and the index of the failing line in the log.

    `origins` holds, for each of its remedies, the rule's remedy that it was made of; None for a question.
    """

    diagnosis: Diagnosis
    line: int | None
    origins: tuple[RuleRemedy | None, ...]


class SignMatch(NamedTuple):
    """How one sign of a rule fits: its confidence, the lines that show it, and which facts are unknown or known."""

    confidence: float
    lines: tuple[int, ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]
    names: Mapping[str, str] = {}


def diagnose(log: Log | bytes | str, machine: Machine | None = None) -> tuple[Diagnosis, ...]:
    """Return the causes that a log and the facts of its machine point to, best first; () for a log without trouble.

    Facts that the log itself states fill what `machine` leaves open. Remedies hold no plans yet (see `matches`).
    """
    read = log if isinstance(log, Log) else read_log(log)
    return tuple(match.diagnosis for match in matches(read, merged(machine or Machine(), read.facts)))


def merged(first: Machine, second: Machine) -> Machine:
    """Return the first machine's facts, and the second's where the first has none."""
    system = ("os", "os_version", "arch", "wsl", "container", "glibc", "python", "python_bits", "rosetta")
    changes: dict[str, Any] = {
        name: getattr(second, name)
        for name in (*system, "gpus", "evidence", "nvidia_driver")
        if getattr(first, name) in {None, ()}
    }
    if first.os and second.wsl and first.os != "linux":
        changes.pop("wsl", None)
    told = {name: version for name, version in second.packages.items() if not _of_a_flavour(name, version, first)}
    return replace(first, **changes, packages={**told, **first.packages}, env={**second.env, **first.env})


def _of_a_flavour(name: str, version: str, machine: Machine) -> bool:
    """Return whether "onnxruntime 1.27.0" is somebody's word for the onnxruntime-gpu 1.27.0 that is installed."""
    flavours = (known for known in machine.packages if known.startswith("onnxruntime-"))
    return name == "onnxruntime" and any(machine.packages[known] == version for known in flavours)


def matches(log: Log, machine: Machine, *, supposing: bool = True) -> tuple[Match, ...]:
    """Return what `diagnose` finds, with the failing lines and the rules' remedies; `machine` holds all facts.

    Without `supposing`, the text itself has to name a cause.
    """
    if is_solved(log) or (ended_well(log) and not symptoms(log)):
        return ()
    search = _search_in(log, load_rules())
    fitting = _fitting(search, [cause for find in FINDERS for cause in find(log, machine)], machine)
    if not fitting and supposing:
        fitting = _fitting(search, [*fact_causes(log, machine)], machine)
    case = Surroundings(log, machine)
    return tuple(
        _explained(rule, match._replace(names=sure_names(case, rule, named(case, rule, match.names))), search, machine)
        for rule, match in fitting
    )


def _fitting(search: _Search, computed: list[Cause], machine: Machine) -> list[tuple[Rule, SignMatch]]:
    """Return the rules whose signs a log shows or whose causes were computed, each by its best match, best first."""
    fitting = []
    for rule in load_rules().rules:
        if False in ask(machine, rule.needs).values():
            continue
        found = [match for sign in rule.sign if (match := _matched(sign, search, machine))]
        for cause in (one for one in computed if one.key == rule.key):
            confidence = cause.confidence - UNKNOWN_COSTS * len(cause.unknown)
            found.append(SignMatch(confidence, cause.lines, cause.unknown, cause.known, cause.names))
        if found:
            fitting.append((rule, max(found, key=lambda match: match.confidence)))
    return sorted(fitting, key=lambda pair: -pair[1].confidence)


def question(told: Iterable[Symptom], machine: Machine) -> Remedy | None:
    """Return what to ask first where symptoms have no cause yet: for a fact that would separate their causes."""
    wanted = (name for symptom in told for name in symptom.asks)
    given = {"gpu": machine.gpus or machine.evidence, "packages": machine.packages, "driver": machine.nvidia_driver}
    unknown = next((name for name in wanted if not (given[name] if name in given else getattr(machine, name))), None)
    return _asked(unknown) if unknown else None


def _asked(name: str) -> Remedy:
    text, commands = _QUESTIONS.get(name, _ANY_OTHER)
    return Remedy(text=text, commands=commands)


class _Search:
    """Finds patterns in a log, each once."""

    def __init__(self, log: Log, rules: Rules) -> None:
        self.log, self._rules = log, rules
        self._found: dict[str, int | None] = {}

    def line(self, pattern: str) -> int | None:
        """Return the index of the first line that a pattern matches in."""
        if pattern not in self._found:
            found = None
            if any(text in self.log.text for text in self._rules.literals[pattern]):
                found = compiled(pattern).search(self.log.text)
            self._found[pattern] = self.log.index_at(found.start()) if found else None
        return self._found[pattern]


_search_in = lru_cache(maxsize=1)(_Search)  # one log is judged for several machines in a row


def _matched(sign: Sign, search: _Search, machine: Machine) -> SignMatch | None:
    found = [line for text in sign.any if (line := search.line(text)) is not None]
    needed = [search.line(text) for text in sign.all]
    if (sign.any and not found) or None in needed or any(search.line(text) is not None for text in sign.none):
        return None
    facts, likely = ask(machine, sign.facts), ask(machine, sign.likely)
    if not all(facts.values()) or False in likely.values() or any(ask(machine, sign.unless).values()):
        return None
    unknown = tuple(name for name, verdict in likely.items() if verdict is None)
    known = (*facts, *(name for name, verdict in likely.items() if verdict))
    lines = (*found[:2], *(line for line in needed if line is not None))
    return SignMatch(sign.confidence - UNKNOWN_COSTS * len(unknown), tuple(dict.fromkeys(lines)), unknown, known)


def _explained(rule: Rule, match: SignMatch, search: _Search, machine: Machine) -> Match:
    log = search.log
    remedies = remedies_for(rule, machine, match.names, lambda pattern: search.line(pattern) is not None)
    questions = [_asked(name) for name in match.unknown]
    shown = (redact(log.lines[line][1].strip()[:READ])[:SHOWN] for line in match.lines)
    diagnosis = Diagnosis(
        key=rule.key,
        title=_(rule.title, **match.names),
        cause=_(rule.general if rule.lacks(match.names) else rule.cause, **match.names),
        evidence=(*shown, *_facts_shown(match, machine)),
        remedies=(*questions, *map(as_remedy, remedies)),
        confidence=round(match.confidence, 2),
        sources=rule.sources,
        severity=rule.severity,
    )
    return Match(diagnosis, match.lines[0] if match.lines else None, (*(None for _question in questions), *remedies))


def _facts_shown(match: SignMatch, machine: Machine) -> tuple[str, ...]:
    """List the facts of the machine that a cause rests on, as `os: windows`."""
    values: dict[str, Any] = {
        "os": " ".join(filter(None, (machine.os, "WSL" if machine.wsl else None))),
        "gpu": ", ".join(gpu.name or gpu.gfx or gpu.vendor.value for gpu in machine.gpus),
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items())[:8]),
        "python": machine.python,
    }
    names = dict.fromkeys({"vendor": "gpu", "integrated": "gpu", "gpus": "gpu"}.get(name, name) for name in match.known)
    return tuple(f"{name}: {values[name]}" for name in names if values.get(name))


def remedies_for(
    rule: Rule,
    machine: Machine,
    names: Mapping[str, str] | None = None,
    says: Callable[[str], bool] = lambda _pattern: False,
) -> tuple[RuleRemedy, ...]:
    """Return the remedies of a rule that can work on a machine; each that does something has a check.

    `names` fill placeholders, `says` tells whether a pattern is in the log, where there is one. Where no remedy can
    work, the first is left as advice alone, without its commands.
    """
    named = tuple(one for one in rule.remedy if all(map(says, one.said)) and not any(map(says, one.unsaid)))
    if rule.computed:
        filled = [(one, _named(one, names or {})) for one in named]
        known = any(one is not same for one, same in filled if same) and not rule.lacks(names or {})
        named = tuple(same for one, same in filled if same and not (one.general and known))
    able = [
        replace(
            remedy,
            commands=tuple(one for one in _filled(remedy.commands, machine) if one and not _absent(one, machine)),
            check=tuple(check for check in remedy.check if _runs_on(check, machine)),
        )
        for remedy in named
        if False not in ask(machine, remedy.facts).values()
        and not any(ask(machine, remedy.unless).values())
        and all(_runs_on(command, machine) for command in remedy.commands)
    ]
    usual = next((remedy.check for remedy in able if remedy.check), ())
    advice = tuple(replace(remedy, commands=(), check=()) for remedy in named[:1])
    return tuple(_checked(remedy, usual) for remedy in able) or advice


def _named(remedy: RuleRemedy, names: Mapping[str, str]) -> RuleRemedy | None:
    """Fill the placeholders of a computed cause's remedy, itself where it has none; None where one has no value."""
    texts = (remedy.text, *remedy.commands, *remedy.check, *(remedy.plan.pins if remedy.plan else ()))
    wanted = {name for text in texts for name in PLACEHOLDER.findall(text)}
    if not wanted <= {*names}:
        return None
    if not wanted:
        return remedy

    def filled(text: str) -> str:
        return PLACEHOLDER.sub(lambda found: names[found[1]], text)

    plan = remedy.plan and replace(remedy.plan, pins=tuple(map(filled, remedy.plan.pins)))
    commands, check = tuple(map(filled, remedy.commands)), tuple(map(filled, remedy.check))
    return replace(remedy, commands=commands, check=check, plan=plan, names=dict(names))


def _filled(commands: tuple[str, ...], machine: Machine) -> list[str]:
    """Put in the command that installs a C++ compiler on a machine's system, "" where none is known."""
    command = compiler_command(machine)
    return [one.replace("{install-compiler}", command) for one in commands]


def _runs_on(command: str, machine: Machine) -> bool:
    """Return whether a command is one of a system that this machine may have."""
    known = {program: systems for systems, row in _programs()["systems"].items() for program in row}
    systems = known.get(_program(command), "linux" if command.startswith("sudo ") else None)
    return systems is None or ask(machine, {"os": systems.split()})["os"] is not False


def _absent(command: str, machine: Machine) -> bool:
    """Return whether this machine's distribution is known to lack a command's program."""
    rows = (row for row in _programs()["lacking"] if _program(command) in row["programs"])
    system = (machine.os_version or "").lower()
    return any(re.search("|".join(row["distributions"]), system) for row in rows)


def _program(command: str) -> str:
    return command.removeprefix("sudo ").partition(" ")[0]


@cache
def _programs() -> dict[str, Any]:
    return tomllib.loads(files("assistant.diagnose").joinpath("programs.toml").read_text("utf-8"))


def _checked(remedy: RuleRemedy, usual: tuple[str, ...]) -> RuleRemedy:
    """Add a check to a remedy that does something: the usual one of its rule, or that its variables are set."""
    if remedy.check or not (remedy.commands or remedy.env or remedy.plan or remedy.launch):
        return remedy
    are_set = (
        f"""python -c "import os; assert os.environ['{name}'] == '{value}'\"""" for name, value in remedy.env.items()
    )
    return replace(remedy, check=usual or tuple(are_set))


def as_remedy(remedy: RuleRemedy) -> Remedy:
    """Turn a rule's remedy into one to show; the plan that it asks for is still to be made."""
    return Remedy(text=_(remedy.text, **remedy.names), commands=remedy.commands, env=remedy.env, check=remedy.check)
