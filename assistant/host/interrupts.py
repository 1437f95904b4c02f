"""Requests to end this process: Ctrl-C, `kill`, Ctrl-Break, a closed console; heeded, held back or handed on."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator

# Ctrl-C, `kill`, and Windows' Ctrl-Break.
REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGBREAK", None)]))


def heed_requests_to_end() -> None:
    """Let each request to end raise `KeyboardInterrupt` in the main thread: `kill`, Ctrl-Break, and a closed console.

    Windows gives a process whose console window is closed five seconds.
    """
    for number in REQUESTS_TO_END[1:]:  # Ctrl-C does so already, unless whoever started us wants it ignored
        signal.signal(number, signal.default_int_handler)
    heed_closing()


def heed_closing() -> None:
    """Let the closing of the console window be as Ctrl-C, and wait for the end of this process, on Windows."""
    if sys.platform == "win32":
        from assistant.host.windows import on_console_closing  # noqa: PLC0415 - on Windows only

        on_console_closing(lambda: signal.raise_signal(signal.SIGINT))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold requests to end back until a short block is over; only the main thread receives them."""
    heard: list[int] = []
    old = {}
    if threading.current_thread() is threading.main_thread():
        for number in REQUESTS_TO_END:
            old[number] = signal.signal(number, lambda number, _frame: heard.append(number)) or signal.SIG_DFL
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextlib.contextmanager
def on_interrupt(handler: Callable[[], None]) -> Iterator[None]:
    """Let a request to end call `handler`, and do nothing else; only the main thread receives them."""
    old = {}
    if threading.current_thread() is threading.main_thread():
        for number in REQUESTS_TO_END:
            old[number] = signal.signal(number, lambda _number, _frame: handler())
    try:
        yield
    finally:
        for number, before in old.items():
            signal.signal(number, before)
