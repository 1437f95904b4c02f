"""Runs `assistant` as its users do, in a process of its own, without starting Python for each run.

A parent that has imported the package forks a child per run. The child gets its own arguments, variables, folder and
streams, and answers with its exit code; only the imports, half a second of work, are shared. Where there is no fork,
and in the tests of starting itself (`start.py`, the wheel, signals, JupyterLab), Python is started.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import json
import locale
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]  # what fixtures give
APART = ("assistant.wizard", "assistant.runtime", "assistant.verify.ch")  # need Jupyter or torch
TURN = threading.Lock()  # for tests that run commands from several threads


def at_home(folder: Path, index: str = "http://127.0.0.1:9/simple", **more: str) -> dict[str, str]:
    """Return the variables of a user whose home is a folder, and whose pip knows one index: one that nobody serves."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    places = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "JUPYTER_DATA_DIR")
    own = {**dict.fromkeys(places, str(folder)), "UV_CACHE_DIR": str(folder / "cache"), "UV_HTTP_RETRIES": "0"}
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_INDEX_URL": index}
    return {**kept, **own, **pip, "LANGUAGE": "en", "COLUMNS": "200", **more}


def run(
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    input: str = "",  # noqa: A002 - as subprocess.run
    typed: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `assistant ARGUMENTS` to its end; `env` replaces all variables.

    Each line of `typed` is typed at a terminal by somebody who waits for the next question to be asked.
    """
    sys.audit("os.fork")  # for the watch over what tests start, which does not see the parent's
    words, environment = list(map(str, arguments)), dict(os.environ if env is None else env)
    if not hasattr(os, "fork"):
        command = [sys.executable, "-m", "assistant", *words]
        return subprocess.run(
            command, env=environment, cwd=cwd, input=input, capture_output=True, text=True, check=False
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        streams[0].write_text(input, encoding=encoding_in(environment))
        job = {"words": words, "env": environment, "cwd": str(cwd or Path.cwd()), "streams": list(map(str, streams))}
        with TURN, _seat(typed, streams[1]) as terminal:
            job["streams"][0] = terminal or job["streams"][0]
            parent = _parent()
            print(json.dumps(job), file=parent.stdin, flush=True)
            code = int(parent.stdout.readline())
        out, err = (path.read_text(encoding=encoding_in(environment), errors="replace") for path in streams[1:])
    return subprocess.CompletedProcess(words, code, out, err)


def encoding_in(environment: Mapping[str, str]) -> str:
    """Return the encoding of the streams of a Python that is started with these variables."""
    return environment.get("PYTHONIOENCODING", "utf-8")


@contextlib.contextmanager
def _seat(typed: str, screen: Path) -> Iterator[str]:
    """Give a terminal at which somebody answers the questions that a file shows; "" where nothing is typed."""
    if not typed:
        yield ""
        return
    import pty  # noqa: PLC0415 - exists on POSIX only

    over, (person, seat) = threading.Event(), pty.openpty()

    def answer() -> None:
        for number, line in enumerate(typed.splitlines(keepends=True), 1):
            while not (screen.exists() and screen.read_text("utf-8", "replace").count("]: ") >= number):
                if over.wait(0.02):
                    return
            os.write(person, line.encode())

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield os.ttyname(seat)
    finally:
        over.set()
        thread.join()
        os.close(person)
        os.close(seat)


@cache
def _parent() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    parent = subprocess.Popen([sys.executable, __file__], **pipes)
    atexit.register(parent.communicate)  # without a next job it ends
    return parent


def _serve() -> None:
    import assistant  # noqa: PLC0415 - the tests' side need not have it

    for module in pkgutil.walk_packages(assistant.__path__, "assistant."):
        if not module.name.startswith(APART) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(_become(**json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(words: list[str], env: dict[str, str], cwd: str, streams: list[str]) -> int:
    """Make this process what `python -m assistant` would be; answer its exit code."""
    from assistant.cli import main  # noqa: PLC0415 - likewise

    os.setsid()  # a terminal is not the parent's
    for handle, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if handle else 0))
        os.dup2(opened, handle)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            os.fdopen(handle, mode + "b"), encoding=encoding_in(env), errors=errors, line_buffering=handle == 2
        )
        for handle, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    with contextlib.suppress(locale.Error):  # as Python starts: a locale that the system lacks is passed over
        locale.setlocale(locale.LC_CTYPE, "")
    sys.argv, sys.path[0] = [str(Path(__file__).parents[1] / "assistant" / "__main__.py"), *words], cwd
    sys.orig_argv = [sys.executable, "-m", "assistant", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    _serve()
