"""`assistant rules`, `assistant machines` and `assistant schema`: files that users add to what the assistant knows."""

from __future__ import annotations

import re
from pathlib import Path

import click

from assistant.cli.inputs import read_text, write_file
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.diagnose import lacking, new_rules, rules_folder, use_rules
from assistant.host.live import LiveHost
from assistant.host.recording import read_recording
from assistant.i18n import Message, _, as_typed, ngettext, say
from assistant.model.errors import BadInput


@click.group()
def rules() -> None:
    """Write rules of your own for the diagnosis."""


@rules.command("new")
@click.argument("key")
@click.argument("file", required=False)
def new_rule(key: str, file: str | None) -> None:
    """Write a file to begin with, KEY.toml unless FILE is named."""
    name = file or f"{key}.toml"
    text = new_rules(key, str(LiveHost().facts("identity")["date"]))
    text = re.sub(r"(?m)^# (.+)$", lambda comment: f"# {say(comment[1])}", text)
    if Path(name).exists():
        raise BadInput(_("{file} is there already.", file=name), hint=_("Name another file."))
    write_file(name, text)
    said = _("Written to {file}. Change it; `assistant rules test {file}` says what is missing.", file=name)
    echo(as_typed(said))


@rules.command("test")
@click.argument("file")
@json_option
@click.pass_context
def test_rules(context: click.Context, file: str, *, as_json: bool) -> None:
    """Say what a file of rules lacks; exit with 1 if anything."""
    *_shipped, read = use_rules({file: read_text(file)}, alone=True).read
    found = tuple(lacking(read))
    good = _("Nothing is missing. It counts with --rules {file}, and always from {folder}.")
    good = good.format(file=file, folder=rules_folder())
    _answer(context, found, good, as_json=as_json)


@click.group()
def machines() -> None:
    """Check recorded machines, as `detect --record` writes them."""


@machines.command("test")
@click.argument("file")
@json_option
@click.pass_context
def test_machine(context: click.Context, file: str, *, as_json: bool) -> None:
    """Replay a machine and compare it with what its file expects; exit with 1 if anything differs."""
    from assistant.session.recordings import faults  # noqa: PLC0415 - rules need no planner

    found = tuple(faults(read_recording(read_text(file), file), Path(file).stem))
    _answer(context, found, _("The replay gives all that the file expects."), as_json=as_json)


def _answer(context: click.Context, found: tuple[Message, ...], good: Message, *, as_json: bool) -> None:
    if as_json:
        echo_json({"missing": found})
    else:
        for sentence in found:
            echo(sentence)
        echo(ngettext("{count} thing is missing.", "{count} things are missing.", len(found)) if found else good)
    context.exit(1 if found else 0)


LAB = "lab"  # its record is the labs' own


@click.command()
@click.argument("name")
def schema(name: str) -> None:
    """Print the JSON Schema of a kind of file, for editors and checkers."""
    from assistant.session.schemas import NAMES, described, kind  # noqa: PLC0415 - the others need none

    if name == LAB:
        from assistant.labs import LabText  # noqa: PLC0415 - likewise

        echo_json(described(LabText))
        return
    if name not in NAMES:
        hint = _("Choose one of: {names}.", names=", ".join([LAB, *NAMES]))
        raise BadInput(_("There is no kind of file named {name}.", name=name), hint=hint)
    echo_json(described(kind(name)))
