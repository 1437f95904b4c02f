"""Set up standard output and input so that no character that is printed or typed can end the program.

The encoding stays the one that Python has chosen. Into a pipe or a file that is the locale's, on Windows the ANSI code
page (https://docs.python.org/3/library/sys.html#sys.stdout), and whoever reads there expects it.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from assistant.host.files import append_private

# What is drawn in place of a sign that an encoding lacks; a letter that it lacks becomes a question mark.
PLAIN = {
    "→": "->",
    "←": "<-",
    "✓": "OK",
    "✗": "x",
    "✅": "OK",
    "⚠": "!",
    "·": "-",
    "•": "-",
    "…": "...",
    "–": "-",
    "—": "--",
    "−": "-",
    "‐": "-",
    "‑": "-",
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "«": '"',
    "»": '"',
    "×": "x",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "±": "+-",
    "²": "2",
    "³": "3",
    "µ": "u",
    "μ": "u",
    "®": "(R)",
    "™": "(TM)",
    "│": "|",
    "┃": "|",
    "─": "-",
    "━": "-",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
}


def _plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Return what replaces the characters that an encoding lacks, and the position after them; raise other errors."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error("plain", _plain_characters)


def configure_streams() -> None:
    """Make the standard streams replace characters that their encodings lack, or cannot decode, instead of raising.

    A stream that is not Python's own, such as a notebook's, stays as it is. If there is no standard input, as under
    some services, an empty one is opened.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open as long as the program runs
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def flush_output() -> str:
    """Flush standard output; return the system's error text if that fails, "" otherwise and for a closed pipe.

    After a failure what is printed is dropped from then on: Python would fail at its end with a message of its own.
    """
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
        return "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
    return ""


LOG = "SETUP_ASSISTANT_LOG"  # set by the start scripts of a bundle
_DRAWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")  # colours, and a progress bar's way back over its line


def copy_output_to_log() -> None:
    """Copy all that is printed from now on to the end of the file that `SETUP_ASSISTANT_LOG` gives.

    A line with the time and our arguments goes before. Do nothing without the variable, or if the file cannot be
    written.
    """
    if name := os.environ.get(LOG):
        log = Path(name)
        with suppress(OSError):
            append_private(log, f"# {datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z} {sys.argv[1:]}\n")
            sys.stdout, sys.stderr = (_Copied(stream, log) for stream in (sys.stdout, sys.stderr))


class _Copied:
    """A stream whose text also goes into a log, without colours."""

    def __init__(self, stream: TextIO, log: Path) -> None:
        self._stream, self._log = stream, log

    def write(self, text: str) -> int:
        """Write to the stream and the log; return the stream's result. A log that cannot be written is ignored."""
        with suppress(OSError):
            append_private(self._log, _DRAWN.sub("", text))
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        """Return an attribute of the stream."""
        return getattr(self._stream, name)


def discard_typed() -> None:
    """Discard what was typed at the terminal and not yet read; called before a question is asked.

    Nothing is discarded unless input is a terminal: what is piped in is meant for the questions to come.
    """
    if not sys.stdin or sys.stdin.closed or not sys.stdin.isatty():
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415 - exists on POSIX only

        with suppress(termios.error):  # a job in the background may not touch its terminal
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
