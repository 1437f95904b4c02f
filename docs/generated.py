"""Writes the pages of reference/ from data: commands, what each GPU gets, messages and their causes."""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx
from support import SYSTEMS, Cell, matrix

from assistant.catalog import load_catalog
from assistant.catalog.identity import CardRow
from assistant.catalog.tables import load_table
from assistant.cli.commands import cli
from assistant.diagnose import PlanRequest, load_rules, matches, read_log, remedies_for
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.i18n import Text, render, use_language
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import from_plain, replace
from assistant.model.shell import shell_of
from assistant.plan import make_plans
from assistant.views import Block, remedy_blocks

HERE = Path(__file__).parent / "reference"
CASES = HERE.parents[1] / "tests" / "diagnose" / "cases.jsonl"
TITLES = {"windows": "Windows", "linux": "Linux", "wsl": "WSL", "macos": "macOS"}
MAKERS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}
AREAS = {
    "cuda": "NVIDIA and CUDA",
    "rocm": "AMD and ROCm",
    "directml": "DirectML",
    "xpu": "Intel and XPU",
    "mps": "Apple and MPS",
    "onnx": "ONNX models",
    "installers": "pip, uv, conda and package indexes",
    "packaging": "Python, environments and packages",
    "python": "Python itself and what it needs of the system",
    "companions": "Packages that are compiled for one torch",
    "building": "Building from source",
    "runtime": "While a program runs",
    "states": "Drivers and devices in a bad state",
    "common": "Any backend",
}
MESSAGES = 4  # chosen: of a cause that are shown
_PREFIX = re.compile(r"^(?:\[[EWI]:onnxruntime:[^\]]*\] |\[ *[\d.]+\] |[╰─▶× ]+|WARNING: (?=Retrying))")
# How programs begin a message, and words by which other lines report a failure.
_ERROR = re.compile(
    r"[\w.]+(?:Error|Exception|Warning|NotAvailable)\b|ERROR|error:|FATAL|FAILED|fatal|Fatal|E: |Error!|No "
)
_FAILS = re.compile(
    r"error|fail|cannot|can't|could not|unable|undefined|denied|\bnot\b|mismatch|unsupported", re.IGNORECASE
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx reads them."""
    app.connect("builder-inited", lambda _app: write_all())
    return {"parallel_read_safe": True}


def write_all() -> None:
    """Write each page, and only where it changed."""
    use_language("en")
    pages = {"commands": commands(), "gpus": gpus(), **cards(), "causes": areas(), **causes()}
    for left in {*HERE.rglob("*.md")} - {HERE / f"{name}.md" for name in pages}:
        left.unlink()
    for name, lines in pages.items():
        path, text = HERE / f"{name}.md", "\n".join(lines) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def commands() -> Iterator[str]:
    """Yield the page of commands, each with its help."""
    yield "# Commands\n"
    yield "Exit codes: 0 done, 1 the work failed, 2 bad input or usage, 3 nothing fits, 130 stopped.\n"
    context = click.Context(cli, info_name="assistant", max_content_width=100)
    for name in cli.list_commands(context):
        if command := cli.get_command(context, name):
            yield from _command(command, click.Context(command, context, name, max_content_width=100), "##")


def _command(command: click.Command, context: click.Context, level: str) -> Iterator[str]:
    yield f"{level} `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from _command(below, click.Context(below, context, name, max_content_width=100), level + "#")


def gpus() -> Iterator[str]:
    """Yield the table of families of GPUs by system."""
    yield "# Which GPU gets which PyTorch\n"
    yield (
        f"For the newest driver and Python {SYSTEMS['linux'].python}, by the tables of "
        f"{load_catalog().as_of}. `assistant plan` answers for the computer at hand, with its driver "
        "and its Python. A dash means that the system does not run on computers with such a GPU.\n"
    )
    yield _head("Family", "Example", *TITLES.values())
    cells: dict[str, dict[str, Cell]] = defaultdict(dict)
    for cell in matrix():
        cells[cell.family.family][cell.system] = cell
    for family, by_system in cells.items():
        example = by_system["linux"].family.name
        yield _row(_plain(family), _plain(example), *(_cell(by_system[system]) for system in TITLES))
    yield "\nEvery card by its name:\n\n```{toctree}\n:maxdepth: 1\n" + "\n".join(cards()) + "\n```\n"


def _cell(cell: Cell) -> str:
    """Describe what a family gets on a system."""
    return "–" if cell.plan is None else _in_short(cell.plan)


def _in_short(plan: Plan | None) -> str:
    """Name a plan's backend, its torch and the tag of its index."""
    if plan is None:
        return "no wheel"
    if plan.backend is Backend.CPU:
        return f"CPU, {plan.torch}"
    sets = "".join(f", `{name}={value}`" for name, value in plan.env.items() if name.startswith("HSA"))
    return f"{plan.backend.title}, {plan.torch} (`{plan.variant}`){sets}"


def cards() -> dict[str, Iterator[str]]:
    """Return a page for each maker of cards, as lines by its name."""
    return {f"cards/{vendor.value}": _maker(vendor) for vendor in MAKERS} | {"cards/apple": _apple()}


def _maker(vendor: Vendor) -> Iterator[str]:
    """Yield the table of a maker's cards: those that get the same on every system share a row."""
    systems = [system for system in TITLES if system != "macos"]
    what = {Vendor.NVIDIA: "compute capability", Vendor.AMD: "target"}.get(vendor, "generation")
    yield f"# {MAKERS[vendor]}: what each card gets\n"
    yield f"For the newest driver. The {what} of a card decides; `assistant plan --why` gives the reasons.\n"
    yield _head(what.capitalize(), "Cards", *(TITLES[system] for system in systems))
    found: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for row in load_table(f"gpus_{vendor.value}.cards", CardRow).rows:
        if not row.generic:
            target = row.gfx or row.cc or row.generation or ""
            found[target, *_answers(vendor, row, systems)] |= dict.fromkeys(row.names)
    for (target, *answers), names in sorted(found.items(), key=lambda one: _natural(one[0][0])):
        yield _row(_plain(target), _plain(", ".join(names)), *answers)


def _answers(vendor: Vendor, row: CardRow, systems: Iterable[str]) -> Iterator[str]:
    """Yield what a computer with one card gets on each system; NVIDIA's own computers have Linux on Arm alone."""
    pci = f"8086:{row.ids[0].partition(':')[0]}" if row.ids and vendor is Vendor.INTEL else None
    card = Gpu(
        vendor=vendor,
        name=row.names[0],
        compute_capability=row.cc,
        gfx=row.gfx,
        pci_id=pci,
        integrated=row.integrated,
    )
    board = vendor is Vendor.NVIDIA and row.integrated
    driver = "999.0" if vendor is Vendor.NVIDIA else None  # newer than any that a build asks for
    for system in systems:
        if board and system != "linux":
            yield "–"
            continue
        arch = "aarch64" if board else SYSTEMS[system].arch
        machine = replace(SYSTEMS[system], arch=arch, gpus=(card,), nvidia_driver=driver)
        yield _in_short(make_plans(machine, load_catalog()).choice)


def _natural(target: str) -> list[tuple[int, str]]:
    """Sort numbers in a name by their value."""
    return [(int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", target)]


def _apple() -> Iterator[str]:
    yield "# Apple: what each Mac gets\n\n" + _head("GPU", "macOS")
    yield from (
        _row(_plain(cell.family.family), _cell(cell))
        for cell in matrix()
        if cell.family.vendor == Vendor.APPLE.value and cell.plan
    )
    yield "\nMacs with an Intel processor get the CPU build of torch 2.2.2, the last one that was made for them."


def areas() -> Iterator[str]:
    """Yield the page that leads to those of the causes."""
    yield "# Messages and their causes\n"
    yield (
        "What the diagnosis recognises, with what helps on which system. Search for words of your message, or let "
        "`assistant diagnose error.log` find the cause that fits your log and your machine: many messages have "
        "several causes. A name in capitals stands for what is in your log or on your machine.\n"
    )
    yield "```{toctree}\n:maxdepth: 1\n" + "\n".join(f"causes/{area}" for area in AREAS) + "\n```"


def causes() -> dict[str, Iterator[str]]:
    """Return a page for each file of rules, as lines by its name."""
    rules = {rule.key: rule for rule in load_rules().rules}
    pages = {}
    for file in (files("assistant.diagnose") / "rules").iterdir():
        area = file.name.removesuffix(".toml")
        keys = [row["key"] for row in tomllib.loads(file.read_text("utf-8"))["rule"]]
        pages[f"causes/{area}"] = _area(AREAS[area], [rules[key] for key in keys])
    return pages


def _area(title: str, rules: list[Rule]) -> Iterator[str]:
    """Yield an area's table of messages, then a section for each cause."""
    yield f"# {title}: messages and their causes\n"
    yield _head("Message", "Cause")
    for rule in rules:
        shown = "<br>".join(_code(line).replace("|", "\\|") for line in messages()[rule.key][:2])
        yield _row(shown, f"[{_prose(_title(rule))}](#{rule.key})")
    for rule in rules:
        yield from _cause(rule)


def _cause(rule: Rule) -> Iterator[str]:
    """Yield a section: the cause, what programs print, what mends it on which system, sources."""
    names = _names(rule)
    yield f"\n({rule.key})=\n\n## {_prose(_title(rule))}\n"
    yield f"{_prose(rule.cause.format(**names))}\n"
    if shown := messages()[rule.key][:MESSAGES]:
        yield "Programs print, for example:\n\n" + _block(shown)
    for text, typed in _remedies(rule, names).items():
        yield f"- {_prose(text)}\n"
        for lines, systems in typed.items():
            where = "On any system" if len(systems) == len(TITLES) else ", ".join(systems)
            yield f"  {where}:\n\n{_block(lines, '  ')}"
    yield f"Key: `{rule.key}`. Sources: {'; '.join(map(_linked, rule.sources))}"


@cache
def messages() -> dict[str, tuple[str, ...]]:
    """Return the lines that show each cause, as its programs print them, those that say most first.

    They are the lines of the diagnosis' own test cases in which it recognises the cause.
    """
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


def _title(rule: Rule) -> str:
    return rule.title.format(**_names(rule))


def _names(rule: Rule) -> dict[str, str]:
    """Return what stands for the placeholders of a cause that is worked out from a log: their names in capitals."""
    texts = (rule.title, rule.cause, *(remedy.text for remedy in rule.remedy))
    lines = (one for remedy in rule.remedy for one in (*remedy.commands, *remedy.check))
    return {name: name.upper() for text in (*texts, *lines) for name in PLACEHOLDER.findall(text)}


def _remedies(rule: Rule, names: dict[str, str]) -> dict[str, dict[tuple[str, ...], list[str]]]:
    """Return a rule's remedies, each with what is typed and the systems that it is for."""
    found: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for system, title in TITLES.items():
        machine = Machine(os=SYSTEMS[system].os, wsl=SYSTEMS[system].wsl)
        for remedy in remedies_for(rule, machine, names):
            shown = remedy.shown
            lines = [line for one in remedy_blocks(shown, shell_of(machine.os)) for line in _commented(one)]
            if remedy.plan and (setup := _setup(remedy.plan)) not in lines:
                lines.insert(0, setup)
            by_lines = found.setdefault(render(shown.text), {})
            if lines:
                by_lines.setdefault(tuple(lines), []).append(title)
    return found


def _commented(block: Block) -> Iterator[str]:
    """Yield a block's lines, below its lead as a comment."""
    yield from ([f"# {render(block.lead)}"] if block.lead else [])
    yield from block.lines


def _setup(plan: PlanRequest) -> str:
    """Return the line that installs what a remedy plans, into an environment of its own."""
    options = (("--backend", plan.backend and plan.backend.value), ("--python", plan.python))
    pins = (("--pin", f'"{pin}"') for pin in plan.pins)
    return " ".join(["assistant setup", *(f"{name} {value}" for name, value in (*options, *pins) if value)])


# Markdown of texts from data, with nothing in them read as markup by accident.


def _head(*names: str) -> str:
    return f"{_row(*names)}\n|{'---|' * len(names)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _prose(text: Text) -> str:
    """Escape what Markdown would read as markup, but for code between backticks."""
    parts = re.split(r"(`[^`]+`)", render(text))
    return "".join(part.replace("|", "\\|") if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    """Escape what Markdown would read as markup."""
    return re.sub(r"[\\`*_<>{}\[\]|]", r"\\\g<0>", text)


def _linked(text: str) -> str:
    """Turn the addresses in a text into links, which `linkcheck` checks."""
    parts = re.split(r"(https://[^\s;,()]+)", text)
    return "".join(f"<{part}>" if place % 2 else _prose(part) for place, part in enumerate(parts))


def _code(text: str) -> str:
    """Write one line as code, whatever backticks it holds."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _block(lines: Iterable[str], indent: str = "") -> str:
    """Write lines as they are typed."""
    return "".join(f"{indent}{line}\n" for line in ("```text", *lines, "```"))
