"""Work on other threads: many waits at once within one time limit, and results that are needed later."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

PARALLEL = 16  # chosen: the look at an environment's packages is many small requests to few servers
CHECK_SECONDS = 0.05

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_within(work: Callable[[Item], Result], items: Sequence[Item], seconds: float) -> dict[Item, Result]:
    """Return the results of `work` for all items, by item, as far as they come in time; 16 threads at most work.

    A worker that hangs is left behind: `concurrent.futures` would wait for it at the end of the process
    (`threading._register_atexit` in CPython).
    """
    left: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in items:
        left.put(item)
    done: dict[Item, Result] = {}

    def work_until_empty() -> None:
        """Do the work for one item after another until none is left."""
        while not left.empty():
            try:
                item = left.get_nowait()
            except queue.Empty:
                return
            done[item] = work(item)

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=work_until_empty, daemon=True) for _number in range(min(PARALLEL, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
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
