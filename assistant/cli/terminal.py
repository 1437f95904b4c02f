"""What commands print and ask with: every text passes the filter for hidden characters here (see also `console`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from assistant.host.streams import forget_typed
from assistant.i18n import Text, _, render
from assistant.model.errors import WorkFailed
from assistant.model.record import to_json, with_words
from assistant.model.visible import visible

# What stands in front of a line, below which the rest of it is lined up: "    · ", "  2. ", "✓ ", "  →      2 │ ".
_SIGN = re.compile(r"\s*(?:(?:→ +)?\d+ │ |[✓✗·!?≠→+-] +|\d+\. )?")
# The pieces that a word may be taken apart into: behind a separator of paths and addresses, and after each character
# that is two columns wide, but for marks that no line begins with. It is compiled, for 10 ms, where words are folded.
_PIECE = r"[^/\\=,;\u1100-\uffff]*[/\\=,;]+|[\u1100-\uffff][、。，；：！？）」』》”’]*|[^/\\=,;\u1100-\uffff]+"
LEAST = 20  # chosen: columns; in a narrower terminal nothing is lined up
SHORT = 12  # chosen: columns of a cell that stays in one line, such as "2.41 s" or "20.1 GB"


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else not unicodedata.combining(sign) for sign in text)


def pieces(text: str, width: int) -> list[tuple[int, int]]:
    """Return the places in a line, from and to, that fit into `width` columns each; all but the first are indented.

    A word moves to the next line whole where it fits there; what is longer is broken at its separators. A piece without
    any stays as long as it is, and so does an address, which is to be pressed or copied.
    """
    hang = indent(text, width)
    found, start, end, room = [], 0, 0, width
    for word in re.finditer(r"\s*\S+", text):
        whole = columns(word[0])
        used = columns(text[start:end])
        if used + whole <= room:
            end = word.end()
            continue
        fits = whole - _blanks(word[0]) <= width - hang or "://" in word[0]
        parts = [word[0]] if fits else list(_parts(word[0]))
        for part in parts:
            if end > start and columns(text[start : end + len(part)]) > room:
                found.append((start, end))
                start, room = end + _blanks(text[end:]), width - hang
            end += len(part)
    return [*found, (start, end)] if end > start or not found else found


def indent(text: str, width: int) -> int:
    """Return the columns by which the further lines of a text are set in."""
    sign = _SIGN.match(text)
    return columns(sign[0]) if sign and width - columns(sign[0]) >= LEAST else 0


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the lines that each line of a text becomes in a terminal of so many columns."""
    for line in text.split("\n"):
        for number, (start, end) in enumerate(pieces(line, width)):
            yield " " * (indent(line, width) if number else 0) + line[start:end]


def folded_command(command: str, width: int, margin: int) -> Iterator[str]:
    """Yield the lines of a command that is to be copied: each but the last ends as the shell wants it.

    Windows has two shells that differ in this; there a command stays one line.
    """
    if os.name == "nt":
        yield command
        return
    words = re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""", command)
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and columns(longer) > width - margin - 2:
            yield f"{line} \\"
            longer = f"  {word}"
        line = longer
    yield line


def layout(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the widths of a table's columns that break no word, where `width` columns are there for all of them.

    None where they would not do: the rows are better read one below the other.
    """
    table = list(zip(*rows, strict=True))
    natural = [max(map(columns, cells)) for cells in table]
    least = [max(columns(part) for cell in cells for part in _unbroken(cell)) for cells in table]
    spare, wish = width - sum(least), sum(natural) - sum(least)
    if spare < 0:
        return None
    share = min(1.0, spare / wish) if wish else 0.0
    return [low + int(share * (most - low)) for low, most in zip(least, natural, strict=True)]


def _unbroken(cell: str) -> Iterator[str]:
    if columns(cell) <= SHORT:
        yield cell
        return
    for word in cell.split():
        yield from [word] if columns(word) <= LEAST and word.isascii() else _parts(word)


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _parts(word: str) -> Iterator[str]:
    blanks = _blanks(word)
    first = True
    for part in re.findall(_PIECE, word[blanks:]):
        yield word[:blanks] + part if first else part
        first = False


Option = Callable[[Callable[..., Any]], Callable[..., Any]]
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def yes_option(*, help: str) -> Option:  # noqa: A002 - as `click.option` has it
    """Make the option that agrees beforehand; `help` says to what."""
    return click.option("--yes", is_flag=True, help=help)


def echo(text: Text = "", *, err: bool = False) -> None:
    """Print a line, to standard error with `err`; on a terminal, what is too long goes on below, lined up."""
    shown = visible(render(text))
    stream = sys.stderr if err else sys.stdout
    if stream and stream.isatty():
        shown = "\n".join(folded(shown, shutil.get_terminal_size().columns))
    with printing():
        click.echo(shown, err=err)


def unwritten(reason: str) -> WorkFailed:
    """Return the failure of an answer that could not be printed whole."""
    return WorkFailed(
        _("The answer could not be written: {reason}.", reason=reason),
        hint=_("Make room where it goes, or send it elsewhere."),
    )


@contextmanager
def printing() -> Iterator[None]:
    """Turn the failure of what prints, such as a full disk, into its sentence."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads any more
    except OSError as error:
        raise unwritten(error.strerror or str(error)) from error


def echo_json(value: object, *, indent: int = 2) -> None:
    """Print a command's answer as JSON: sentences in the language in force, and beside them their keys and values.

    It is ASCII: whatever code page the pipe has, the reader gets the same values.
    """
    text = to_json(with_words(value), indent=indent)
    with printing():
        click.echo(_BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))


ANSWERS = {"y": True, "yes": True, "是": True, "n": False, "no": False, "否": False}


def ask(question: Text, *, default: bool, err: bool = False) -> bool:
    """Ask a question and return whether the answer is yes; what was typed before it was asked does not count."""
    forget_typed()
    asked = f"{visible(render(question))} [{'Y/n' if default else 'y/N'}]"
    while True:
        answer = click.prompt(asked, default="", show_default=False, err=err).strip().lower()
        if not answer or answer in ANSWERS:
            return ANSWERS.get(answer, default)
        yes = _("Answer y for yes or n for no; Enter alone means yes.")
        no = _("Answer y for yes or n for no; Enter alone means no.")
        echo(yes if default else no, err=err)


def choose(question: Text, count: int) -> int | None:
    """Ask for a number from 1 to `count` and return it; None for Enter alone. What was typed before does not count."""
    forget_typed()
    asked = f"{visible(render(question))} [1–{count}]"
    while answer := click.prompt(asked, default="", show_default=False).strip():
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        echo(_("Type a number from 1 to {count}; Enter alone leaves.", count=count))
    return None
