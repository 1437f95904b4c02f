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
from assistant.diagnose import as_remedy, load_rules, remedies_for
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.export import FORMATS
from assistant.i18n import _, render, say, use_language
from assistant.labs import labs as all_labs
from assistant.labs import needs_of
from assistant.machines import label, load, shipped
from assistant.model.machine import Machine
from assistant.model.shell import shell_of
from assistant.session.support import outcomes
from assistant.views import plan_title, recipe_rows, remedy_lines

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
            yield f"{about} {_linked(table['source'])}\n"
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
    yield _head(say("Package"), "Torch", say("Variants"), say("By"), say("Where"), say("As of"))
    for place in tables.wheel_sources.rows:
        what = f"`{place.name}{place.versions}`", f"`{place.torch or say('any')}`", _codes(place.variants)
        where = f"<{place.url}>" if "{" not in place.url else f"`{place.url}`"
        yield f"| {' | '.join((*what, _told(place.by), where, place.as_of))} |"
    yield "\n## " + say("What torch's own indexes carry") + "\n\n" + _head(say("Packages"), say("Variants"))
    for carried in tables.carried.rows:
        yield f"| {_codes(carried.names)} | {_codes(carried.variants)} |"
    yield "\n## " + say("At most one of these") + "\n\n" + _head(say("Packages"), say("They write"), say("Source"))
    for clash in tables.clashes.rows:
        yield f"| {_codes(clash.names)} | `{clash.shares}` | {_linked(clash.source)} ({clash.as_of}) |"


def _companion(row: Companion) -> Iterator[str]:
    """Yield the section of one companion."""
    yield f"## {row.name}\n"
    facts = {
        say("Wheels"): say("none, source only") if row.only_source else _codes(row.platforms),
        say("Computes on"): ", ".join(row.backends),
        say("Needs"): _plain(" ".join(str(need.text) for need in in_words(row.name, row.needs))),
        say("Tried by"): f"`{row.call}`" if row.call else "",
        say("Seen to work on a CPU"): row.ran,
    }
    yield "\n".join(f"- {name}: {value}" for name, value in facts.items() if value) + "\n"
    if row.note:
        yield f"{_told(row.note)}\n"
    if row.build and (row.build.note or row.only_source):
        tools = _codes((*row.build.requires, *(["nvcc"] if row.build.nvcc else [])))
        yield say("To build it: {tools}.", tools=tools) + f" {_told(row.build.note)}\n"
    yield _head(say("Versions"), "Torch", say("Kept by"), say("CUDA of PyPI's wheel"), say("As of"), "")
    for one in version_ranges(row.name):
        torch = " / ".join(f"`{bound}`" for bound in one.torch) or say("any")
        cudas, kept = ", ".join(map(str, one.cuda)), render(_KEPT_BY[one.known]) if one.torch else ""
        versions, as_of = f"`{one.versions}`" if one.versions else say("all"), one.as_of or row.as_of
        yield f"| {versions} | {torch} | {kept} | {cudas} | {as_of} | {_told(one.note)} |"
    more = [f"{_linked(one.source)}" for one in row.ranges if one.source]
    yield "\n" + say("Source") + f": {'; '.join((_linked(row.source), *more))}\n"


def _told(note: str) -> str:
    """Return a table's own sentence in the language in force."""
    return _prose(say(note)) if note else ""


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def rules() -> Iterator[str]:
    """Yield the page of diagnosis rules: key, cause, fixes with what is typed, sources."""
    yield "# " + say("Diagnosis rules") + "\n"
    text = say("What the diagnosis knows. A name in capitals stands for what it finds in your log or on your machine.")
    yield f"{text}\n"
    for rule in sorted(load_rules().rules, key=lambda rule: rule.key):
        texts = (rule.title, rule.cause, *(remedy.text for remedy in rule.remedy))
        commands = (one for remedy in rule.remedy for one in (*remedy.commands, *remedy.check))
        names = {name: name.upper() for text in (*texts, *commands) for name in PLACEHOLDER.findall(text)}
        yield f"## {rule.key}\n\n**{_prose(say(rule.title, **names))}**\n\n{_prose(say(rule.cause, **names))}\n"
        for remedy, typed in _typed(rule, names).items():
            yield f"- {_prose(remedy)}\n"
            for lines, systems in typed.items():
                among = "" if len(systems) == len(SYSTEMS) else f"  {', '.join(systems)}:\n\n"
                yield f"{among}  ```text\n" + "".join(f"  {line}\n" for line in lines) + "  ```\n"
        yield say("Sources") + ": " + ", ".join(_linked(source) for source in rule.sources) + "\n"


SYSTEMS = {
    "Linux": Machine(os="linux", wsl=False),
    "WSL": Machine(os="linux", wsl=True),
    "Windows": Machine(os="windows"),
    "macOS": Machine(os="macos"),
}


def _typed(rule: Rule, names: dict[str, str]) -> dict[str, dict[tuple[str, ...], list[str]]]:
    """Return a rule's remedies, each with the lines that are typed, by the systems that they are for."""
    found: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for system, machine in SYSTEMS.items():
        for remedy in remedies_for(rule, machine, names):
            shown = as_remedy(remedy)
            lines = tuple(
                say("check: {command}", command=line.text) if line.kind == "check" else line.text
                for line in remedy_lines(shown, shell_of(machine.os))
            )
            by_lines = found.setdefault(render(shown.text), {})
            if lines:
                by_lines.setdefault(lines, []).append(system)
    return found


def recipes() -> Iterator[str]:
    """Yield the page of recipes: what each one knows, and what it gets on every recorded machine."""
    yield "# " + say("Recipes") + "\n"
    text = say(
        "What people run on torch; `assistant install --for NAME` installs one. Below each stands what it gets on the "
        "[recorded machines](machines.md), by the tables alone: no index was asked."
    )
    yield f"{text}\n"
    for recipe in known_recipes():
        yield f"## {recipe.key}\n\n**{_plain(str(recipe.name))}**\n\n| | |\n|---|---|"
        yield from (f"| {_prose(str(label))} | {_linked(str(value))} |" for label, value in recipe_rows(recipe))
        yield "\n" + _head(say("It gets"), say("on"))
        yield from (f"| {_prose(what)} | {', '.join(names)} |" for what, names in outcome_rows(recipe).items())
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
    yield "# " + say("Recorded machines") + "\n\n" + _head(say("Name"), say("What it is"), say("Origin"))
    for name in shipped():
        recording = load(name)
        origin = say("recorded") if recording.origin == "recorded" else say("composed")
        yield f"| `{name}` | {_plain(render(label(name)))} | {origin} ({recording.date}) |"


def formats() -> Iterator[str]:
    """Yield the page of formats of `assistant export`."""
    yield "# " + say("Exported formats") + "\n\n" + _head(say("Format"), say("What it is for"))
    for name, kind in FORMATS.items():
        yield f"| `{name}` | {_prose(render(kind.description))} |"


def labs() -> Iterator[str]:
    """Yield the page of labs; hints and answers stay in the notebooks."""
    yield "# " + say("Labs") + "\n\n" + _head(say("Lab"), say("Minutes"), say("Where"), say("Story"))
    for key, definition in all_labs().items():
        text = definition.text()
        where = _prose(needs_of(text))
        yield f"| `{key}`: {_prose(text.title)} | {text.minutes} | {where} | {_prose(text.story)} |"


def _head(*names: str) -> str:
    """Return the first two lines of a table."""
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def _prose(text: str) -> str:
    """Escape what Markdown would read as markup, but for code between backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part.replace("|", "\\|") if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    for sign in "\\`*_<>{}[]|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _linked(text: str) -> str:
    """Turn the addresses in a text into links, which `linkcheck` checks."""
    parts = re.split(r"(https://[^\s;,()]+)", text)
    return "".join(f"<{part}>" if place % 2 else _prose(part) for place, part in enumerate(parts))
