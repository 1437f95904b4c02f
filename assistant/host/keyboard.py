"""What was typed at the terminal before anybody asked."""

from __future__ import annotations

import sys
from contextlib import suppress


def forget_typed() -> None:
    """Drop what was typed ahead: an answer that is given before its question is none.

    Only a terminal is emptied: what is piped in was meant for the questions to come.
    """
    try:
        if not sys.stdin or not sys.stdin.isatty():
            return
    except ValueError:  # standard input is closed
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415 - exists on POSIX only

        with suppress(termios.error):  # a job in the background may not touch its terminal
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
