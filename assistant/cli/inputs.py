"""What commands read and write: files that the user names, batches of lines, and machines."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import click

from assistant.cli.terminal import echo_json
from assistant.host.base import Host
from assistant.host.files import write_named
from assistant.host.live import LiveHost
from assistant.host.recording import ReplayHost, read_recording
from assistant.i18n import Text, _, say
from assistant.machines import load, shipped
from assistant.model.errors import AssistantError, BadInput, unreadable, unwritable
from assistant.model.record import Record
from assistant.model.visible import visible
from assistant.parsers.decode import text_lines, text_pieces

READ_LIMIT = 100 * 10**6  # chosen: bytes of a log or a batch, which is held in memory

replay_option = click.option(
    "--replay", metavar="FILE", help="Use a recorded machine instead: a file, or the name of a shipped one."
)


def read_file(name: str, limit: int = READ_LIMIT) -> bytes:
    """Read a file ("-": standard input); raise `BadInput` when it cannot be read or exceeds `limit` bytes."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise unreadable(name, error) from error
    if len(data) > limit:
        file_name = say("Standard input") if name == "-" else name
        text = _("{file} is longer than {limit} MB.", file=file_name, limit=limit // 10**6)
        raise BadInput(text, hint=_("Pass only the part that matters."))
    return data


def read_text(name: str, limit: int = READ_LIMIT) -> str:
    """Read a text as `read_file` does, whatever program or editor has saved it; raise `BadInput` for a binary file."""
    data = read_file(name, limit)
    try:
        return "".join(text_pieces(data))
    except BadInput as error:
        text = _("{file} cannot be read: {reason}.", file=name, reason=_("it is a binary file"))
        raise BadInput(text, hint=_("Check the name and try again.")) from error


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a file ("-": standard input) of any length, as `read_text` would read them."""
    try:
        with nullcontext(cast("io.BufferedReader", sys.stdin.buffer)) if name == "-" else Path(name).open("rb") as file:
            yield from text_lines(file)
    except OSError as error:
        raise unreadable(name, error) from error
    except BadInput as error:
        text = _("{file} cannot be read: {reason}.", file=name, reason=error.message)
        raise BadInput(text, hint=error.hint) from error


def write_file(name: str, text: str) -> None:
    """Write a file that an option names, with nothing hidden in it; raise `WorkFailed` when it cannot be written."""
    try:
        write_named(Path(name), visible(text))
    except OSError as error:
        raise unwritable(name, error) from error


class Refused(Record, frozen=True):
    """Stands in the place of an answer to a line that could not be read."""

    error: Text


def print_answers(batch: Iterable[str], answer: Callable[[str], object]) -> None:
    """Print one line of JSON for each line of a batch, in order; a bad line gets `{"error": …}` in its place."""
    for line in batch:
        try:
            result = answer(line)
        except AssistantError as error:
            result = Refused(error=error.message)
        echo_json(result, indent=0)


def host_of(replay: str | None) -> Host:
    """Return the machine at hand, or the one of a recording: a file, or the name of a shipped machine."""
    if replay is None:
        return LiveHost()
    if replay in shipped() or not (Path(replay).exists() or set(replay) & set("./\\")):
        return ReplayHost(load(replay))
    return ReplayHost(read_recording(read_text(replay), replay))
