"""Writes the reference pages from data and commands, so that they are never out of date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx
from written_cards import card_list
from written_causes import causes
from written_markdown import codes, head, linked, plain, prose

from assistant.catalog.companions import Companion, load_companions, version_ranges
from assistant.catalog.needs import in_words
from assistant.catalog.recipes import Recipe
from assistant.catalog.recipes import recipes as known_recipes
from assistant.cli import cli
from assistant.export import FORMATS
from assistant.i18n import _, render, say, use_language
from assistant.labs import labs as all_labs
from assistant.labs import needs_of
from assistant.machines import label, load, shipped
from assistant.session.support import outcomes
from assistant.views import plan_title, recipe_rows

HERE = Path(__file__).parent / "reference" / "written"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx reads them."""
    app.connect("builder-inited", lambda app: write_all(app.config.language))
    return {"parallel_read_safe": True}


def write_all(language: str = "en") -> None:
    """Write each page in a language, and only where it changed."""
    use_language(language)
    HERE.mkdir(parents=True, exist_ok=True)
    pages = {
        "commands": commands(),
        "catalogue": catalogue(),
        "companions": companions(),
        "recipes": recipes(),
        "machines": machines(),
        "formats": formats(),
        "labs": labs(),
        "cards": card_list(),
        **causes(),
    }
    for left in {*HERE.rglob("*.md")} - {HERE / f"{name}.md" for name in pages}:
        left.unlink()
    for name, lines in pages.items():
        path, text = HERE / f"{name}.md", "\n".join(lines) + "\n"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def commands() -> Iterator[str]:
    """Yield the page of commands, each with its help."""
    yield "# " + say("Commands") + "\n"
    yield say("Exit codes: 0 done, 1 the work failed, 2 bad input, 3 nothing fits, 130 stopped.") + "\n"
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
    yield "# " + say("Catalogue") + "\n"
    text = say(
        "What is known about wheels, drivers and GPUs; `assistant catalog show TABLE` prints all rows of a table."
    )
    yield f"{text}\n"
    for entry in sorted((files("assistant.catalog") / "data").iterdir(), key=lambda entry: entry.name):
        for name, table in json.loads(entry.read_text("utf-8")).items():
            yield f"## {entry.name.removesuffix('.json')}: {name}\n"
            about = say("{count} rows as of {date}. Source:", count=len(table["rows"]), date=table["as_of"])
            yield f"{about} {linked(table['source'])}\n"
            columns = ", ".join(f"`{column}`" for column in dict.fromkeys(key for row in table["rows"] for key in row))
            yield say("Columns: {names}", names=columns) + "\n"


_KEPT_BY = {"metadata": _("resolver"), "documents": _("this table"), "seen": _("this table (seen in use)")}


def companions() -> Iterator[str]:
    """Yield the page of companions: their pairs with torch, what they need, where wheels lie, what clashes."""
    tables = load_companions()
    yield "# " + say("Companions of PyTorch") + "\n"
    text = say(
        "Packages that stand on torch are made for one torch, and often for one CUDA, which their metadata does not "
        "always say. A plan keeps to these pairs, and where the metadata says more, that wins. *Kept by* says who "
        "enforces a pair: the resolver, by the package's metadata, or this table alone. A version that is not listed "
        "is not judged."
    )
    yield f"{text}\n"
    for row in sorted(tables.companions.rows, key=lambda row: row.name):
        yield from _companion(row)
    yield "## " + say("Wheels that lie elsewhere") + "\n"
    yield head(say("Package"), "Torch", say("Variants"), say("By"), say("Where"), say("As of"))
    for place in tables.wheel_sources.rows:
        what = f"`{place.name}{place.versions}`", f"`{place.torch or say('any')}`", codes(place.variants)
        where = f"<{place.url}>" if "{" not in place.url else f"`{place.url}`"
        yield f"| {' | '.join((*what, _told(place.by), where, place.as_of))} |"
    yield "\n## " + say("What torch's own indexes carry") + "\n\n" + head(say("Packages"), say("Variants"))
    for carried in tables.carried.rows:
        yield f"| {codes(carried.names)} | {codes(carried.variants)} |"
    yield "\n## " + say("At most one of these") + "\n\n" + head(say("Packages"), say("They write"), say("Source"))
    for clash in tables.clashes.rows:
        yield f"| {codes(clash.names)} | `{clash.shares}` | {linked(clash.source)} ({clash.as_of}) |"


def _companion(row: Companion) -> Iterator[str]:
    """Yield the section of one companion."""
    yield f"## {row.name}\n"
    facts = {
        say("Wheels"): say("none, source only") if row.only_source else codes(row.platforms),
        say("Computes on"): ", ".join(row.backends),
        say("Needs"): plain(" ".join(str(need.text) for need in in_words(row.name, row.needs))),
        say("Tried by"): f"`{row.call}`" if row.call else "",
        say("Seen to work on a CPU"): row.ran,
    }
    yield "\n".join(f"- {name}: {value}" for name, value in facts.items() if value) + "\n"
    if row.note:
        yield f"{_told(row.note)}\n"
    if row.build and (row.build.note or row.only_source):
        tools = codes((*row.build.requires, *(["nvcc"] if row.build.nvcc else [])))
        yield say("To build it: {tools}.", tools=tools) + f" {_told(row.build.note)}\n"
    yield head(say("Versions"), "Torch", say("Kept by"), say("CUDA of PyPI's wheel"), say("As of"), "")
    for one in version_ranges(row.name):
        torch = " / ".join(f"`{bound}`" for bound in one.torch) or say("any")
        cudas, kept = ", ".join(map(str, one.cuda)), render(_KEPT_BY[one.known]) if one.torch else ""
        versions, as_of = f"`{one.versions}`" if one.versions else say("all"), one.as_of or row.as_of
        yield f"| {versions} | {torch} | {kept} | {cudas} | {as_of} | {_told(one.note)} |"
    more = [f"{linked(one.source)}" for one in row.ranges if one.source]
    yield "\n" + say("Source") + f": {'; '.join((linked(row.source), *more))}\n"


def _told(note: str) -> str:
    """Return a table's own sentence in the language in force."""
    return prose(say(note)) if note else ""


def recipes() -> Iterator[str]:
    """Yield the page of recipes: what each one knows, and what it gets on every recorded machine."""
    yield "# " + say("Recipes") + "\n"
    text = say(
        "What people run on torch; `assistant install --for NAME` installs one. Below each stands what it gets on the "
        "[recorded machines](machines.md), by the tables alone: no index was asked."
    )
    yield f"{text}\n"
    for recipe in known_recipes():
        yield f"## {recipe.key}\n\n**{plain(str(recipe.name))}**\n\n| | |\n|---|---|"
        yield from (f"| {prose(str(label))} | {linked(str(value))} |" for label, value in recipe_rows(recipe))
        yield "\n" + head(say("It gets"), say("on"))
        yield from (f"| {prose(what)} | {', '.join(names)} |" for what, names in outcome_rows(recipe).items())
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
    yield "# " + say("Recorded machines") + "\n\n" + head(say("Name"), say("What it is"), say("Origin"))
    for name in shipped():
        recording = load(name)
        origin = say("recorded") if recording.origin == "recorded" else say("composed")
        yield f"| `{name}` | {plain(render(label(name)))} | {origin} ({recording.date}) |"


def formats() -> Iterator[str]:
    """Yield the page of formats of `assistant export`."""
    yield "# " + say("Exported formats") + "\n\n" + head(say("Format"), say("What it is for"))
    for name, kind in FORMATS.items():
        yield f"| `{name}` | {prose(render(kind.description))} |"


def labs() -> Iterator[str]:
    """Yield the page of labs; hints and answers stay in the notebooks."""
    yield "# " + say("Labs") + "\n\n" + head(say("Lab"), say("Minutes"), say("Where"), say("Story"))
    for key, definition in all_labs().items():
        text = definition.text()
        where = prose(needs_of(text))
        yield f"| `{key}`: {prose(text.title)} | {text.minutes} | {where} | {prose(text.story)} |"
