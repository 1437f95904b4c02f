"""Writes the reference pages from data and commands, so that they are never out of date."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx

from assistant.catalog.companions import Companion, load_companions, version_ranges
from assistant.catalog.needs import in_words
from assistant.catalog.recipes import Recipe
from assistant.catalog.recipes import recipes as known_recipes
from assistant.cli import cli
from assistant.diagnose.rules import load_rules
from assistant.export import FORMATS
from assistant.i18n import use_language
from assistant.labs import labs as all_labs
from assistant.labs import needs_of
from assistant.machines import load, shipped
from assistant.session.support import outcomes
from assistant.views import plan_title, recipe_rows

HERE = Path(__file__).parent / "reference" / "written"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx reads them."""
    app.connect("builder-inited", lambda _app: write_all())
    return {"parallel_read_safe": True}


def write_all() -> None:
    """Write each page, and only where it changed."""
    use_language("en")
    HERE.mkdir(parents=True, exist_ok=True)
    pages = {
        "commands": commands(),
        "catalogue": catalogue(),
        "companions": companions(),
        "rules": rules(),
        "recipes": recipes(),
        "machines": machines(),
        "formats": formats(),
        "labs": labs(),
    }
    for name, lines in pages.items():
        path, text = HERE / f"{name}.md", "\n".join(lines) + "\n"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def commands() -> Iterator[str]:
    """Yield the page of commands, each with its help."""
    yield "# Commands\n"
    yield "Exit codes: 0 done, 1 the work failed, 2 bad input, 3 nothing fits, 130 stopped.\n"
    context = click.Context(cli, info_name="assistant", max_content_width=100)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        yield from _command(command, click.Context(command, context, name, max_content_width=100))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        inner = click.Context(below, context, name, max_content_width=100)
        yield f"### `{inner.command_path}`\n\n```text\n{below.get_help(inner)}\n```\n"


def catalogue() -> Iterator[str]:
    """Yield the page of the catalogue: each table with its source, date and columns."""
    yield "# Catalogue\n"
    yield "What is known about wheels, drivers and GPUs; `assistant catalog show TABLE` prints all rows of a table.\n"
    for entry in sorted((files("assistant.catalog") / "data").iterdir(), key=lambda entry: entry.name):
        for name, table in json.loads(entry.read_text("utf-8")).items():
            yield f"## {entry.name.removesuffix('.json')}: {name}\n"
            yield f"{len(table['rows'])} rows as of {table['as_of']}. Source: {_linked(table['source'])}\n"
            columns = ", ".join(f"`{column}`" for column in dict.fromkeys(key for row in table["rows"] for key in row))
            yield f"Columns: {columns}\n"


_HEAD = "# Companions of PyTorch"
_LEAD = """
Packages that stand on torch are made for one torch, and often for one CUDA, which their metadata does not always say.
A plan keeps to these pairs, and where the metadata says more, that wins. *Kept by* says who enforces a pair: the
resolver, by the package's metadata, or this table alone. A version that is not listed is not judged.
"""
_KEPT_BY = {"metadata": "resolver", "documents": "this table", "seen": "this table (seen in use)"}


def companions() -> Iterator[str]:
    """Yield the page of companions: their pairs with torch, what they need, where wheels lie, what clashes."""
    tables = load_companions()
    yield f"{_HEAD}\n{_LEAD}"
    for row in sorted(tables.companions.rows, key=lambda row: row.name):
        yield from _companion(row)
    yield "## Wheels that lie elsewhere\n"
    yield "| Package | Torch | Variants | By | Where | As of |\n|---|---|---|---|---|---|"
    for place in tables.wheel_sources.rows:
        what = f"`{place.name}{place.versions}`", f"`{place.torch or 'any'}`", _codes(place.variants)
        where = f"<{place.url}>" if "{" not in place.url else f"`{place.url}`"
        yield f"| {' | '.join((*what, place.by, where, place.as_of))} |"
    yield "\n## What torch's own indexes carry\n\n| Packages | Variants |\n|---|---|"
    for carried in tables.carried.rows:
        yield f"| {_codes(carried.names)} | {_codes(carried.variants)} |"
    yield "\n## At most one of these\n\n| Packages | They write | Source |\n|---|---|---|"
    for clash in tables.clashes.rows:
        yield f"| {_codes(clash.names)} | `{clash.shares}` | {_linked(clash.source)} ({clash.as_of}) |"


def _companion(row: Companion) -> Iterator[str]:
    """Yield the section of one companion."""
    yield f"## {row.name}\n"
    facts = {
        "Wheels": "none, source only" if row.only_source else _codes(row.platforms),
        "Computes on": ", ".join(row.backends),
        "Needs": _plain(" ".join(str(need.text) for need in in_words(row.name, row.needs))),
        "Tried by": f"`{row.call}`" if row.call else "",
        "Seen to work on a CPU": row.ran,
    }
    yield "\n".join(f"- {name}: {value}" for name, value in facts.items() if value) + "\n"
    if row.note:
        yield f"{_plain(row.note)}\n"
    if row.build and (row.build.note or row.only_source):
        tools = _codes((*row.build.requires, *(["nvcc"] if row.build.nvcc else [])))
        yield f"To build it: {tools}. {_plain(row.build.note)}\n"
    yield "| Versions | Torch | Kept by | CUDA of PyPI's wheel | As of | |\n|---|---|---|---|---|---|"
    for one in version_ranges(row.name):
        torch = " or ".join(f"`{bound}`" for bound in one.torch) or "any"
        cudas, kept = ", ".join(map(str, one.cuda)), _KEPT_BY[one.known] if one.torch else ""
        versions, as_of = f"`{one.versions}`" if one.versions else "all", one.as_of or row.as_of
        yield f"| {versions} | {torch} | {kept} | {cudas} | {as_of} | {_plain(one.note)} |"
    more = [f"{_linked(one.source)}" for one in row.ranges if one.source]
    yield f"\nSource: {'; '.join((_linked(row.source), *more))}\n"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def rules() -> Iterator[str]:
    """Yield the page of diagnosis rules: key, cause, fixes, sources."""
    yield "# Diagnosis rules\n"
    for rule in sorted(load_rules().rules, key=lambda rule: rule.key):
        yield f"## {rule.key}\n\n**{_plain(rule.title)}**. {_plain(rule.cause)}\n"
        yield "\n".join(f"- {_plain(remedy.text)}" for remedy in rule.remedy) + "\n"
        yield "Sources: " + ", ".join(_linked(source) for source in rule.sources) + "\n"


def recipes() -> Iterator[str]:
    """Yield the page of recipes: what each one knows, and what it gets on every recorded machine."""
    yield "# Recipes\n"
    yield "What people run on torch; `assistant install --for NAME` installs one. Below each stands what it gets on the"
    yield "[recorded machines](machines.md), by the tables alone: no index was asked.\n"
    for recipe in known_recipes():
        yield f"## {recipe.key}\n\n**{_plain(str(recipe.name))}**\n\n| | |\n|---|---|"
        yield from (f"| {_plain(str(label))} | {_linked(str(value))} |" for label, value in recipe_rows(recipe))
        yield "\n| It gets | on |\n|---|---|"
        yield from (f"| {_plain(what)} | {', '.join(names)} |" for what, names in outcome_rows(recipe).items())
        yield ""


def outcome_rows(recipe: Recipe) -> dict[str, list[str]]:
    """Group the recorded machines by what a recipe gets on them: a plan in a few words, or why there is none."""
    rows: dict[str, list[str]] = {}
    for outcome in sorted(outcomes(recipe), key=lambda one: one.plan is None):
        what = str(plan_title(outcome.plan)) if outcome.plan else str(outcome.why)
        rows.setdefault(what, []).append(f"`{outcome.machine}`")
    return rows


def machines() -> Iterator[str]:
    """Yield the page of shipped machines, each with its origin."""
    yield "# Recorded machines\n\n| Name | What it is | Origin |\n|---|---|---|"
    for name in shipped():
        recording = load(name)
        yield f"| `{name}` | {_plain(recording.label)} | {recording.origin} ({recording.date}) |"


def formats() -> Iterator[str]:
    """Yield the page of formats of `assistant export`."""
    yield "# Exported formats\n\n| Format | What it is for |\n|---|---|"
    for name, kind in FORMATS.items():
        yield f"| `{name}` | {_plain(kind.description)} |"


def labs() -> Iterator[str]:
    """Yield the page of labs; hints and answers stay in the notebooks."""
    yield "# Labs\n\n| Lab | Minutes | Where | Story |\n|---|---|---|---|"
    for key, definition in all_labs().items():
        text = definition.text()
        where = _plain(needs_of(text))
        yield f"| `{key}`: {_plain(text.title)} | {text.minutes} | {where} | {_plain(text.story)} |"


def _plain(text: str) -> str:
    for sign in "\\`*_<>{}[]|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _linked(text: str) -> str:
    """Turn the addresses in a text into links, which `linkcheck` checks."""
    parts = re.split(r"(https://[^\s;,()]+)", text)
    return "".join(f"<{part}>" if place % 2 else _plain(part) for place, part in enumerate(parts))
