"""Writes the reference pages from data and commands, so that they are never out of date."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx

from assistant.cli import cli
from assistant.diagnose.rules import load_rules
from assistant.export import FORMATS
from assistant.i18n import use_language
from assistant.labs import texts
from assistant.machines import load, shipped

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
        "rules": rules(),
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


def rules() -> Iterator[str]:
    """Yield the page of diagnosis rules: key, cause, fixes, sources."""
    yield "# Diagnosis rules\n"
    for rule in sorted(load_rules().rules, key=lambda rule: rule.key):
        yield f"## {rule.key}\n\n**{_plain(rule.title)}**. {_plain(rule.cause)}\n"
        yield "\n".join(f"- {_plain(remedy.text)}" for remedy in rule.remedy) + "\n"
        yield "Sources: " + ", ".join(_linked(source) for source in rule.sources) + "\n"


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
    yield "# Labs\n\n| Lab | Story |\n|---|---|"
    for text in texts().values():
        yield f"| `{text.key}`: {_plain(text.title)} | {_plain(text.story)} |"


def _plain(text: str) -> str:
    for sign in "\\`*_<>{}[]|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _linked(text: str) -> str:
    """Turn the addresses in a text into links, which `linkcheck` checks."""
    parts = re.split(r"(https://[^\s;,()]+)", text)
    return "".join(f"<{part}>" if place % 2 else _plain(part) for place, part in enumerate(parts))
