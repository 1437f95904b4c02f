"""Runs one notebook in a child that is kept apart: a `Task` on stdin, `DONE` in the working folder."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import nbformat

from assistant.host.folders import user_cache
from assistant.model.record import Record, from_json

DONE = ".done.ipynb"
CELL_SECONDS = 300  # chosen: a lab's cell installs packages at most
KERNEL = "python3"


class Task(Record, frozen=True):
    """Which notebook of the working folder to run; `torch` is a Python that has torch, "" for none."""

    notebook: str
    torch: str = ""


def main() -> None:
    """Run the notebook to its end, also past cells that fail or take too long."""
    from jupyter_client.kernelspec import KernelSpecManager  # noqa: PLC0415 - the parent needs the names above only
    from nbclient import NotebookClient  # noqa: PLC0415 - likewise

    task = from_json(sys.stdin.read(), Task, "the task")
    _offer(task.torch)
    notebook = nbformat.read(task.notebook, as_version=4)  # type: ignore[no-untyped-call]
    named = notebook.metadata.get("kernelspec", {}).get("name", KERNEL)
    kernel = named if named in KernelSpecManager().find_kernel_specs() else KERNEL
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        iopub_timeout=CELL_SECONDS,  # after four seconds, its default, nbclient leaves out what a cell still displays
        raise_on_iopub_timeout=True,
        allow_errors=True,
        kernel_name=kernel,
        resources={"metadata": {"path": "."}},
    )
    client.execute()
    nbformat.write(notebook, DONE)  # type: ignore[no-untyped-call]


def _offer(torch: str) -> None:
    """Link the environment with torch into the cache folder, where labs look for one."""
    if torch:
        place = user_cache() / "torch-cpu"
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # Windows allows links to some only; the labs that need it tell that it lacks
            place.symlink_to(Path(torch).parent.parent, target_is_directory=True)


if __name__ == "__main__":
    main()
