"""Child processes, which none outlives this one, and requests to end: Ctrl-C, `kill`, a closed console."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, NoReturn, Self

from assistant.host.telemetry import for_child, for_program
from assistant.i18n import _
from assistant.model.errors import Cancelled, WorkFailed

if TYPE_CHECKING:
    import psutil

    from assistant.host.lock import Lock
    from assistant.host.windows import Job

# Ctrl-C, `kill`, and Windows' Ctrl-Break.
REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGBREAK", None)]))


def heed_requests_to_end() -> None:
    """Make each request to end raise `KeyboardInterrupt` in the main thread: `kill`, Ctrl-Break, a closed console.

    Windows gives a process whose console window is closed five seconds.
    """
    for number in REQUESTS_TO_END[1:]:  # Ctrl-C does so already, unless whoever started us wants it ignored
        signal.signal(number, signal.default_int_handler)
    heed_closing()


def heed_closing() -> None:
    """Make the closing of the console window act as Ctrl-C on Windows; do nothing elsewhere. Returns at once."""
    if sys.platform == "win32":
        from assistant.host.windows import on_console_closing  # noqa: PLC0415 - on Windows only

        on_console_closing(lambda: signal.raise_signal(signal.SIGINT))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold requests to end back while a short block runs, and raise the first one afterwards.

    Only the main thread receives them; on another one this does nothing.
    """
    received: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in REQUESTS_TO_END:
            handlers[number] = signal.signal(number, lambda number, _frame: received.append(number)) or signal.SIG_DFL
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


@contextlib.contextmanager
def on_interrupt(handler: Callable[[], None]) -> Iterator[None]:
    """Call `handler`, and do nothing else, for each request to end while a block runs on the main thread."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in REQUESTS_TO_END:
            handlers[number] = signal.signal(number, lambda _number, _frame: handler())
    try:
        yield
    finally:
        for number, previous in handlers.items():
            signal.signal(number, previous)


CLOCK_SECONDS = 2.0  # chosen: by how much the start of a process and the time of a file may differ for one moment
GRACE_SECONDS = 0.2  # chosen: little, as what our children were writing is thrown away or done again
WATCH_SECONDS = 0.05  # between two looks at a request to stop
# On Windows a child has a console of its own, without a window: Ctrl-C, Ctrl-Break and the closing of ours do not reach
# it (as in a session of its own elsewhere), and none opens where we have none, such as under a Jupyter server. It waits
# until it belongs to its job. https://learn.microsoft.com/windows/win32/procthread/process-creation-flags
_NO_WINDOW, _SUSPENDED = (0x08000000, 0x00000004) if sys.platform == "win32" else (0, 0)


class CancelToken:
    """A request to stop that any thread may make."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._signalled = False

    def set(self) -> None:
        """Request the stop; harmless when repeated."""
        self._event.set()

    def signal(self) -> None:
        """Request the stop from a signal handler, which must not wait for a lock that its own thread may hold."""
        self._signalled = True

    def __bool__(self) -> bool:
        return self._signalled or self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until the stop is requested, `seconds` at most; return whether it was."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raise `Cancelled` when a stop was requested."""
        if self:
            raise Cancelled(_("You cancelled the work."), hint=_("Start the step again when you are ready."))


class Isolation(NamedTuple):
    """How a child is isolated: its whole environment, its working folder, and limits.

    A line of over `longest` characters comes in parts; `enough`, asked several times a second for the child's process,
    returns whether to end it.
    """

    environment: Mapping[str, str]
    folder: Path
    longest: int
    enough: Callable[[int], bool]


def stream(  # noqa: PLR0913 - each is a condition of its own
    argv: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cancel: CancelToken | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
    stdin: str | None = None,
    lock: Lock | None = None,
    isolation: Isolation | None = None,
    log: IO[str] | None = None,
) -> int:
    """Run a child, hand each line of its merged output to `on_line`, and return its exit status (negative: a signal).

    The child holds `lock` too, so that it stays held while a child outlives us. `environment` is added to ours, unless
    `isolation` gives the whole of it. With `log` the output goes into that file and is handed on when the child has
    ended: one that says much is not held up by its reader.

    Raises `Cancelled` after the whole process group has ended on request, `TimeoutError` past `limit` seconds,
    and `WorkFailed` when the child cannot be started.
    """
    with contextlib.ExitStack() as stack:
        with uninterrupted():  # or Ctrl-C could leave a child that nobody ends
            variables = isolation.environment if isolation else for_child(environment)
            child = _start_child(argv, variables, stdin, lock, isolation.folder if isolation else None, log)
            if lock:
                stack.callback(lock.remove_child, child.pid)
            watch = stack.enter_context(_Watchdog(child, CancelToken() if cancel is None else cancel, limit, isolation))
        for line in _read_lines(child, isolation.longest if isolation else -1):
            on_line(line.rstrip("\r\n"))
        _wait_for_end(child)
        if log:
            log.seek(0)
            for line in log:
                on_line(line.rstrip("\r\n"))
    if watch.reason == "cancelled" and cancel is not None:
        cancel.check()
    if watch.reason == "limit":
        raise TimeoutError(limit)
    return child.returncode


class _Child(subprocess.Popen[str]):
    """A child that ends, with all that it starts, when it is asked to: a process group, on Windows a job."""

    job: Job | None = None


def _read_lines(child: _Child, longest: int) -> Iterator[str]:
    """Yield the lines of a child's output; longer ones come in parts of `longest` characters (-1: whole).

    On Windows another thread reads, as Python hears no Ctrl-C while it waits there.
    """
    read = iter(partial(child.stdout.readline, longest), "") if child.stdout else iter(())
    yield from _read_ahead(read) if sys.platform == "win32" else read


def _read_ahead(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines that another thread reads, so that Ctrl-C is heard while none comes."""
    lines_read = queue.SimpleQueue[str | None]()

    def put_lines() -> None:
        """Put each line into the queue, and None at the end."""
        for line in lines:
            lines_read.put(line)
        lines_read.put(None)

    threading.Thread(target=put_lines, daemon=True).start()
    line: str | None = ""
    while line is not None:
        line = ""
        with contextlib.suppress(queue.Empty):
            line = lines_read.get(timeout=WATCH_SECONDS)
        if line:
            yield line


def _wait_for_end(child: _Child) -> None:
    """Wait for a child to end; in steps on Windows, where Python hears no Ctrl-C while it waits for a process."""
    while sys.platform == "win32" and child.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(WATCH_SECONDS)
    child.wait()


def _start_child(
    argv: Sequence[str | Path],
    environment: Mapping[str, str],
    stdin: str | None,
    lock: Lock | None,
    folder: Path | None,
    output: IO[str] | None,
) -> _Child:
    """Start a child in a group or job of its own, record it in `lock`, and return it; raise `WorkFailed` on failure."""
    try:
        child = _Child(
            [str(part) for part in argv],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            bufsize=1,
            env=dict(environment),
            cwd=folder,
            start_new_session=sys.platform != "win32",
            creationflags=_NO_WINDOW | _SUSPENDED,
            pass_fds=(lock.fileno,) if lock and sys.platform != "win32" else (),
        )
    except OSError as error:
        raise WorkFailed(
            _("{program} cannot be started: {reason}.", program=argv[0], reason=error.strerror or error),
            hint=_("Check that the file exists and may be run."),
        ) from error
    if lock:
        lock.add_child(child.pid)
    child.job = _resume_in_job(child)
    if stdin is not None and child.stdin is not None:
        with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
            pipe.write(stdin)
    return child


def _resume_in_job(child: subprocess.Popen[str], *, alone: bool = False) -> Job | None:
    """Return a job of a suspended child that then goes on, and ends with us; None on systems other than Windows."""
    if sys.platform == "win32":
        from assistant.host.windows import Job  # noqa: PLC0415 - on Windows only

        return Job(child.pid, alone=alone)
    return None


class _Watchdog:
    """Ends the child's whole group when a stop is requested, the limit passes, or the isolation's watcher says so."""

    def __init__(
        self,
        child: _Child,
        cancel: CancelToken,
        limit: float | None,
        isolation: Isolation | None,
    ) -> None:
        self.reason = ""
        self._child, self._cancel, self._isolation = child, cancel, isolation
        self._deadline = None if limit is None else time.monotonic() + limit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._child.poll() is None:
            end_group(self._child)
        if self._child.job:
            self._child.job.close()
        if self._child.stdout:
            self._child.stdout.close()

    def _watch(self) -> None:
        """End the group as soon as one of the reasons holds, and record which: "cancelled", "limit" or "enough"."""
        while not self._over.wait(WATCH_SECONDS):
            if self._cancel:
                self.reason = "cancelled"
            elif self._deadline is not None and time.monotonic() > self._deadline:
                self.reason = "limit"
            elif self._isolation is not None and self._isolation.enough(self._child.pid):
                self.reason = "enough"
            if self.reason:
                end_group(self._child)
                return


def end_group(child: _Child) -> None:
    """Ask a child's process group to end, and kill it after a grace period; end a job at once."""
    if child.job:
        child.job.end()
        child.kill()
    else:
        _signal_group(child.pid, kill=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_SECONDS)
        _signal_group(child.pid, kill=True)
    child.wait()


def end_orphans(group: int, recorded: float) -> bool:
    """Kill a process group whose parent has ended; return whether any process of it was still running.

    `recorded` is when the group's number was written down (Unix time): a leader that started later has the number by
    chance, as the system reuses numbers.
    """
    import psutil  # noqa: PLC0415 - 15 ms that only this rare way pays

    members = _processes_of_group(group)
    leader = next((process for process in members if process.pid == group), None)
    with contextlib.suppress(psutil.Error):
        if leader and leader.create_time() > recorded + CLOCK_SECONDS:
            return False
    running = []
    for process in members:
        with contextlib.suppress(psutil.Error):
            running += [process] if process.status() != psutil.STATUS_ZOMBIE else []
    if running:
        _signal_group(group, kill=True)
    for process in running if sys.platform == "win32" else ():
        with contextlib.suppress(psutil.Error):
            process.kill()
    return bool(running)


def _processes_of_group(group: int) -> list[psutil.Process]:
    """Return the processes of a group; on Windows, which has none, a child and all that it started."""
    import psutil  # noqa: PLC0415 - see above

    if sys.platform == "win32":
        with contextlib.suppress(psutil.Error):
            leader = psutil.Process(group)
            return [leader, *leader.children(recursive=True)]
        return []
    return [process for process in psutil.process_iter() if _is_in_group(process.pid, group)]


def _is_in_group(pid: int, group: int) -> bool:
    """Return whether a process belongs to a group; False if it has ended."""
    try:
        return os.getpgid(pid) == group
    except OSError:
        return False


def _signal_group(group: int, *, kill: bool) -> None:
    """Send SIGTERM, or SIGKILL with `kill`, to a process group; do nothing on Windows, and if it has ended."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL if kill else signal.SIGTERM)


def is_running(pid: int) -> bool:
    """Return whether a process of this machine exists, another user's as well."""
    if sys.platform == "win32":
        import psutil  # noqa: PLC0415 - os.kill would end the process there

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start_detached(argv: Sequence[str | Path]) -> None:
    """Start a program that goes on when this process ends; its output is discarded."""
    child = subprocess.Popen(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=for_child(),
        start_new_session=sys.platform != "win32",
        creationflags=_NO_WINDOW,
    )
    threading.Thread(target=child.wait, daemon=True).start()  # or it would stay as a zombie


def replace_process(argv: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> NoReturn:
    """Replace this process by another program, whose environment has more variables.

    Windows cannot: there the program is a child that ends with this process, while what it starts (a browser) stays as
    it would anywhere; it alone answers Ctrl-C, and its status is ours.
    """
    words = [str(part) for part in argv]
    if sys.platform == "win32":
        for number in REQUESTS_TO_END:
            signal.signal(number, signal.SIG_IGN)
        heed_closing()
        child = subprocess.Popen(words, env=for_program(environment), text=True, creationflags=_SUSPENDED)
        job = _resume_in_job(child, alone=True)  # held until we end
        sys.exit(child.wait() if job else 1)
    os.execve(words[0], words, for_program(environment))  # noqa: S606 - an argument list, no shell


def is_root() -> bool:
    """Return whether this process runs as the superuser."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
