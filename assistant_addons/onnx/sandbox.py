"""Runs programs of ours on what strangers made: with limits, a clean environment and a throw-away folder."""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from assistant.api.system import CancelToken, Isolation, stream, telemetry_off

BOOT = """import sys
sys.path[:] = [place for place in sys.path if place]  # what lies in the working folder is not ours
import json, runpy
job = json.loads(sys.argv.pop(1))
sys.path += [place for place in job["paths"] if place not in sys.path]
from assistant_addons.onnx.confined import keep_to
keep_to(job["limits"])
runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
"""
# Where programs lie, which language is spoken, what Windows and the loader of libraries need: no variable of these
# holds a secret. Whatever else is set stays behind.
PASSED = {
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
    "PROGRAMW6432", "DRIVERDATA", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER",
}  # fmt: skip
GROUP_MEMORY = "/sys/fs/cgroup/memory.max"  # a container's share, where it has one
THREAD_BYTES = 128 << 20  # an arena of glibc's malloc (64 MB), a stack, and buffers of a BLAS
KEPT_LINES = 200
LONGEST_LINE = 1 << 16
FIRST_LOOK_SECONDS = 0.2  # most children have ended by then
PAUSES = 9  # of ten parts of the time, one is spent on looking


class Limits(NamedTuple):
    """What a child may use: seconds, bytes of memory, processes, open files."""

    seconds: float
    memory: int
    processes: int = 64
    files: int = 4096

    def of_system(self) -> dict[str, int]:
        """Return those that the system enforces, by the names of `resource` ("AS" for RLIMIT_AS).

        Each process counts its own seconds, so these end only what outlives its parent; threads reserve addresses that
        they never fill, so memory itself is watched too.
        """
        cores = os.cpu_count() or 1
        return {
            "AS": self.memory + cores * THREAD_BYTES,
            "CPU": int(self.seconds * cores) + 1,
            "CORE": 0,
            "NOFILE": self.files,
        }


class Outcome(NamedTuple):
    """How a child ended: its status, the last lines of its output, and the limit that ended it.

    `reached` is "time", "memory", "processes", or "" for a child that ended by itself.
    """

    code: int
    lines: tuple[str, ...] = ()
    reached: str = ""


def confine(
    module: str,
    limits: Limits,
    folder: Path,
    *,
    stdin: str = "",
    python: str = sys.executable,
    cancel: CancelToken | None = None,
) -> Outcome:
    """Run a module of ours in a child that keeps to its limits, and return how it ended.

    It works in the throw-away `folder`, and its home is there. Raises `Cancelled` when asked to stop and `WorkFailed`
    when the Python cannot be started.
    """
    job = {"paths": own_paths(python), "limits": limits.of_system(), "module": module}
    argv = [python, "-X", "utf8", "-c", BOOT, json.dumps(job)]
    lines, watch = deque[str](maxlen=KEPT_LINES), _Watch(limits)
    isolation = Isolation(clean_environment(folder), folder, LONGEST_LINE, watch)
    try:
        code = stream(argv, lines.append, cancel=cancel, limit=limits.seconds, stdin=stdin, isolation=isolation)
    except TimeoutError:
        return Outcome(-1, tuple(lines), "time")
    finally:
        watch.end()
    short = code and any("MemoryError" in line or "bad_alloc" in line for line in lines)
    return Outcome(code, tuple(lines), watch.reached or ("memory" if short else ""))


def own_paths(python: str = sys.executable) -> list[str]:
    """Return where the assistant and its dependencies lie; for another Python only what it cannot bring itself."""
    if python == sys.executable:
        return [place for place in sys.path if place]
    return list(dict.fromkeys([str(_package().parent), sysconfig.get_path("purelib")]))


def share_of_memory(share: float, least: int) -> int:
    """Return a share of this machine's memory in bytes, or of its container's, but not less than `least`."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        import psutil  # noqa: PLC0415 - two hundredths of a second

        total = int(psutil.virtual_memory().total)
    with suppress(OSError, ValueError):  # no container, or one without a limit
        total = min(total, int(Path(GROUP_MEMORY).read_text(encoding="ascii")))
    return max(least, int(total * share))


class _Watch:
    """Watches a child and all that it started, and remembers which limit was exceeded."""

    def __init__(self, limits: Limits) -> None:
        self.reached = ""
        self._limits = limits
        self._known: set[Any] = set()
        self._next = time.monotonic() + FIRST_LOOK_SECONDS

    def __call__(self, pid: int) -> bool:
        """Return whether the child has to end; on a machine with many processes it looks less often."""
        began = time.monotonic()
        if began >= self._next:
            self._look(pid)
            self._next = time.monotonic() + PAUSES * (time.monotonic() - began)
        return bool(self.reached)

    def _look(self, pid: int) -> None:
        import psutil  # noqa: PLC0415 - only for children that live longer than a moment

        used = 0
        with suppress(psutil.Error):
            first = psutil.Process(pid)
            family = [first, *first.children(recursive=True)]
            self._known.update(family)
            if len(family) > self._limits.processes:
                self.reached = "processes"
            for one in family:
                with suppress(psutil.Error):
                    used += one.memory_info().rss
        if not self.reached and used > self._limits.memory:
            self.reached = "memory"

    def end(self) -> None:
        """Kill what the child left behind; a process that has its number since then is another and stays."""
        for one in self._known:
            with suppress(Exception):  # it has ended, or was never ours to end
                one.kill()


def clean_environment(folder: Path) -> dict[str, str]:
    """Return all variables that a child may see, with a home and a place for temporary files in `folder`."""
    home, short = folder / "home", folder / "tmp"
    for place in (home, short):
        place.mkdir(exist_ok=True)
    passed = {name: value for name, value in os.environ.items() if name.upper() in PASSED or name.startswith("LC_")}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(home))
    passed |= homes | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(short))
    return passed | {"PYTHONUSERBASE": site.getuserbase(), **telemetry_off()}


def _package() -> Path:
    return Path(__file__).resolve().parents[1]
