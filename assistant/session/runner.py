"""Runs a task: at once (terminal, tests), or on a thread that batches events (Jupyter)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Protocol

from assistant.model.event import Event, Sink

PUMP_SECONDS = 0.1  # between deliveries; chosen: smooth to the eye, and few messages for a remote browser
YIELD_SECONDS = 0.005  # lets the callback that started the job return first; both would share one interpreter lock

Job = Callable[[Sink], None]
End = Callable[[], None]
Deliver = Callable[[tuple[Event, ...]], None]


def nothing() -> None:
    """Do nothing when a job is over."""


class Runner(Protocol):
    """Runs one job; `deliver` receives the events that the job emits, in order, and `end` is called after the last."""

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Start the job and return, at once or after it."""


class InlineRunner:
    """Runs the job in the caller's thread and delivers each event as it comes."""

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Run the job to its end."""
        job(lambda event: deliver((event,)))
        end()


class ThreadRunner:
    """Runs the job on a daemon thread; events are delivered in batches, so that they cannot flood the front end.

    Its threads get a copy of the caller's context: there ipykernel keeps which message it answers, and 7.0 lets nobody
    send a widget's change without (`Kernel.get_parent` in ipykernel/kernelbase.py; ipython/ipykernel#1451 mended 7.1).
    """

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Start both threads and return."""
        work = (self._work, job, deliver, end)
        threading.Thread(target=copy_context().run, args=work, daemon=True, name="assistant-job").start()

    def _work(self, job: Job, deliver: Deliver, end: End) -> None:
        time.sleep(YIELD_SECONDS)
        pump = _Pump(deliver)
        pump.start()
        try:
            job(pump.take)
        finally:
            pump.stop()
        end()


class _Pump(threading.Thread):
    def __init__(self, deliver: Deliver) -> None:
        super().__init__(daemon=True, name="assistant-pump")
        self._context = copy_context()
        self._deliver = deliver
        self._gathered: list[Event] = []
        self._lock = threading.Lock()
        self._over = threading.Event()

    def take(self, event: Event) -> None:
        """Keep one event for the next delivery."""
        with self._lock:
            self._gathered.append(event)

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._over.wait(PUMP_SECONDS):
            self._context.run(self._flush)

    def stop(self) -> None:
        """Deliver the rest and end."""
        self._over.set()
        self.join()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            events, self._gathered = tuple(self._gathered), []
        if events:
            self._deliver(events)
