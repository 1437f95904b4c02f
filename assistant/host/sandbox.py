"""Runs programs of ours on what strangers made: with limits, a clean environment and a throw-away folder.

A model is only read, so limits are enough for it. Code of strangers runs in bubblewrap as well, where it sees nothing
of this machine but the system's programs and the Pythons that it needs.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from assistant.host.process import CancelToken, Isolation, stream
from assistant.host.telemetry import quiet
from assistant.i18n import Text, _

BOOT = """import sys
sys.path[:] = [place for place in sys.path if place]  # what lies in the working folder is not ours
import json, runpy
job = json.loads(sys.argv.pop(1))
sys.path += [place for place in job["paths"] if place not in sys.path]
from assistant.host.confined import keep_to
keep_to(job["limits"])
runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
"""
# The same for any program, which takes this one's place.
BOOT_PROGRAM = """import sys
sys.path[:] = [place for place in sys.path if place]
import json, os
job = json.loads(sys.argv[1])
sys.path += [place for place in job["paths"] if place not in sys.path]
from assistant.host.confined import keep_to
keep_to(job["limits"])
os.execvpe(job["argv"][0], job["argv"], {**os.environ, **job["variables"]})
"""
# Where programs lie, which language is spoken, what Windows and the loader of libraries need: no variable of these
# holds a secret. Whatever else is set stays behind.
PASSED = {
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
    "PROGRAMW6432", "DRIVERDATA", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER",
}  # fmt: skip
# How packages are found; passed with the network, and only where no password stands in it.
INDEXES = {
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "SSL_CERT_FILE", "UV_INDEX_URL",
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
}  # fmt: skip
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
SETTINGS = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "nsswitch.conf",
    "passwd",
    "group",
)
NETWORK = ("resolv.conf", "hosts", "ssl/certs", "ca-certificates", "pki")
GROUP_MEMORY = "/sys/fs/cgroup/memory.max"  # a container's share, where it has one
THREADS = 16  # of a process: the system counts them, not processes
THREAD_BYTES = 128 << 20  # an arena of glibc's malloc (64 MB), a stack, and buffers of a BLAS
KEPT_LINES = 200
MOST_LINES = 20_000
LONGEST_LINE = 1 << 16
FIRST_LOOK_SECONDS = 0.2  # most children have ended by then
PAUSES = 9  # of ten parts of the time, one is spent on looking
PROBE_SECONDS = 20.0


class Limits(NamedTuple):
    """What a child may use: seconds, bytes of memory, processes, open files, and the bytes of one file."""

    seconds: float
    memory: int
    processes: int = 64
    files: int = 4096
    file_bytes: int = 1 << 40

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
            "FSIZE": self.file_bytes,
        }


class Outcome(NamedTuple):
    """How a child ended: its status, the last lines of its output, and the limit that ended it.

    `reached` is "time", "memory", "processes", or "" for a child that ended by itself.
    """

    code: int
    lines: tuple[str, ...] = ()
    reached: str = ""


class Bubble(NamedTuple):
    """What strangers' code may see besides the system's programs: `places` to read, and the network or not.

    In `shared` it may write: only for programs that run no stranger's code.
    """

    places: tuple[Path, ...] = ()
    network: bool = False
    shared: tuple[Path, ...] = ()


def confine(  # noqa: PLR0913 - each is a condition of its own
    module: str,
    limits: Limits,
    folder: Path,
    *,
    stdin: str = "",
    python: str = sys.executable,
    bubble: Bubble | None = None,
    work: Path | None = None,
    cancel: CancelToken | None = None,
) -> Outcome:
    """Run a module of ours in a child that keeps to its limits, and return how it ended.

    Its home is in the throw-away `folder`. It works in `work`, by default in `folder`. With a `bubble` it sees nothing
    else, which `obstacle` must have found possible. Raises `Cancelled` when asked to stop and `WorkFailed` when the
    Python cannot be started.
    """
    job = {"paths": own_paths(python), "limits": _bounds(limits, bubble), "module": module}
    argv = [python, "-X", "utf8", "-c", BOOT, json.dumps(job)]
    environment = clean_environment(folder, network=bubble is not None and bubble.network)
    shut = [*_bubblewrap(bubble, folder, work), *argv] if bubble else argv
    lines = deque[str](maxlen=KEPT_LINES)
    code, reached = _ended(
        shut, limits, lines, Isolation(environment, work or folder, LONGEST_LINE, _never), stdin, cancel
    )
    return Outcome(code, tuple(lines), reached)


def shut_in(
    argv: Sequence[str],
    limits: Limits,
    folder: Path,
    *,
    bubble: Bubble | None,
    work: Path,
    variables: Mapping[str, str],
) -> Outcome:
    """Run any program as `confine` does a module of ours, with more variables; return all lines up to `MOST_LINES`."""
    job = {"paths": own_paths(), "limits": _bounds(limits, bubble), "argv": list(argv), "variables": dict(variables)}
    command = [sys.executable, "-c", BOOT_PROGRAM, json.dumps(job)]
    environment = clean_environment(folder, network=bubble is not None and bubble.network)
    shut = [*_bubblewrap(bubble, folder, work), *command] if bubble else command
    lines = deque[str](maxlen=MOST_LINES)
    code, reached = _ended(shut, limits, lines, Isolation(environment, work, LONGEST_LINE, _never))
    return Outcome(code, tuple(lines), reached)


def _never(_pid: int) -> bool:
    return False


def _bounds(limits: Limits, bubble: Bubble | None) -> dict[str, int]:
    return limits.of_system() | ({"NPROC": limits.processes * THREADS} if bubble else {})


def _ended(
    argv: Sequence[str],
    limits: Limits,
    lines: deque[str],
    isolation: Isolation,
    stdin: str = "",
    cancel: CancelToken | None = None,
) -> tuple[int, str]:
    """Run a child and watch it; return its status and the limit that it reached."""
    watch = _Watch(limits)
    try:
        code = stream(
            argv,
            lines.append,
            cancel=cancel,
            limit=limits.seconds,
            stdin=stdin,
            isolation=isolation._replace(enough=watch),
        )
    except TimeoutError:
        return -1, "time"
    finally:
        watch.end()
    short = code and any("MemoryError" in line or "bad_alloc" in line for line in lines)
    return code, watch.reached or ("memory" if short else "")


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


def clean_environment(folder: Path, *, network: bool) -> dict[str, str]:
    """Return all variables that a child may see, with a home and a place for temporary files in `folder`."""
    home, short = folder / "home", folder / "tmp"
    for place in (home, short):
        place.mkdir(exist_ok=True)
    passed = {name: value for name, value in os.environ.items() if name.upper() in PASSED or name.startswith("LC_")}
    if network:
        indexes = {name: value for name, value in os.environ.items() if name.upper() in INDEXES}
        passed |= {name: value for name, value in indexes.items() if "@" not in value}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(home))
    passed |= homes | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(short))
    return passed | {"PYTHONUSERBASE": site.getuserbase(), **quiet()}


def _package() -> Path:
    return Path(__file__).resolve().parents[1]


@cache
def obstacle() -> Text:
    """Return why no sandbox for strangers' code works here; "" where one does."""
    if which("bwrap") is None:
        return _("bubblewrap is not installed") if sys.platform == "linux" else _("bubblewrap exists only on Linux")
    with TemporaryDirectory(prefix="sandbox-") as name:
        folder = Path(name).resolve()
        command = [*_bubblewrap(Bubble(), folder, None), sys.executable, "-c", ""]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=clean_environment(folder, network=False),
                timeout=PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return (done.stderr.strip().splitlines() or [str(done.returncode)])[-1] if done.returncode else ""


def _bubblewrap(bubble: Bubble, folder: Path, work: Path | None) -> list[str]:
    """Return the command that shuts a program in; only `folder` can be written to.

    No file system in memory stays writable: what lies in one counts for no process, so no limit would hold for it.
    """
    argv = [which("bwrap") or "bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    argv += ["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    argv += ["--share-net"] if bubble.network else []
    for place, inside in ((folder / "tmp", "/tmp"), (folder / "shm", "/dev/shm")):  # noqa: S108 - the sandbox's own
        place.mkdir(exist_ok=True)
        argv += ["--bind", str(place), inside]
    names = (*SETTINGS, *(NETWORK if bubble.network else ()))
    seen = [*SYSTEM, *(f"/etc/{name}" for name in names)]
    visible = {*map(Path, seen), *_own_places(), *bubble.places}
    for place in sorted(one for one in visible if not visible.intersection(one.parents)):
        argv += ["--ro-bind-try", str(place), str(place)]
    for place in bubble.shared:
        argv += ["--bind", str(place), str(place)]
    argv += ["--bind", str(folder), str(folder), "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*argv, "--chdir", str(work or folder), "--"]


def _own_places() -> Iterator[Path]:
    """Yield where the assistant, its Python and its dependencies lie."""
    yield _package()
    yield from places_of(sys.executable)
    for place in (sys.prefix, sys.base_prefix, *site.getsitepackages()):
        yield from _decent(Path(place))


def places_of(python: str | Path) -> tuple[Path, ...]:
    """Return what a Python needs to run: its environment, the one that this was made from, and links between them."""
    found, hop = list[Path](), Path(python)
    root = hop.parent.parent
    with suppress(OSError):
        settings = (root / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        homes = [line.partition("=")[2].strip() for line in settings if line.partition("=")[0].strip() == "home"]
        found += [root, *(Path(home).parent for home in homes)]
    while hop.is_symlink() and len(found) < KEPT_LINES:
        hop = hop.parent / hop.readlink()
        found.append(Path(os.path.normpath(hop)))
    found.append(Path(python).resolve().parent.parent)
    return tuple(place for one in dict.fromkeys(found) for place in _decent(one))


def _decent(place: Path) -> Iterator[Path]:
    """Yield a place and what it resolves to, unless the user's home folder would be visible with it."""
    for one in {place, place.resolve()}:
        if not any(private.is_relative_to(one) for private in (Path.home(), Path.home().resolve())):
            yield one
