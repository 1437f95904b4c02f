"""Run the checks in the target's own Python, limit the time of each, and turn its output into a report and findings."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from assistant.catalog.bundles import trial_of
from assistant.catalog.companions import trial
from assistant.catalog.rows import Trial
from assistant.host.lock import Lock
from assistant.host.process import Ahead, CancelToken, stream
from assistant.i18n import Message, Text, _, lines, render
from assistant.model.errors import AssistantError, BadInput, Cancelled, WorkFailed
from assistant.model.event import Event, FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record, decoder, replace
from assistant.model.report import (
    CHECKS,
    RIGHT,
    Check,
    Environment,
    Level,
    Report,
    Status,
    check_title,
    checked_package,
    package_check,
    recipe_check,
)
from assistant.model.requirement import to_import
from assistant.privacy import Lines, Policy
from assistant.verify.results import ending, finding_of, sentence

FIRST = {"import", "device", "copy"}  # a device that dies at these will not do better in another process
MEMORY_EXIT = 75  # what child.py ends with when a check took too much memory
# Chosen: a library's last words before a crash fit, and a flood of them does not fill the report.
STRAY_LINES = 20
MOST_TIMEOUTS = 3  # chosen: checks in a row that do not end, from which the device hangs and not one operator
LINE_LIMIT = 2000


class Clock(CancelToken):
    """Stops a child when the user asks for it, when its check has reached the time limit, or when it has answered.

    The last is for what a library leaves running behind the answer: it would keep the child's output open.
    """

    def __init__(self, cancel: CancelToken | None, limit: float) -> None:
        super().__init__()
        self._cancel, self.limit = cancel, limit
        self.restart()

    def restart(self) -> None:
        """Begin the time of another check."""
        self.expired = False
        self._deadline = time.monotonic() + self.limit

    def __bool__(self) -> bool:
        if self._cancel or super().__bool__():
            return True
        self.expired = self.expired or time.monotonic() > self._deadline
        return self.expired


class Results:
    """The results of all checks, which several children may report at once; `done` has them by key."""

    def __init__(self, device: str, keys: Sequence[str], sink: Sink) -> None:
        self.facts: dict[str, str] = {}
        self.done: dict[str, Check] = {}
        self._device, self._keys, self._sink = device, tuple(keys), sink
        self._telling = threading.Lock()

    def open_keys(self, among: Iterable[str]) -> list[str]:
        """Return the checks without a result among some, in order."""
        return [key for key in among if key not in self.done]

    @property
    def right(self) -> list[str]:
        """The checks that passed, on which others may rest."""
        return [key for key, check in self.done.items() if check.status in RIGHT]

    def report(self, seconds: float) -> Report:
        """Return the report, with the results in the order of the checks."""
        checks = tuple(self.done[key] for key in self._keys)
        return Report(device=self._device, checks=checks, facts=self.facts, seconds=seconds)

    def skip(self, keys: Iterable[str], why: Text) -> None:
        """Skip the checks among some that have no result."""
        for key in self.open_keys(keys):
            self.finish(Check(key=key, status=Status.SKIPPED, detail=why))

    def finish(self, check: Check) -> None:
        """Take a result, the first one of each check, and raise the finding that follows from it."""
        if check.key not in self._keys or check.key in self.done:
            return
        self.done[check.key] = check
        if finding := finding_of(check, self._device):
            self.tell(FindingRaised(step=Step.VERIFY, finding=finding))

    def progress(self, text: Message) -> None:
        """Report how many checks have ended, with what is done now."""
        done, total = len(self.done), len(self._keys)
        self.tell(Progress(step=Step.VERIFY, text=text, done=done, total=total, unit="checks", part=Part.CHECK))

    def tell(self, event: Event) -> None:
        """Hand an event on, one at a time."""
        with self._telling:
            self._sink(event)


class _Line(Record, frozen=True):
    """One line that the child wrote; what does not decode as one comes from a library.

    {"start": "matmul"}
    {"check": {"key": "matmul", "status": "passed", "seconds": 0.0003, "error": 2.1e-07, "tolerance": 0.0001}}
    """

    facts: dict[str, str] = {}
    start: str | None = None
    check: Check | None = None
    reason: str = ""
    values: dict[str, str | int | float] = {}


class Child:
    """The process that runs some checks, and the one that goes on after it: what it says, and how it ends."""

    def __init__(self, results: Results, keys: Sequence[str], clock: Clock) -> None:
        self.keys, self.clock = tuple(keys), clock
        self._results = results
        self._left = len(keys)
        self._timeouts = 0
        self._cleaned = Lines(Policy.USABLE)
        self._stray: deque[str] = deque(maxlen=STRAY_LINES)

    def open_keys(self) -> list[str]:
        """Return its checks without a result, in order."""
        return self._results.open_keys(self.keys)

    def hear(self, text: str) -> None:
        """Read one line of the child's output; what a library wrote becomes a line of the log."""
        try:
            line = decoder(_Line).decode(text)
        except msgspec.DecodeError:
            if text.strip():
                self._stray.append(self._cleaned(text)[:LINE_LIMIT])
                self._results.tell(LogLine(step=Step.VERIFY, text=self._stray[-1]))
            return
        self._results.facts.update(line.facts)
        if line.start is not None:
            self.clock.restart()
            self._stray.clear()
            self._results.progress(check_title(line.start))
        if line.check is not None and line.check.key in self.keys:
            self._timeouts = 0
            detail = lines((sentence(line.reason, line.values), line.check.detail))
            self._results.finish(replace(line.check, detail=detail))
            if checked_package(line.check.key):
                self.clock.set()

    def end(self, code: int) -> None:
        """Set the status of the check during which the child died; those after it are left to another child."""
        left, self._left = self._left, len(self.open_keys())
        if not self._left and code:
            self._results.facts["ending"] = render(ending(code))
        elif self._left and (code != MEMORY_EXIT or self._left == left):
            self._stop(Status.FAILED, ending(code), go_on=self._results.done.keys() >= FIRST)

    def stopped(self) -> bool:
        """Set the status of the check that reached its time limit; False if the user stopped.

        Those after it are left to another child, unless the device hangs. A child that was stopped after its answer has
        nothing left to do.
        """
        if not self.clock.expired:
            return not self.open_keys()
        self._timeouts += 1
        go_on = self._results.done.keys() >= FIRST and self._timeouts < MOST_TIMEOUTS
        text = _("It did not end within {seconds:g} seconds.", seconds=self.clock.limit)
        self._stop(Status.TIMEOUT, text, go_on=go_on)
        return True

    def _stop(self, status: Status, detail: Text, *, go_on: bool = False) -> None:
        """Set the status of the check at hand and, unless the rest can go on, skip those after it."""
        for key in self.open_keys()[:1]:
            self._results.finish(Check(key=key, status=status, detail=lines((detail, *self._stray))))
        if not go_on:
            self._results.skip(self.keys, _("The verification ended before this check."))
        self._left = len(self.open_keys())


CHILD = Path(__file__).with_name("child.py")
IMPORT_LIMIT_FACTOR = (
    2  # chosen: an import may have to compile its modules first, and has so many times a check's limit
)
IMPORT_WORKERS = 2  # distributions imported at once: each import keeps a core busy, and some take a gigabyte
_DEVICE = re.compile(r"(?:{})(?::\d+)?".format("|".join(backend.value for backend in Backend)))


def run(  # noqa: PLR0913 - what is verified; the rest is how, with defaults
    environment: Environment,
    plan: Plan | None = None,
    *,
    device: str = "",
    level: Level = "quick",
    sink: Sink = lambda _event: None,
    cancel: CancelToken | None = None,
    traceless: bool = False,
    lock: Lock | None = None,
) -> Report:
    """Verify an environment by its plan: its device, what was asked for, a recipe's call, with the plan's variables.

    Without a plan, or on another device, `device` names that ("cpu" where neither does). `level`, `sink`, `cancel`,
    `traceless`, `lock` and what is raised are those of `run_checks`. Meanwhile another core compiles what the checks
    will import, unless that is to be `traceless`.
    """
    over = CancelToken()
    ahead = None if traceless else Ahead(lambda: compile_ahead(environment.python, over, lock))
    try:
        return run_checks(
            environment.python,
            device or (plan.backend if plan else Backend.CPU).value,
            sink,
            cancel,
            level=level,
            packages=to_import(plan, environment.packages) if plan else (),
            recipe=plan.recipe if plan else "",
            variables=plan.env if plan else None,
            traceless=traceless,
            lock=lock,
        )
    finally:
        over.set()
        if ahead:
            ahead.result()  # nothing may write there any more when all is rolled back


def run_checks(  # noqa: PLR0913 - what runs it, on what, who hears it; the rest are limits with defaults
    python: str | Path,
    device: str,
    sink: Sink,
    cancel: CancelToken | None = None,
    *,
    level: Level | tuple[str, ...] = "quick",
    packages: Sequence[str] = (),
    recipe: str = "",
    calls: bool = True,
    limit_per_check: float = 60.0,
    memory_limit: int = 4 << 30,
    variables: Mapping[str, str] | None = None,
    traceless: bool = False,
    lock: Lock | None = None,
) -> Report:
    """Run checks with the interpreter `python` on `device` ("cpu", "cuda:1", …) and report each of them.

    `level` is "quick" (seconds), "full" (a minute or two; measures speed too), or the keys of some checks. Each of the
    distributions `packages` is imported, in a process of its own, once torch can be; with `calls`, a line that shows
    that it works is run, where one is known, and the verification call of a `recipe`, by its key. `variables` are set
    for the children; `traceless` leaves no bytecode behind. The children hold `lock` until they end. After a check
    that takes more than `limit_per_check` seconds, that makes the process grow by more than `memory_limit` bytes, or
    whose process dies, another process goes on with the others; an import has twice that time. Where several in a row
    take too long, the device hangs, and the rest is reported as skipped.
    Raises `BadInput` for an unknown device, `WorkFailed` when the interpreter cannot be started, and `Cancelled`.
    """
    if not _DEVICE.fullmatch(device):
        raise BadInput(
            _("There is no device called {device!r}.", device=device),
            hint=_("Use cpu, cuda, rocm, xpu, mps or directml, with an index where there are several, as in cuda:1."),
        )
    keys = CHECKS[level] if isinstance(level, str) else level
    asked = {package_check(name): {"name": name, **_call(trial(name) if calls else None)} for name in packages}
    found, unknown = _trial_of_recipe(recipe) if calls else (None, "")
    if found or unknown:
        asked[recipe_check(recipe)] = _call(found)
    results, started = Results(device, (*keys, *asked), sink), time.monotonic()
    if unknown:
        results.skip((recipe_check(recipe),), unknown)
    command = [python, *(("-B",) if traceless else ()), "-I", "-X", "utf8", CHILD]

    def start(child: Child, **request: object) -> None:
        words = [*command, json.dumps({"device": device, "checks": child.open_keys(), **request})]
        child.clock.restart()
        try:
            child.end(stream(words, child.hear, cancel=child.clock, environment=variables, lock=lock))
        except Cancelled:
            if not child.stopped():
                raise

    child = Child(results, keys, Clock(cancel, limit_per_check))
    while child.open_keys():
        start(child, ready=results.right, memory=memory_limit)
    if "import" in keys and "import" not in results.right:
        results.skip(asked, sentence("needs", {"need": "import"}))
    limit = IMPORT_LIMIT_FACTOR * limit_per_check
    alone = [Child(results, (key,), Clock(cancel, limit)) for key in results.open_keys(asked)]
    _side_by_side(alone, lambda child: start(child, packages={key: asked[key] for key in child.keys}))
    results.progress(_("Verification done"))
    return results.report(time.monotonic() - started)


def _trial_of_recipe(key: str) -> tuple[Trial | None, Text]:
    """Return what shows that a recipe works, and why nobody knows it where the add-on is missing."""
    try:
        return trial_of(key), ""
    except WorkFailed as error:
        return None, error.message


def _side_by_side(children: Sequence[Child], run: Callable[[Child], None]) -> None:
    """Run some children at once; Ctrl-C, which they do not hear in their own sessions, ends them all."""
    with ThreadPoolExecutor(IMPORT_WORKERS) as pool:
        try:
            list(pool.map(run, children))
        except BaseException:
            for child in children:
                child.clock.set()
            raise


def _call(found: Trial | None) -> dict[str, object]:
    """Return what the child is asked to run; a call of which it is not known counts as one for a GPU."""
    return {"call": found.call, "gpu": not found.on_cpu} if found else {}


# What `import torch` (2.13) reaches in its second half, in its own order; a name that a release lacks is passed over.
_LATE_IN_TORCH = (
    *("distributions", "jit", "fx", "optim", "ao/quantization", "masked", "export", "_subclasses", "_export"),
    *("_higher_order_ops", "_prims_common", "_decomp", "_prims", "_refs", "_meta_registrations.py", "_native"),
)
_COMPILE = """
import compileall, importlib.util, pathlib, sys
site = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
for path in (site / name for name in sys.argv[1:]):
    compileall.compile_dir(path, quiet=2) if path.is_dir() else compileall.compile_file(path, quiet=2)
"""


def compile_ahead(python: str | Path, cancel: CancelToken, lock: Lock | None = None) -> None:
    """Compile, beside the checks of a fresh environment without bytecode, what `import torch` reaches last.

    A failure is no matter, since the import compiles what it misses.
    """
    late = (*(f"torch/{name}" for name in _LATE_IN_TORCH), "onnxruntime/capi")
    with suppress(AssistantError):
        stream([python, "-I", "-c", _COMPILE, *late], lambda _line: None, cancel=cancel, lock=lock)
