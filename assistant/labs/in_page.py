"""Runs a lab's commands where no process can be started: in this Python itself, as in a page of a browser."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from assistant.host.interrupts import REQUESTS_TO_END
from assistant.i18n import _
from assistant.model.errors import BadInput

INSTALLERS = {"uv", "pip", "venv"}
# Commands of the assistant's that install something, look at what is installed, or start another program.
FOR_COMPUTERS = {
    "apply", "bundle", "check", "envs", "install", "lab", "mcp", "recover", "setup", "verify",
}  # fmt: skip


def run_in_page(argv: Sequence[str], variables: Mapping[str, str], folder: Path, *, given: str = "") -> tuple[int, str]:
    """Run a line for Python with these variables in a folder; return its exit status and all that it printed.

    `given` is what it reads from its standard input. It shares everything else with this process, and nothing ends it
    before it ends. Raises `BadInput` for what installs something.
    """
    printed = io.StringIO()
    with _as_started(argv, variables, folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
        status = _status(argv[1:], printed)
    return status, printed.getvalue().rstrip("\n")


@contextlib.contextmanager
def _as_started(argv: Sequence[str], variables: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Be in the folder, with the arguments, variables and module path of a process; at the end be as before."""
    before = Path.cwd(), dict(os.environ), sys.argv, sys.path[:], sys.stdin, set(sys.modules)
    signals = {number: signal.getsignal(number) for number in REQUESTS_TO_END}  # the assistant's commands change them
    os.chdir(folder)
    os.environ.update(variables)
    places = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    program = argv[1:2] if not argv[1].startswith("-") else []
    sys.path[:0] = [str(Path(*program).parent if program else folder), *places]
    try:
        yield
    finally:
        place, environment, sys.argv, sys.path[:], sys.stdin, modules = before
        for number, handler in signals.items():
            signal.signal(number, handler)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)
        for name in sys.modules.keys() - modules:  # the learner may change them before the next run
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def _status(arguments: Sequence[str], printed: io.StringIO) -> int:
    try:
        _run(*arguments)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            printed.write(f"{end.code}\n")  # as Python does at its end
            return 1
        return end.code or 0
    except BadInput:
        raise
    except BaseException as error:  # noqa: BLE001 - a program may fail in any way, and its traceback is what is learnt from
        traceback.print_exception(error.with_traceback(_of_program(error.__traceback__)), file=printed)
        return 1
    return 0


def _run(first: str, *rest: str) -> None:
    """Do what Python does with these arguments."""
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the learner's own line
    elif first == "-m" and (name := _for_computers(*rest)):
        raise BadInput(
            _("`{program}` cannot run in a browser: nothing can be installed there.", program=name),
            hint=_("Do this on a computer, in JupyterLab or in a terminal."),
        )
    elif first == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _for_computers(module: str, *arguments: str) -> str:
    """Return the name of a command that a browser cannot run; "" for one that it can."""
    if module == "assistant":
        return f"{module} {arguments[0]}" if arguments and arguments[0] in FOR_COMPUTERS else ""
    return module if module in INSTALLERS else ""


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """Leave out our own part of a traceback, and that of runpy."""
    while trace and trace.tb_frame.f_code.co_filename in {__file__, runpy.__file__, "<frozen runpy>"}:
        trace = trace.tb_next
    return trace
