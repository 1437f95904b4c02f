"""Work on other threads: many waits at once within one time limit, and results that are needed later."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

PARALLEL = 16  # chosen: the look at an environment's packages is many small requests to few servers
CHECK_SECONDS = 0.05
STOP_SECONDS = 0.5  # chosen: within it, work that is told to stop ends in all but a server's silence

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_within(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    seconds: float,
    *,
    threads: int = PARALLEL,
    check: Callable[[], None] = lambda: None,
    stop: Callable[[], None] | None = None,
) -> dict[Item, Result]:
    """Return the results of `work` for all items, by item, as far as they come in time; raise its first failure.

    `check` is called meanwhile and may raise. `stop` tells the work that still runs at the end to stop; it is waited
    for a moment. A worker that hangs is left behind: `concurrent.futures` would wait for it at the end of the process
    (`threading._register_atexit` in CPython).
    """
    left, done, errors = deque(items), dict[Item, Result](), list[Exception]()

    def work_until_empty() -> None:
        """Do the work for one item after another until none is left, or one has failed."""
        while not errors:
            try:
                item = left.popleft()
            except IndexError:
                return
            try:
                done[item] = work(item)
            except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
                errors.append(error)

    deadline = time.monotonic() + seconds
    workers = [threading.Thread(target=work_until_empty, daemon=True) for _number in range(min(threads, len(items)))]
    try:
        for worker in workers:
            worker.start()
        while not errors and time.monotonic() < deadline and (busy := [one for one in workers if one.is_alive()]):
            busy[0].join(CHECK_SECONDS)
            check()
    finally:
        left.clear()
        if stop:
            stop()
            deadline = time.monotonic() + STOP_SECONDS
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))
    if errors:
        raise errors[0]
    return dict(done)


class Ahead(Generic[Result]):
    """Does work on another thread whose result is needed later; one that nobody asks for is never waited for."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._future: Future[Result] = Future()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Result]) -> None:
        """Do the work, and keep its result or what it raised."""
        try:
            self._future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for who asks for the result
            self._future.set_exception(error)

    def result(self, check: Callable[[], None] = lambda: None) -> Result:
        """Wait for the work and return its result, or raise as it did; `check` is called meanwhile and may raise."""
        while self._thread.is_alive():
            self._thread.join(CHECK_SECONDS)
            check()
        return self._future.result()
