"""Run the checks in an environment's own Python, limit the time of each, and make a report and findings of them."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from assistant.catalog.catalog import recipe_trial
from assistant.catalog.companions import companion_trial, system_needs
from assistant.catalog.tables import Trial
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, Child, running
from assistant.i18n import Message, Text, _, first_line, lines, render, sentences
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Backend, Plan, packages_to_import
from assistant.model.record import Record, decoder, replace
from assistant.model.report import (
    CHECKS,
    ESSENTIAL,
    HANGS,
    RIGHT,
    Check,
    Environment,
    Event,
    FindingRaised,
    Level,
    LogLine,
    Part,
    Progress,
    Report,
    Sink,
    Status,
    Step,
    check_title,
    checked_package,
    package_check,
    recipe_check,
)
from assistant.privacy import Lines, Policy

CHILD = Path(__file__).with_name("child.py")
FIRST = {"import", "device", "copy"}  # a device that dies at these will not do better in another process
MEMORY_EXIT = 75  # what child.py ends with when a check took too much memory
# Chosen: a library's last words before a crash fit, and a flood of them does not fill the report.
STRAY_LINES = 20
LINE_LIMIT = 2000
IMPORT_LIMIT_FACTOR = 2  # times a check's limit (chosen): an import may have to compile its modules first
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
    """Verify an environment by its plan: its device, the packages asked for, a recipe's call; return a report.

    The plan's variables are set. `device` overrides the plan's backend; without both it is "cpu". Without a plan, only
    the device is checked, and nothing of it where the plan has no torch. `level`, `sink`, `cancel`, `traceless`,
    `lock` and the exceptions are those of `run_checks`.
    """
    return run_checks(
        environment.python,
        device or (plan.backend if plan else Backend.CPU).value,
        sink,
        cancel,
        level=level if plan is None or plan.torch else (),
        packages=packages_to_import(plan, environment.packages) if plan else (),
        recipe=plan.recipe if plan else "",
        variables=plan.env if plan else None,
        traceless=traceless,
        lock=lock,
    )


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
    """Run checks with the interpreter `python` on `device` ("cpu", "cuda:1", …), send events, and return the report.

    `level` is "quick" (seconds), "full" (a minute or two; measures speed, too), or the keys of some checks. If torch
    can be imported, each of the distributions `packages` is, in a process of its own; with `calls`, a line that shows
    that it works is run as well, if one is known, and the verification call of the `recipe` with this key. `variables`
    are set for the children; `traceless` leaves no bytecode behind. The children hold `lock` until they end.

    After a check that takes more than `limit_per_check` seconds, makes the process grow by more than `memory_limit`
    bytes, or ends the process, another process runs the remaining ones; an import has twice that time, and no limit of
    memory. If three in a row take too long, or one of the first three checks fails so, the remaining ones of the device
    are skipped. Raises `BadInput` for an unknown device, `WorkFailed` when the interpreter cannot be started, and
    `Cancelled`.
    """
    if not _DEVICE.fullmatch(device):
        raise BadInput(
            _("There is no device called {device!r}.", device=device),
            hint=_("Use cpu, cuda, rocm, xpu, mps or directml, with an index where there are several, as in cuda:1."),
        )
    keys = CHECKS[level] if isinstance(level, str) else level
    asked, unknown = _list_questions(packages, recipe, calls=calls)
    results, started = Results(device, (*keys, *asked), sink), time.monotonic()
    if unknown:
        results.skip((recipe_check(recipe),), unknown)
    command = [python, *(("-B",) if traceless else ()), "-I", "-X", "utf8", CHILD]

    stop = CancelToken(cancel)

    def start(group: Group, limit: float, **request: object) -> None:
        """Run a process for the checks of a group that have no result yet."""
        words = [*command, json.dumps({"device": device, "checks": results.open_keys(group.keys), **request})]
        with running(words, cancel=stop, environment=variables, limit=limit, lock=lock) as child:
            group.follow(child)

    group = Group(results, keys)
    while results.open_keys(keys):
        right = [key for key, check in results.done.items() if check.status in RIGHT]
        start(group, limit_per_check, ready=right, memory=memory_limit)
    if "import" in keys and results.done["import"].status not in RIGHT:
        results.skip(asked, sentence("needs", {"need": "import"}))
    limit = IMPORT_LIMIT_FACTOR * limit_per_check

    def try_package(key: str) -> None:
        start(Group(results, (key,)), limit, packages={key: asked[key]})

    with ThreadPoolExecutor(IMPORT_WORKERS) as pool:
        try:
            list(pool.map(try_package, results.open_keys(asked)))
        except BaseException:  # Ctrl-C, which the children do not hear in their own sessions, ends them all
            stop.set()
            raise
    results.progress(_("Verification done"))
    return results.report(time.monotonic() - started)


class Picture(NamedTuple):
    """A picture that an environment's device computed: a PNG in base64, its points, and the seconds that it took.

    `times` is how many times as fast that was as on the CPU, None where the CPU itself is the device.
    """

    png: str
    points: int
    seconds: float
    times: float | None


def draw_picture(environment: Environment, plan: Plan) -> Picture | None:
    """Let an environment draw a picture on its plan's device; return None if it cannot."""
    keys, device = ("import", "device", "picture"), plan.backend.value
    if not Path(environment.python).exists():
        return None
    try:
        report = run_checks(environment.python, device, lambda _event: None, level=keys, variables=plan.env)
    except AssistantError:
        return None
    drawn, png = report.checks[-1], report.facts.get("picture", "")
    if not (png and drawn.seconds and drawn.speed):
        return None
    cpu = drawn.speed.cpu_rate
    points = round(1e6 * drawn.speed.rate * drawn.seconds)
    return Picture(png, points, drawn.seconds, drawn.speed.rate / cpu if cpu else None)


def _list_questions(packages: Sequence[str], recipe: str, *, calls: bool) -> tuple[dict[str, dict[str, object]], Text]:
    """Return what the child is to check of each distribution and of a recipe, by the check's key, and a message.

    A value holds the keyword arguments of a check in imports.py: "name", of a distribution; "call" and "gpu" if a line
    to run is known, which counts as needing a GPU unless it is known to run without. The message says why the recipe
    cannot be tried, as its add-on is missing; else it is "". Without `calls` there are only names.
    """

    def call(found: Trial | None) -> dict[str, object]:
        return {"call": found.call, "gpu": not found.on_cpu} if found else {}

    asked = {package_check(name): {"name": name, **call(companion_trial(name) if calls else None)} for name in packages}
    unknown: Text = ""
    try:
        found = recipe_trial(recipe) if calls and recipe else None
    except WorkFailed as error:
        found, unknown = None, error.message
    if found or unknown:
        asked[recipe_check(recipe)] = call(found)
    return asked, unknown


class Results:
    """The results of all checks, which several children may report at once; `done` has them by key."""

    def __init__(self, device: str, keys: Sequence[str], sink: Sink) -> None:
        self.facts: dict[str, str] = {}
        self.done: dict[str, Check] = {}
        self._device, self._keys, self._sink = device, tuple(keys), sink
        self._sending = threading.Lock()

    def open_keys(self, among: Iterable[str]) -> list[str]:
        """Return those of some checks' keys that have no result yet, in order."""
        return [key for key in among if key not in self.done]

    def report(self, seconds: float) -> Report:
        """Return the report, with the results in the order in which the checks were given."""
        checks = tuple(self.done[key] for key in self._keys)
        return Report(device=self._device, checks=checks, facts=self.facts, seconds=seconds)

    def skip(self, keys: Iterable[str], why: Text) -> None:
        """Give the status "skipped", with the reason `why`, to those of these checks that have no result yet."""
        for key in self.open_keys(keys):
            self.finish(Check(key=key, status=Status.SKIPPED, detail=why))

    def finish(self, check: Check) -> None:
        """Store a check's result, and send the finding about it, if any; ignore a second one, or one not requested."""
        if check.key not in self._keys or check.key in self.done:
            return
        self.done[check.key] = check
        if finding := check_finding(check, self._device):
            self.send(FindingRaised(step=Step.VERIFY, finding=finding))

    def progress(self, text: Message) -> None:
        """Send how many of the checks have ended, with a text that says what is done now."""
        done, total = len(self.done), len(self._keys)
        self.send(Progress(step=Step.VERIFY, text=text, done=done, total=total, unit="checks", part=Part.CHECK))

    def send(self, event: Event) -> None:
        """Give an event to the sink, one at a time though several threads may send."""
        with self._sending:
            self._sink(event)


class _Line(Record, frozen=True):
    """One line that the child wrote; any other line of the output comes from a library.

    {"start": "matmul"}
    {"check": {"key": "matmul", "status": "passed", "seconds": 0.0003, "error": 2.1e-07, "tolerance": 0.0001}}
    """

    facts: dict[str, str] = {}
    start: str | None = None
    check: Check | None = None
    reason: str = ""
    values: dict[str, str | int | float] = {}


class Group:
    """Some checks that one process runs, or several one after another: what they write, and how they end."""

    def __init__(self, results: Results, keys: Sequence[str]) -> None:
        """Prepare to store in `results` what a process says of the checks with these keys; nothing runs yet."""
        self.keys = tuple(keys)
        self._results = results
        self._left = len(keys)
        self._timeouts = 0
        self._cleaned = Lines(Policy.USABLE)
        self._stray: deque[str] = deque(maxlen=STRAY_LINES)

    def follow(self, child: Child) -> None:
        """Read what a process writes, and record how it ended, or that it took too long for one check.

        A process for a package's check is left once that has a result: what a library leaves running would keep the
        output open. Raises `Cancelled` on request.
        """
        try:
            for line in child:
                if key := self.read_line(line):
                    child.restart_limit(IMPORT_LIMIT_FACTOR if key == "import" else 1)
                if checked_package(self.keys[0]) and not self._results.open_keys(self.keys):
                    return
        except TimeoutError:
            self.record_timeout(child.limit)
        else:
            self.end(child.returncode)

    def read_line(self, text: str) -> str:
        """Record one line of the output: facts, a start or a result; other lines are sent as log lines.

        A start sends progress; returns the key of the check that starts, else "".
        """
        try:
            line = decoder(_Line).decode(text)
        except msgspec.DecodeError:
            if text.strip():
                self._stray.append(self._cleaned(text)[:LINE_LIMIT])
                self._results.send(LogLine(step=Step.VERIFY, text=self._stray[-1]))
            return ""
        self._results.facts.update(line.facts)
        if line.start is not None:
            self._stray.clear()
            self._results.progress(check_title(line.start))
        if line.check is not None and line.check.key in self.keys:
            self._timeouts = 0
            detail = lines((sentence(line.reason, line.values), line.check.detail))
            self._results.finish(replace(line.check, detail=detail))
        return line.start or ""

    def end(self, code: int) -> None:
        """Record a process's exit status: the first check without a result has failed; later ones stay open.

        Another process runs the open ones, unless "import", "device" or "copy" has no result: then they are skipped.
        Nothing has failed if the child reported too much memory. If no check is open, a status other than 0 is the fact
        "ending".
        """
        left, self._left = self._left, len(self._results.open_keys(self.keys))
        if not self._left and code:
            self._results.facts["ending"] = render(describe_exit(code))
        elif self._left and (code != MEMORY_EXIT or self._left == left):
            self._stop(Status.FAILED, describe_exit(code), go_on=self._results.done.keys() >= FIRST)

    def record_timeout(self, limit: float) -> None:
        """Give the first check without a result the status "timeout": it took more than `limit` seconds.

        Later checks are left for another process, or skipped: if it is one of the first three, or the third timeout in
        a row.
        """
        self._timeouts += 1
        go_on = self._results.done.keys() >= FIRST and self._timeouts < HANGS
        self._stop(Status.TIMEOUT, _("It did not end within {seconds:g} seconds.", seconds=limit), go_on=go_on)

    def _stop(self, status: Status, detail: Text, *, go_on: bool) -> None:
        """Give the first check without a result a status and a detail, to which the libraries' last lines are added.

        Unless `go_on`, skip those after it.
        """
        for key in self._results.open_keys(self.keys)[:1]:
            self._results.finish(Check(key=key, status=status, detail=lines((detail, *self._stray))))
        if not go_on:
            self._results.skip(self.keys, _("The verification ended before this check."))
        self._left = len(self._results.open_keys(self.keys))


# By the keys that `child.explain` sends, with the values of their placeholders.
SENTENCES = {
    "shape": _("The result has shape {shape}, not {expected}."),
    "off": _("{off} of {size} elements are wrong; element [{place}] is {value}, not {expected}."),
    "seed": _("The same seed gave different numbers."),
    "constant": _("Another seed gave the same numbers."),
    "slower than the CPU": _(
        "At this size it is slower than this machine's CPU: {rate:.3g} against {cpu_rate:.3g} {unit}; "
        "larger work may favour the device."
    ),
    "slower than sound": _("Generating the sound takes longer than playing it."),
    "slow kernels": _("A small operator takes {each:.0f} µs."),
    "elsewhere": _("The result is on {found}, not on {asked}."),
    "fallback": _("{operators} ran on the CPU instead of {device}."),
    "no memory taken": _("A tensor of {size} bytes took {taken} bytes on {device}."),
    "no rocm": _("This torch {torch} is not a ROCm build."),
    "unknown": _("There is no check called {check}."),
    "needs": _("It needs the check {need} to pass first."),
    "too much": _("It took more than {size} MiB of memory and was stopped."),
    "granted": _("{size} bytes were granted, more than there are."),
    "leak": _("{grown} MiB were not released after {rounds} results of {size} MiB."),
    "not installed": _("{name} is not installed in this environment."),
    "no provider": _("onnxruntime {version} has no provider for {device}, only {there}."),
    "other provider": _("ONNX Runtime ran {nodes} on {found} instead of {provider}."),
    "no node": _("ONNX Runtime's profile names no node that {provider} ran."),
    "no autocast": _("Autocast is not supported on {device}."),
    "no compile": _("torch {torch} has no torch.compile."),
    "no backend": _("torch.compile has no finished backend for {device}."),
    "no triton": _("torch.compile needs triton here, which is not installed."),
    "no compiler": _("torch.compile needs a C++ compiler on the CPU, and none is found."),
    "nothing to import": _("{package} has nothing to import."),
    "no metadata": _("{package} is only partly installed: its metadata is missing."),
    "files missing": _("Files of {package} are missing: {count} in all, such as {path}."),
    "cannot be imported": _("{module} cannot be imported: {error}"),
    "call fails": _("{package} can be imported, but fails at `{call}`: {error}"),
    "trial fails": _("`{call}` fails: {error}"),
    "call left out": _("`{call}` was skipped: it needs a GPU."),
    "space in path": _("torch.compile cannot build here: the path {path} contains a space. {error}"),
}


def sentence(reason: str, values: Mapping[str, str | int | float]) -> Text:
    """Return the sentence for a reason that the child sent; "" for none, its key and values for an unknown one."""
    if not reason:
        return ""
    text = SENTENCES.get(reason)
    return text.format(**values) if text else " ".join([reason, *(f"{key}={value}" for key, value in values.items())])


_FINDINGS = {
    Status.WRONG: (Severity.ERROR, _("“{check}” gave a wrong result on {device}.")),
    Status.UNSUPPORTED: (Severity.WARNING, _("“{check}” is not supported on {device}.")),
    Status.TIMEOUT: (Severity.ERROR, _("“{check}” did not finish on {device} and was stopped.")),
    Status.SLOW: (Severity.INFO, _("“{check}” is slow on {device}.")),
    Status.FAILED: (Severity.ERROR, _("“{check}” failed on {device}.")),
}


def check_finding(check: Check, device: str) -> Finding | None:
    """Return the finding about a check's result, with its detail as evidence; None if it passed or was skipped.

    One about a package or a recipe has remedies: what to install on the system, and another version.
    """
    if check.status not in _FINDINGS:
        return None
    severity, text = _FINDINGS[check.status]
    if check.status is Status.TIMEOUT and check.key not in ESSENTIAL:
        severity = Severity.INFO  # a busy machine is slow, not wrong
    finding = Finding(
        key=f"verify.{check.key}",
        severity=severity,
        text=text.format(check=check_title(check.key), device=device),
        evidence=(check.detail,) if check.detail else (),
    )
    package = checked_package(check.key)
    if not package:
        return finding
    reason = first_line(check.detail)
    next_step = _("Ask for another version or build of {package}, or go on without it.", package=package)
    lacking = missing_system_parts(check, device)
    text = _("{package} does not work in this environment: {reason}", package=package, reason=reason)
    return replace(finding, text=text, remedies=tuple(Remedy(text=text) for text in (*lacking, next_step)))


_SYSTEMS = {"win32": "windows", "darwin": "macos"}


def missing_system_parts(check: Check, device: str) -> tuple[Message, ...]:
    """Return what to install on this system, if a package's check failed for lack of a system library; else ()."""
    system, backend = _SYSTEMS.get(sys.platform, sys.platform), Backend(device.partition(":")[0])
    return tuple(
        sentences(filter(None, (need.text, need.help)))
        for need in system_needs(checked_package(check.key), system, backend)
        if need.libraries and re.search(need.libraries, str(check.detail))
    )


def report_findings(report: Report) -> tuple[Finding, ...]:
    """Return the findings about a report's checks; they are those that were sent while the checks ran."""
    return tuple(finding for check in report.checks if (finding := check_finding(check, report.device)))


# What Windows answers in place of a signal:
# https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55
_WINDOWS_ENDINGS = {
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN",
}


def describe_exit(code: int) -> Message:
    """Return a sentence on how a process ended: by a signal (its negative number), by Windows, or with a status."""
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return _("The process was ended by signal {name}.", name=names.get(-code, str(-code)))
    if code in _WINDOWS_ENDINGS:
        return _("The process was ended by Windows: {name}.", name=_WINDOWS_ENDINGS[code])
    return _("The process ended with exit status {code} before it had answered.", code=code)
