"""The pages of causes: one for each rule, headed by the message that people search for, and a list of all of them.

The messages are those that the rule is tried on (tests/diagnose/cases.jsonl): the lines in which the diagnosis itself
sees the cause. A page is shown to whoever searches for such a line, so it holds all that helps on any system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from written_markdown import block, code, front, head, linked, prose

from assistant.diagnose import PlanRequest, as_remedy, load_rules, matches, read_log, remedies_for
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.i18n import render, say
from assistant.model.machine import Machine
from assistant.model.record import from_plain
from assistant.model.shell import shell_of
from assistant.views import Block, remedy_blocks

CASES = Path(__file__).parents[1] / "tests" / "diagnose" / "cases.jsonl"
SYSTEMS = {
    "Linux": Machine(os="linux", wsl=False),
    "WSL": Machine(os="linux", wsl=True),
    "Windows": Machine(os="windows"),
    "macOS": Machine(os="macos"),
}
LONGEST = 130  # chosen: characters of a message in a heading; search engines show fewer
MESSAGES = 6  # chosen: of a cause that are shown
_PREFIX = re.compile(r"^(?:\[[EWI]:onnxruntime:[^\]]*\] |\[ *[\d.]+\] |[╰─▶× ]+|WARNING: (?=Retrying))")
_FOLDERS = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:)?[\\/](?:[\w.@-]+[\\/]){2,}[\w.@-]+(?=[\\/])")
# How programs begin a message, and words by which other lines tell of a failure.
_ERROR = re.compile(
    r"[\w.]+(?:Error|Exception|Warning|NotAvailable)\b|ERROR|error:|FATAL|FAILED|fatal|Fatal|E: |Error!|No "
)
_FAILS = re.compile(
    r"error|fail|cannot|can't|could not|unable|undefined|denied|\bnot\b|mismatch|unsupported", re.IGNORECASE
)


def causes() -> dict[str, Iterator[str]]:
    """Return the page of each cause and the list of them, as lines by the page's name."""
    rules = sorted(load_rules().rules, key=lambda rule: rule.key)
    return {"rules": _list(rules), **{f"causes/{rule.key}": _page(rule) for rule in rules}}


def _list(rules: list[Rule]) -> Iterator[str]:
    yield "# " + say("Error messages and their causes") + "\n"
    text = say(
        "What the diagnosis knows, each with what helps on which system. `assistant diagnose error.log` finds the one "
        "that fits your log and your machine: many messages have several causes."
    )
    yield f"{text}\n\n" + head(say("Cause"), say("Message"), say("Key"))
    for rule in rules:
        shown = "<br>".join(code(cut(line)).replace("|", "\\|") for line in messages()[rule.key][:2])
        yield f"| [{prose(_title(rule))}](causes/{rule.key}.md) | {shown} | `{rule.key}` |"


@cache
def messages() -> dict[str, tuple[str, ...]]:
    """Return the lines that show each cause, as its programs print them, those that say most first."""
    found: dict[str, dict[str, None]] = {rule.key: {} for rule in load_rules().rules}
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        log = read_log(case["log"])
        match = next(iter(matches(log, from_plain(case.get("machine", {}), Machine, "machine"))), None)
        if match and match.diagnosis.key == case["key"] and match.line is not None:
            following = (line.strip() for _number, line in log.lines[match.line :])
            text = _PREFIX.sub("", next(line for line in following if not line.startswith("raise ")))  # not the source
            if text.isascii() and (_ERROR.match(text) or _FAILS.search(text)) and not text.startswith("("):
                found[case["key"]].setdefault(" ".join(text.split()))
    return {key: tuple(sorted(lines, key=_plainness)) for key, lines in found.items()}


def _plainness(message: str) -> tuple[bool, bool]:
    """Rank a message: an error's own line comes first, then a warning's, then what says less."""
    start = _ERROR.match(message)
    return start is None, bool(start and start[0].lower().endswith("warning"))


def cut(message: str) -> str:
    """Shorten a message for a heading: the folders of a path, then at the end of a sentence or of a word."""
    message = _FOLDERS.sub("…", message)
    if len(message) <= LONGEST:
        return message
    sentence = re.match(rf".{{40,{LONGEST}}}?[.!](?= )", message)
    return sentence[0] if sentence else message[:LONGEST].rpartition(" ")[0].rstrip(" ,;:") + " …"


def _title(rule: Rule) -> str:
    return say(rule.title, **_names(rule))


def _names(rule: Rule) -> dict[str, str]:
    """Return what stands for the placeholders of a cause that is worked out from a log: their names in capitals."""
    texts = (rule.title, rule.cause, *(remedy.text for remedy in rule.remedy))
    commands = (one for remedy in rule.remedy for one in (*remedy.commands, *remedy.check))
    return {name: name.upper() for text in (*texts, *commands) for name in PLACEHOLDER.findall(text)}


def _page(rule: Rule) -> Iterator[str]:
    names, shown = _names(rule), messages()[rule.key]
    title, cause = _title(rule), say(rule.cause, **names)
    yield front(f"{title}. {cause}")
    yield f"# {code(cut(shown[0]))} – {prose(title)}\n" if shown else f"# {prose(title)}\n"
    yield f"{prose(cause)}\n\n## " + say("What helps") + "\n"
    if names:
        yield say("A name in capitals stands for what is in your log or on your machine.") + "\n"
    for text, typed in _typed(rule, names).items():
        yield f"- {prose(text)}\n"
        for blocks, systems in typed.items():
            yield f"  {_where(systems)}\n"
            for _kind, lead, lines in blocks:
                yield (f"  {render(lead)}\n\n" if lead else "") + block(lines, "  ")
    yield "## " + say("Is it this cause?") + "\n"
    yield say("The assistant reads the log and the machine, and names the cause that fits both:") + "\n"
    yield "```console\n$ assistant diagnose error.log\n```\n"
    if len(shown) > 1:
        yield say("It can be printed like this, too:") + "\n"
        yield block(shown[1 : MESSAGES + 1])
    if others := _others(rule):
        yield say("The same message can have other causes:") + "\n"
        yield from (f"- [{prose(_title(other))}]({other.key}.md)" for other in others)
        yield ""
    yield "## " + say("Sources") + "\n"
    yield from (f"- {linked(source)}" for source in rule.sources)
    yield "\n" + say("The key of this cause: {key}. [All causes](../rules.md).", key=f"`{rule.key}`")


def _others(rule: Rule) -> list[Rule]:
    """Return the other rules whose programs print one of a rule's messages."""
    mine = {*messages()[rule.key]}
    return [other for other in load_rules().rules if other is not rule and mine & {*messages()[other.key]}]


def _typed(rule: Rule, names: dict[str, str]) -> dict[str, dict[tuple[Block, ...], list[str]]]:
    """Return a rule's remedies, each with what is typed, by the systems that it is for."""
    found: dict[str, dict[tuple[Block, ...], list[str]]] = {}
    for system, machine in SYSTEMS.items():
        for remedy in remedies_for(rule, machine, names):
            shown = as_remedy(remedy)
            blocks = tuple(remedy_blocks(shown, shell_of(machine.os)))
            setup = _setup(remedy.plan) if remedy.plan else ""
            if setup and not any(setup in block.lines for block in blocks):
                blocks = (Block("plan", "", (setup,)), *blocks)
            by_blocks = found.setdefault(render(shown.text), {})
            if blocks:
                by_blocks.setdefault(blocks, []).append(system)
    return found


def _setup(plan: PlanRequest) -> str:
    """Return the line that installs what a remedy plans, into an environment of its own."""
    options = (("--backend", plan.backend and plan.backend.value), ("--python", plan.python))
    pins = (("--pin", f'"{pin}"') for pin in plan.pins)
    return " ".join(["assistant setup", *(f"{name} {value}" for name, value in (*options, *pins) if value)])


def _where(systems: list[str]) -> str:
    """Name the systems that lines are for, with the shells that take them."""
    by_shell: dict[str, list[str]] = {}
    for name in systems:
        by_shell.setdefault(shell_of(SYSTEMS[name].os).value, []).append(name)
    return "; ".join(f"{', '.join(names)} ({shell})" for shell, names in by_shell.items()) + ":"
