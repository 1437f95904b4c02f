"""What commands read, print and ask with: files that the user names, lines of JSON, sentences, questions.

Every text passes the filter for hidden characters here (see also `draw`); neither rich nor anything of a setup is
loaded.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import click

from assistant.host.base import Host, ReplayHost, read_recording
from assistant.host.files import discard_typed, write_to_path
from assistant.host.live import LiveHost
from assistant.i18n import Text, _, render, say
from assistant.machines import load, shipped
from assistant.model.errors import AssistantError, BadInput, WorkFailed, unreadable_error, unwritable_error
from assistant.model.record import Record, render_messages, to_json
from assistant.model.visible import escape_in_json, visible
from assistant.parsers import text_lines, text_pieces

READ_LIMIT = 100 * 10**6  # chosen: bytes of a log or a batch, which is held in memory
# What stands in front of a line, below which the rest of it is lined up: "    · ", "  2. ", "✓ ", "  →      2 │ ".
_SIGN = r"\s*(?:(?:→ +)?\d+ │ |[✓✗·!?≠→+-] +|\d+\. )?"
# What stays in one line: a word, such as a path; or a character of two columns, with the marks that begin no line.
_UNBROKEN = r"\s*(?:[\u1100-\uffff][、。，；：！？）」』》”’]*|[^\s\u1100-\uffff]+)"
LEAST = 20  # chosen: columns; in a narrower terminal nothing is lined up
_BEYOND_ASCII = r"[^\x00-\x7f]+"
ANSWERS = {"y": True, "yes": True, "是": True, "n": False, "no": False, "否": False}

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
replay_option = click.option(
    "--replay", metavar="FILE", help="Use a recorded machine instead: a file, or the name of a shipped one."
)


def yes_option(*, help: str) -> Option:  # noqa: A002 - as `click.option` has it
    """Return the option `--yes` with a help text."""
    return click.option("--yes", is_flag=True, help=help)


def read_file(name: str, limit: int = READ_LIMIT) -> bytes:
    """Read a file ("-": standard input); raise `BadInput` when it cannot be read or exceeds `limit` bytes."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise unreadable_error(name, error) from error
    if len(data) > limit:
        file_name = say("Standard input") if name == "-" else name
        text = _("{file} is longer than {limit} MB.", file=file_name, limit=limit // 10**6)
        raise BadInput(text, hint=_("Pass only the part that matters."))
    return data


def read_text(name: str, limit: int = READ_LIMIT) -> str:
    """Return a file's text, in any encoding (see `read_file`); raise `BadInput` as that does, and if it is binary."""
    data = read_file(name, limit)
    try:
        return "".join(text_pieces(data))
    except BadInput as error:
        text = _("{file} cannot be read: {reason}.", file=name, reason=_("it is a binary file"))
        raise BadInput(text, hint=_("Check the name and try again.")) from error


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a file ("-": standard input) of any size, in any encoding; raise `BadInput` if that fails."""
    try:
        with nullcontext(cast("io.BufferedReader", sys.stdin.buffer)) if name == "-" else Path(name).open("rb") as file:
            yield from text_lines(file)
    except OSError as error:
        raise unreadable_error(name, error) from error
    except BadInput as error:
        text = _("{file} cannot be read: {reason}.", file=name, reason=error.message)
        raise BadInput(text, hint=error.hint) from error


def write_file(name: str, text: str) -> None:
    """Write a text, without hidden characters, to the file that an option names.

    Raises `BadInput` for a link to another file, which a stranger's folder may hold, and `WorkFailed` if writing fails.
    `/dev/stdout` is a link, too, to whatever the output goes to.
    """
    if Path(name).is_symlink() and Path(name).is_file() and not Path(name).is_relative_to("/dev"):
        what = _("{file} is a link to {other}, which would be overwritten.", file=name, other=Path(name).resolve())
        raise BadInput(what, hint=_("Name the file itself, or another one."))
    try:
        write_to_path(Path(name), visible(text))
    except OSError as error:
        raise unwritable_error(name, error) from error


def find_host(replay: str | None) -> Host:
    """Return this machine's host, or that of a recording: `replay` is the name of a shipped one, else a file.

    Raises `BadInput` if there is no such recording, or it cannot be read.
    """
    if replay is None:
        return LiveHost()
    if replay in shipped() or not (Path(replay).exists() or set(replay) & set("./\\")):
        return ReplayHost(load(replay))
    return ReplayHost(read_recording(read_text(replay), replay))


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else not unicodedata.combining(sign) for sign in text)


def find_unbroken(text: str) -> Iterator[re.Match[str]]:
    """Yield what stays in one line, with the blanks in front of it: words, and characters that are two columns wide."""
    return re.finditer(_UNBROKEN, text)  # compiled, for 10 ms, where a terminal shows it


def split_line(text: str, width: int) -> list[tuple[int, int]]:
    """Return start and end of each piece of a line that fits into `width` columns; all but the first will be indented.

    A piece is longer if it is a single word, such as an address to be pressed or copied.
    """
    found, start, end, room = list[tuple[int, int]](), 0, 0, width
    for word in find_unbroken(text):
        if end > start and columns(text[start : word.end()]) > room:
            found.append((start, end))
            start, room = word.end() - len(word[0].lstrip()), width - indent(text, width)
        end = word.end()
    return [*found, (start, end)]


def indent(text: str, width: int) -> int:
    """Return the columns by which further lines are indented: those of a sign or number; 0 in a narrow terminal."""
    sign = re.match(_SIGN, text)
    return columns(sign[0]) if sign and width - columns(sign[0]) >= LEAST else 0


def fold_lines(text: str, width: int) -> Iterator[str]:
    """Yield the lines that each line of a text becomes in a terminal of so many columns."""
    for line in text.split("\n"):
        for number, (start, end) in enumerate(split_line(line, width)):
            yield " " * (indent(line, width) if number else 0) + line[start:end]


def echo(text: Text = "", *, err: bool = False) -> None:
    """Print a line, to standard error with `err`; on a terminal, what is too long goes on below, lined up."""
    shown = visible(render(text))
    stream = sys.stderr if err else sys.stdout
    if stream and stream.isatty():
        shown = "\n".join(fold_lines(shown, shutil.get_terminal_size().columns))
    with convert_print_errors():
        click.echo(shown, err=err)


def unwritten_error(reason: str) -> WorkFailed:
    """Return the error for output that could not be written."""
    return WorkFailed(
        _("The answer could not be written: {reason}.", reason=reason),
        hint=_("Make room where it goes, or send it elsewhere."),
    )


@contextmanager
def convert_print_errors() -> Iterator[None]:
    """Raise `WorkFailed` for an `OSError` in the block, such as a full disk; a `BrokenPipeError` is raised as it is."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads any more
    except OSError as error:
        raise unwritten_error(error.strerror or str(error)) from error


def echo_json(value: object, *, indent: int = 2) -> None:
    """Print a value as JSON: each message as its sentence in the language in force, and beside it its key and values.

    It is ASCII: whatever code page the pipe has, the reader gets the same values.
    """
    text = to_json(render_messages(value), indent=indent)
    with convert_print_errors():
        click.echo(re.sub(_BEYOND_ASCII, lambda found: escape_in_json(found[0]), text))


class Refused(Record, frozen=True):
    """Stands in the place of an answer to a line that could not be read."""

    error: Text


def print_answers(batch: Iterable[str], answer: Callable[[str], object]) -> None:
    """Print the `answer` to each line of a batch as a line of JSON, in order; for a bad line `{"error": …}`."""
    for line in batch:
        try:
            result = answer(line)
        except AssistantError as error:
            result = Refused(error=error.message)
        echo_json(result, indent=0)


def ask(question: Text, *, default: bool, err: bool = False) -> bool:
    """Ask a question until the answer is yes or no, and return whether it is yes; Enter alone means `default`.

    What was typed before it was asked does not count. Raises `click.Abort` on Ctrl-C and at the end of the input.
    """
    discard_typed()
    asked = f"{visible(render(question))} [{'Y/n' if default else 'y/N'}]"
    while True:
        answer = click.prompt(asked, default="", show_default=False, err=err).strip().lower()
        if not answer or answer in ANSWERS:
            return ANSWERS.get(answer, default)
        yes = _("Answer y for yes or n for no; Enter alone means yes.")
        no = _("Answer y for yes or n for no; Enter alone means no.")
        echo(yes if default else no, err=err)


def choose(question: Text, count: int) -> int | None:
    """Ask until a number from 1 to `count` is typed, and return it; None for Enter alone.

    What was typed before it was asked does not count. Raises `click.Abort` on Ctrl-C and at the end of the input.
    """
    discard_typed()
    asked = f"{visible(render(question))} [1–{count}]"
    while answer := click.prompt(asked, default="", show_default=False).strip():
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        echo(_("Type a number from 1 to {count}; Enter alone leaves.", count=count))
    return None
