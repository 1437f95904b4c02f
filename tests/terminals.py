"""Runs `assistant` at a terminal, and gives what that shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Mapping
from pathlib import Path

from assistant.cli.terminal import columns, find_unbroken


def at_a_terminal(words: Iterable[str], env: Mapping[str, str], width: int = 80, cwd: Path | None = None) -> bytes:
    """Run a command at a terminal of a width to its end; return all that it wrote, with what steers the terminal."""
    hand, seat = pty.openpty()
    fcntl.ioctl(seat, termios.TIOCSWINSZ, struct.pack("HHHH", 60, width, 0, 0))
    command = [sys.executable, "-m", "assistant", *words]
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=seat, stderr=seat):
        os.close(seat)
        said = b""
        while piece := _read(hand):
            said += piece
    os.close(hand)
    return said


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 16)
    except OSError:  # how Linux says that the last writer has gone
        return b""


def can_be_read_when_narrow(words: tuple[str, ...], language: str, home: Path) -> None:
    """Run a command at 80 and 60 columns: each word stands whole, and nothing but a word, as a path, is too long."""
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    env = {**kept, "TERM": "xterm-256color", "LANGUAGE": language, "XDG_STATE_HOME": str(home)}
    env["PYTHONIOENCODING"] = "utf-8"
    shown = {
        width: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", at_a_terminal(words, env, width).decode()).splitlines()
        for width in (500, 80, 60)
    }
    whole = {word for word in " ".join(shown.pop(500)).split() if re.fullmatch(r"[\w.:+()-]+", word, re.ASCII)}
    assert whole or language != "en"
    for width, lines in shown.items():
        assert whole <= set(" ".join(lines).split()), width
        assert [line for line in lines if columns(line.rstrip()) > width and len([*find_unbroken(line)]) > 1] == [], (
            width
        )
