"""Concurrent work: threads, requests to stop, and child processes, which end with this one unless they are detached."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeVar

from assistant.i18n import _
from assistant.model.errors import Cancelled, WorkFailed
from assistant.model.shell import HERE, Shell, shell_of

if TYPE_CHECKING:
    from assistant.host.lock import Lock
    from assistant.host.windows import Job

# Ctrl-C, `kill`, and Windows' Ctrl-Break.
REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGBREAK", None)]))
CLOCK_SECONDS = 2.0  # chosen: by how much the start of a process and the time of a file may differ for one moment
GRACE_SECONDS = 0.2  # chosen: little, as what our children were writing is thrown away or done again
WATCH_SECONDS = 0.05  # between two looks at a request to stop
LINES_AHEAD = 1000  # chosen: lines that are read before anybody takes them; then the child waits
# On Windows a child has a console of its own, without a window: Ctrl-C, Ctrl-Break and the closing of ours do not reach
# it (as in a session of its own elsewhere), and none opens where we have none, such as under a Jupyter server. It waits
# until it belongs to its job. https://learn.microsoft.com/windows/win32/procthread/process-creation-flags
_NO_WINDOW, _SUSPENDED = (0x08000000, 0x00000004) if sys.platform == "win32" else (0, 0)
AT_ONCE = 16  # chosen: the look at an environment's packages is many small requests to few servers
STOP_SECONDS = 0.5  # chosen: within it, work that is told to stop ends in all but a server's silence
_FORCED_COLOURS = {"FORCE_COLOR", "CLICOLOR_FORCE"}  # ipykernel sets the first one for all that a notebook starts
_SHELLS = {"cmd": Shell.CMD, "powershell": Shell.POWERSHELL, "pwsh": Shell.POWERSHELL}

Item = TypeVar("Item")
Result = TypeVar("Result")


def interrupt_on_signals() -> None:
    """Make `kill`, Ctrl-Break and the closing of the console raise `KeyboardInterrupt` from now on, as Ctrl-C does.

    To be called by the main thread, in which it is raised. Windows gives a process whose console is closed five
    seconds.
    """
    for number in REQUESTS_TO_END[1:]:  # Ctrl-C does so already, unless whoever started us wants it ignored
        signal.signal(number, signal.default_int_handler)
    _interrupt_on_console_closing()


def _interrupt_on_console_closing() -> None:
    """Make the closing of the console window act as Ctrl-C on Windows from now on; do nothing elsewhere."""
    if sys.platform == "win32":
        from assistant.host.windows import on_console_closing  # noqa: PLC0415 - on Windows only

        on_console_closing(lambda: signal.raise_signal(signal.SIGINT))


@contextlib.contextmanager
def on_interrupt(handler: Callable[[int], None]) -> Iterator[None]:
    """While a block runs, call `handler` with the number of each signal of `REQUESTS_TO_END`, instead of ending.

    Only the main thread receives signals; on another one the block just runs.
    """
    previous = {}
    if threading.current_thread() is threading.main_thread():
        for number in REQUESTS_TO_END:
            previous[number] = signal.signal(number, lambda number, _frame: handler(number)) or signal.SIG_DFL
    try:
        yield
    finally:
        for number, action in previous.items():
            signal.signal(number, action)


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals to end (Ctrl-C, `kill`) while a short block runs; send the first one again afterwards."""
    received: list[int] = []
    try:
        with on_interrupt(received.append):
            yield
    finally:
        if received:
            signal.raise_signal(received[0])


class CancelToken:
    """A request to stop that any thread may make; one made `within` another is requested with that, too."""

    def __init__(self, within: CancelToken | None = None) -> None:
        self._event = threading.Event()
        self._signalled = False
        self._within = within

    def set(self) -> None:
        """Request the stop; harmless when repeated."""
        self._event.set()

    def signal(self, _number: int = 0) -> None:
        """Request the stop from a signal handler, which must not wait for a lock that its own thread may hold."""
        self._signalled = True

    def __bool__(self) -> bool:
        return self._signalled or self._event.is_set() or bool(self._within)

    def wait(self, seconds: float) -> bool:
        """Wait until another thread requests the stop, `seconds` at most; return whether it was requested at all."""
        return self._event.wait(seconds) or bool(self)

    def check(self) -> None:
        """Raise `Cancelled` when a stop was requested."""
        if self:
            raise Cancelled(_("You cancelled the work."), hint=_("Start the step again when you are ready."))


def run_within(work: Callable[[Item], Result], items: Sequence[Item], seconds: float) -> dict[Item, Result]:
    """Run `work` for each item on threads; return the results, by item, that are there within `seconds`.

    What has not ended by then is abandoned and runs on. Raises the first failure.
    """
    return deque(run_at_once(work, items, seconds), maxlen=1).pop()


def run_at_once(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    seconds: float = math.inf,
    *,
    threads: int = AT_ONCE,
    stop: threading.Event | None = None,
) -> Generator[dict[Item, Result], None, None]:
    """Run `work` for each item, `threads` at a time; yield the results so far, by item, every 50 ms and at the end.

    The end is when all is done or `seconds` have passed; until then it is one and the same dict, which grows. The first
    failure is raised. After it, the end, or closing, no item is begun, `stop`, if given, is set, and workers then get
    half a second. One that hangs is abandoned: `concurrent.futures` would wait for it at the end of the process
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
            busy[0].join(WATCH_SECONDS)
            yield done
    finally:
        left.clear()
        if stop:
            stop.set()
            deadline = time.monotonic() + STOP_SECONDS
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))
    if errors:
        raise errors[0]
    yield dict(done)


class Background(Generic[Result]):
    """Work that starts on another thread at once, for a result needed later; without `result` nothing waits for it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        """Start the work on a thread that does not keep the process alive; what it raises is kept for `result`."""
        self._results, self._errors = list[Result](), list[BaseException]()

        def run() -> None:
            """Do the work, and keep its result, or what it raised, for `result`."""
            try:
                self._results.append(work())
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is for who asks for the result
                self._errors.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self, check: Callable[[], None] = lambda: None) -> Result:
        """Wait for the work and return its result, or raise as it did; `check` is called meanwhile and may raise."""
        while self._thread.is_alive():
            self._thread.join(WATCH_SECONDS)
            check()
        for error in self._errors:
            raise error
        return self._results[0]


@cache
def _telemetry_switches() -> Mapping[str, str]:
    """Return the values of the variables that turn telemetry off, by name, from the catalogue's file.

    It is read directly: start.py needs it before any package is installed.
    """
    import json  # noqa: PLC0415 - which detection does without

    path = Path(__file__).parents[1] / "catalog" / "data" / "telemetry.json"
    table = json.loads(path.read_bytes())["switches"]
    return {row["name"]: row["value"] for row in table["rows"]}


def telemetry_off() -> dict[str, str]:
    """Return the environment variables that turn telemetry off, by name, sorted."""
    return dict(sorted(_telemetry_switches().items()))


def program_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with `more`, and telemetry off unless the user has set those variables."""
    return {**_telemetry_switches(), **os.environ, **(more or {})}


def child_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program whose output we read: `program_environment`, no colours, Python in UTF-8.

    `more` goes before all of these, but variables that force colours are left out of it, too. Not PYTHONUTF8: pip reads
    pip.ini in the locale's encoding, in which `pip config set` writes it, and on a Chinese Windows would refuse its own
    file ("contains invalid utf-8 characters", pip 24.0;
    https://github.com/pypa/pip/blob/24.0/src/pip/_internal/configuration.py).
    """
    readable = {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    environment = program_environment({**readable, **(more or {})})
    return {name: value for name, value in environment.items() if name not in _FORCED_COLOURS}


class Isolation(NamedTuple):
    """How a child is isolated: its whole environment, its working folder, and limits.

    A line of over `longest` characters is handed on in parts; `enough` is called several times a second with the
    child's process number, and returns whether to end it.
    """

    environment: Mapping[str, str]
    folder: Path
    longest: int
    enough: Callable[[int], bool]


@contextlib.contextmanager
def running(
    argv: Sequence[str | Path],
    *,
    cancel: CancelToken | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float = math.inf,
    stdin: str | None = None,
    lock: Lock | None = None,
    isolation: Isolation | None = None,
) -> Iterator[Child]:
    """Run a child while a block reads the lines of its merged output by iterating over it; end it with the block.

    The child holds `lock`, too, which so stays held if it outlives us. `environment` is added to ours, unless
    `isolation` gives all of it. `stdin` is the text that it reads, by default none. When `cancel` is set, and after
    `limit` seconds, the iteration ends it and raises `Cancelled` or `TimeoutError`. Raises `WorkFailed` when it cannot
    be started.
    """
    with contextlib.ExitStack() as stack:
        with defer_signals():  # or Ctrl-C could leave a child that nobody ends
            variables = isolation.environment if isolation else child_environment(environment)
            child = _start_child(argv, variables, stdin, lock, isolation)
            stack.callback(child.close)
        child.cancel, child.limit, child.isolation = cancel, limit, isolation
        child.restart_limit()
        yield child


class Child(subprocess.Popen[str]):
    """A child process, which ends with all that it started: a process group, on Windows a job object.

    Iterating over it yields the lines of its output until it has ended; then `returncode` is its exit status (negative:
    a signal). Other threads write its input, read its output and wait for its end: on Windows, Python gets no Ctrl-C
    meanwhile.
    """

    job: Job | None = None
    lock: Lock | None = None
    cancel: CancelToken | None = None
    isolation: Isolation | None = None
    limit = math.inf

    def __iter__(self) -> Iterator[str]:
        """Yield each line until the child has ended, by itself or because its isolation says so.

        Raises `Cancelled` after the whole process group has ended on request, and `TimeoutError` past the limit.
        """
        reasons: dict[str, Callable[[], bool]] = {
            "cancelled": lambda: bool(self.cancel),
            "limit": lambda: time.monotonic() > self._deadline,
            "enough": lambda: self.isolation is not None and self.isolation.enough(self.pid),
        }
        next_look, reason = 0.0, ""
        while (line := self._next_line(WATCH_SECONDS)) is not None:
            if line:
                yield line.rstrip("\r\n")
            if not reason and time.monotonic() >= next_look:
                next_look = time.monotonic() + WATCH_SECONDS
                if reason := next((name for name, holds in reasons.items() if holds()), ""):
                    self._end()
        if self.cancel is not None and reason == "cancelled":
            self.cancel.check()
        if reason == "limit":
            raise TimeoutError(self.limit)

    def restart_limit(self, times: float = 1) -> None:
        """Let the time limit begin now, that many times as long."""
        self._deadline = time.monotonic() + self.limit * times

    def start_threads(self, text: str, longest: int) -> None:
        """Start a thread that reads the output, and one that writes `text` to the input, if there is one.

        Lines of more than `longest` characters are split; -1 splits none.
        """
        self._lines = queue.Queue[str | None](LINES_AHEAD)

        def read_to_the_end() -> None:
            """Put each line into the queue, and None when the child has ended."""
            for line in iter(partial(self.stdout.readline, longest), "") if self.stdout else ():
                self._lines.put(line)
            self.wait()
            self._lines.put(None)

        def write_input() -> None:
            """Write the text and close the input; ignore that the child does not read all of it."""
            if self.stdin:
                with contextlib.suppress(OSError), self.stdin as pipe:  # BrokenPipeError, and on Windows EINVAL
                    pipe.write(text)

        self._reader = threading.Thread(target=read_to_the_end, daemon=True)
        self._reader.start()
        threading.Thread(target=write_input, daemon=True).start()

    def _next_line(self, seconds: float) -> str | None:
        """Return the next line of the output; "" if none comes within `seconds`, None once, after the child's end."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return ""

    def _end(self) -> None:
        """End the child and wait: ask its process group to end, then kill it; a Windows job object at once."""
        if self.job:
            self.job.end()
        else:
            _signal_group(self.pid, kill=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait(GRACE_SECONDS)
            _signal_group(self.pid, kill=True)
        self.kill()
        self.wait()

    def close(self) -> None:
        """End the child if it still runs, and all that is left in its Windows job object; remove it from the lock.

        Closes its output, even if not all was read.
        """
        if self.poll() is None:
            self._end()
        if self.job:
            self.job.close()
        self._reader.join(WATCH_SECONDS)
        while self._reader.is_alive() and self._next_line(GRACE_SECONDS):
            pass  # a full queue would hold the reader for ever
        self._reader.join(WATCH_SECONDS)
        if self.stdout and not self._reader.is_alive():
            self.stdout.close()
        if self.lock:
            self.lock.remove_child(self.pid)


def _start_child(
    argv: Sequence[str | Path],
    environment: Mapping[str, str],
    stdin: str | None,
    lock: Lock | None,
    isolation: Isolation | None,
) -> Child:
    """Start a child in a process group or Windows job object of its own, record it in `lock`, and return it.

    It inherits the file of `lock`, which stays locked while it lives. `environment` is all that it gets; `isolation`
    sets its folder and splits long lines of its output, which includes its errors. Threads write `stdin` and read the
    output. Raises `WorkFailed` if it cannot be started.
    """
    try:
        child = Child(
            [str(part) for part in argv],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            bufsize=1,
            env=dict(environment),
            cwd=isolation.folder if isolation else None,
            start_new_session=sys.platform != "win32",
            creationflags=_NO_WINDOW | _SUSPENDED,
            pass_fds=(lock.fileno,) if lock and sys.platform != "win32" else (),
        )
    except OSError as error:
        raise WorkFailed(
            _("{program} cannot be started: {reason}.", program=argv[0], reason=error.strerror or error),
            hint=_("Check that the file exists and may be run."),
        ) from error
    child.start_threads(stdin or "", isolation.longest if isolation else -1)
    try:
        child.lock = lock
        if lock:
            lock.add_child(child.pid)
        child.job = _resume_in_job(child)
    except BaseException:
        child.close()
        raise
    return child


def start_detached(argv: Sequence[str | Path], lock: Lock) -> subprocess.Popen[bytes]:
    """Start a program that goes on when we end, without input and output, and return it; it is recorded in `lock`.

    It inherits the file of `lock`, which stays locked while it lives (not on Windows). Raises `OSError`.
    """
    child = subprocess.Popen(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=sys.platform != "win32",
        creationflags=_NO_WINDOW,
        pass_fds=(lock.fileno,) if sys.platform != "win32" else (),
    )
    lock.add_child(child.pid)
    return child


def _resume_in_job(child: subprocess.Popen[str], *, exclude_descendants: bool = False) -> Job | None:
    """Put a suspended child into a Windows job object, which ends with us, let it run, and return the job object.

    With `exclude_descendants` what the child starts is not in it. Other systems: do nothing and return None.
    """
    if sys.platform == "win32":
        from assistant.host.windows import Job  # noqa: PLC0415 - on Windows only

        return Job(child.pid, exclude_descendants=exclude_descendants)
    return None


def end_orphans(group: int, recorded: float) -> bool:
    """Kill a process group that a killed process left; return whether any process of it was still running.

    On Windows, that is a process and its descendants. `recorded` is when the group's number was recorded (Unix time): a
    leader that started later is another process, as the system reuses numbers; nothing is killed then.
    """
    import psutil  # noqa: PLC0415 - 15 ms that only this rare way pays

    with contextlib.suppress(psutil.Error):
        if psutil.Process(group).create_time() > recorded + CLOCK_SECONDS:
            return False
    running = list[psutil.Process]()
    if sys.platform == "win32":  # which has no groups: the process of that number and its descendants
        with contextlib.suppress(psutil.Error):
            leader = psutil.Process(group)
            running = [leader, *leader.children(recursive=True)]
    for process in () if sys.platform == "win32" else psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it may have ended by now
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    if running:
        _signal_group(group, kill=True)
    for process in running if sys.platform == "win32" else ():
        with contextlib.suppress(psutil.Error):
            process.kill()
    return bool(running)


def _signal_group(group: int, *, kill: bool) -> None:
    """Send SIGTERM, or SIGKILL with `kill`, to a process group; do nothing on Windows, and if it has ended."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL if kill else signal.SIGTERM)


def is_running(pid: int) -> bool:
    """Return whether a process of this machine exists, another user's as well."""
    import psutil  # noqa: PLC0415 - 15 ms, and start.py runs before it is installed

    return bool(psutil.pid_exists(pid))


def replace_process(argv: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> NoReturn:
    """Replace this process by another program, given by its path, with `environment` added to ours; never return.

    Windows cannot: there the program is a child that ends with this process, while what it starts (a browser) goes on;
    only the child reacts to Ctrl-C, and this process exits with its status. Raises `OSError` if it cannot be started.
    """
    words = [str(part) for part in argv]
    if sys.platform == "win32":
        for number in REQUESTS_TO_END:
            signal.signal(number, signal.SIG_IGN)
        _interrupt_on_console_closing()
        child = subprocess.Popen(words, env=program_environment(environment), text=True, creationflags=_SUSPENDED)
        job = _resume_in_job(child, exclude_descendants=True)  # held until we end
        sys.exit(child.wait() if job else 1)
    os.execve(words[0], words, program_environment(environment))  # noqa: S606 - an argument list, no shell


@cache  # nobody changes what a process was started from
def shell_for(system: str | None = None) -> Shell:
    """Return the shell in which a user of a system (None: this one) types commands.

    It is `Shell.SH`, for Windows `Shell.WINDOWS`. On Windows itself our nearest ancestor process that is cmd or
    PowerShell tells which of them.
    """
    shell = shell_of(system)
    if sys.platform == "win32" and shell is HERE:
        import psutil  # noqa: PLC0415 - 15 ms that only who prints a command need pay

        with contextlib.suppress(psutil.Error, OSError):
            for parent in psutil.Process().parents():
                try:
                    name = parent.name()
                except OSError:  # Wine does not name a process, but tells how it was started
                    name = PureWindowsPath(*parent.cmdline()[:1]).name
                if found := _SHELLS.get(name.lower().removesuffix(".exe")):
                    return found
    return shell


def is_run_by_uvx() -> bool:
    """Return whether uvx started this process, which then runs from uv's cache, where nothing may be added.

    Its prefix is a folder such as ~/.cache/uv/archive-v0/M1qoK1yLzf9Hy1Is then.
    """
    return Path(sys.prefix).parent.name.startswith("archive-v")
