"""Many small waits at once, within one time limit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["each_within"]

PARALLEL = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_within(work: Callable[[Item], Result], items: Sequence[Item], seconds: float) -> dict[Item, Result]:
    """Do the work for all items at once; answer what was done in time. A worker that hangs is left behind."""
    todo: queue.SimpleQueue[Item] = queue.SimpleQueue()
    for item in items:
        todo.put(item)
    done: dict[Item, Result] = {}

    def worker() -> None:
        while not todo.empty():
            try:
                item = todo.get_nowait()
            except queue.Empty:
                return
            done[item] = work(item)

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=worker, daemon=True) for _number in range(min(PARALLEL, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(done)
