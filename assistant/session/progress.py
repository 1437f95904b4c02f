"""How far an installation is as a whole: one share that never goes back, the time left, and a row for each part.

The parts take very different times, and few of them say how far they are: uv reports its packages when all are
unpacked, and `import torch` is most of the checks. So each part has an expected time, from its bytes and this machine's
pace; what a part reports while it runs (bytes, checks) replaces the expectation.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, Protocol

from assistant.host.files import private_folder, read_plain, write_whole
from assistant.host.folders import user_state
from assistant.i18n import Message, Text, _, ngettext
from assistant.install import Prepared
from assistant.model.errors import AssistantError
from assistant.model.event import Event, Part, Progress, Sink
from assistant.model.record import Record, from_json, replace, to_json
from assistant.session.state import State, Task

PACE_FILE = "pace.json"
PRIOR_SECONDS = 1.0  # chosen: of downloading, for which the earlier speed still counts beside what is measured
IMPORT_SHARE = 0.75  # of the checks' time is the first `import torch`, which compiles it: 9.0 of 11.5 s, 10.2 of 13.1 s
LATE = 0.2  # chosen: the share of a part that is still to come when it has taken as long as was expected
VENV_SECONDS = 1.0  # for an empty environment, and to look whether all files came: measured 1.0 and 1.6 s
FULL_SECONDS = 60.0  # for every check, and speed: a minute or two (`verify --full`)
PARTS = {Task.PREPARE: Part.RESOLVE, Task.INSTALL: Part.DOWNLOAD, Task.VERIFY: Part.CHECK}

TITLES: Mapping[Part, Message] = {
    Part.RESOLVE: _("Resolve the packages"),
    Part.DOWNLOAD: _("Download"),
    Part.UNPACK: _("Unpack"),
    Part.CHECK: _("Check that it computes"),
    Part.REGISTER: _("Add the kernel to Jupyter"),
}


class Pace(Record, frozen=True):
    """How fast this machine is: seconds, and bytes per second of wheels downloaded and unpacked.

    The defaults were measured with a CPU plan (44 packages, 270 MB) on two cores, 2026-11-22, where the checks took 5
    to 13 seconds, the longest on cores that were busy; the download is that of a line of 50 Mbit/s.
    """

    resolve: float = 6.0
    download: float = 6e6
    unpack: float = 60e6
    check: float = 8.0
    register: float = 0.5


class Row(NamedTuple):
    """One part: where it stands, the seconds that it took so far, and what it says of itself."""

    part: Part
    title: Message
    status: Literal["waiting", "running", "done"]
    seconds: float
    figures: Text = ""


class Overall(NamedTuple):
    """The whole installation: its share from 0 to 1, the seconds left, and its parts in order."""

    share: float
    seconds_left: float
    rows: tuple[Row, ...]

    @property
    def left(self) -> Message:
        """The time left in words; it is an estimate, and says so."""
        return time_left(self.seconds_left)


def time_left(seconds: float) -> Message:
    """Say how long something will still take, as exactly as such an estimate can be."""
    if seconds > 90:  # noqa: PLR2004 - from a minute and a half on nobody counts seconds
        minutes = round(seconds / 60)
        return ngettext("about {count} minute left", "about {count} minutes left", minutes)
    rounded = math.ceil(seconds / 5) * 5 if seconds > 10 else max(1, math.ceil(seconds))  # noqa: PLR2004 - likewise
    return ngettext("about {count} second left", "about {count} seconds left", rounded)


def seconds_needed(prepared: Prepared, pace: Pace | None = None) -> float:
    """Return how long an installation will take, as far as its bytes and this machine's earlier pace tell."""
    return sum(_expected(prepared, pace or read_pace()).values())


def read_pace() -> Pace:
    """Return how fast earlier installations were on this machine; the defaults where there was none."""
    with suppress(OSError, AssistantError):
        return from_json(read_plain(user_state() / PACE_FILE), Pace, PACE_FILE)
    return Pace()


def keep_pace(pace: Pace) -> None:
    """Remember a pace for the next installation; a folder that cannot be written is no failure."""
    with suppress(OSError):
        write_whole(private_folder(user_state()) / PACE_FILE, to_json(pace), private=True)


def _expected(prepared: Prepared | None, pace: Pace) -> dict[Part, float]:
    """Return the seconds that each part of an installation should take."""
    if prepared and prepared.ready:
        return {Part.CHECK: pace.check}
    size = _unpacked_bytes(prepared) if prepared else 0
    return {
        Part.DOWNLOAD: (prepared.download if prepared else 0) / pace.download,
        Part.UNPACK: VENV_SECONDS + size / pace.unpack,
        Part.CHECK: pace.check,
        Part.REGISTER: pace.register,
    }


def _unpacked_bytes(prepared: Prepared) -> int:
    installed = prepared.site.versions if prepared.site else {}
    return sum(package.size or 0 for package in prepared.resolution.changes(installed))


def _rest(elapsed: float, expected: float) -> float:
    """Return the seconds left of a part that says nothing of itself; one that is late is as slow in what is left."""
    return expected - (1 - LATE) * elapsed if elapsed < expected else LATE * elapsed


class Watched(Protocol):
    """What a meter listens to: a session."""

    def watch(self, watcher: Callable[[State, State], None]) -> None:
        """Call the watcher after every change of the state."""

    def listen(self, sink: Sink) -> None:
        """Send every event to the sink."""


class Meter:
    """Measures the installations of a session; safe to ask at any moment, from any thread.

    `first` is the part with which the whole begins: where the packages were resolved before anybody waited for an
    installation, that is not counted.
    """

    _part: Part | None  # the one at hand, since when, and what it said last
    _since: float
    _event: Progress | None
    _seconds: dict[Part, float]  # that parts have taken
    _expected: dict[Part, float]  # seconds
    _done: set[Part]
    _imported: float  # seconds of the first check
    _share: float
    _full: bool

    def __init__(self, *, first: Part = Part.RESOLVE, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._counted = tuple(Part)[tuple(Part).index(first) :]
        self._pace, self._bytes = Pace(), 0
        self._forget()

    def follow(self, session: Watched) -> None:
        """Measure what a session does from now on."""
        session.watch(self.watch)
        session.listen(self.hear)

    def watch(self, old: State, new: State) -> None:
        """Notice the beginning and the end of a task."""
        if old.running is new.running:
            return
        with self._lock:
            if old.running in PARTS:
                self._leave()
                if new.proof or new.report is not old.report:
                    self._done = set(Part)
                    keep_pace(self._pace)
            if new.running in PARTS:
                self._begin(new.running, new)

    def hear(self, event: Event) -> None:
        """Notice what a task says of itself."""
        if not isinstance(event, Progress) or event.part is None:
            return
        with self._lock:
            if event.part is not self._part and event.part not in self._done:
                self._leave()
                self._enter(event.part)
            if event.part is self._part and event is not self._event:
                self._hear(event)

    def overall(self) -> Overall | None:
        """Return how far the installation is now; None while nothing of it has begun."""
        with self._lock:
            if not self._seconds and self._part is None:
                return None
            now = self._clock()
            spent = {part: self._seconds.get(part, 0.0) for part in Part}
            if self._part:
                spent[self._part] += now - self._since
            left = sum(self._left(part, spent[part]) for part in self._counted)
            gone = sum(spent[part] for part in self._counted)
            self._share = max(self._share, gone / (gone + left) if left else 1.0)
            rows = tuple(self._row(part, spent[part]) for part in Part)
            return Overall(share=self._share, seconds_left=left, rows=rows)

    def _forget(self) -> None:
        self._part, self._event = None, None
        self._since = self._share = self._imported = 0.0
        self._seconds, self._expected, self._done = {}, {}, set()
        self._full = False

    def _begin(self, task: Task, state: State) -> None:
        """Enter the first part of a task; an installation goes on where its packages were resolved."""
        if task is Task.VERIFY and state.proof:
            return  # what the installation has verified is not done twice
        if task is not Task.INSTALL or Part.DOWNLOAD in self._seconds or not self._seconds:
            self._forget()
            self._pace = read_pace()
        pace = self._pace
        self._bytes = _unpacked_bytes(state.preview) if state.preview else 0
        self._expected = _expected(state.preview, pace) | {Part.RESOLVE: pace.resolve}
        if state.preview is None:  # the plan's own figure will do until all is resolved
            size = 10**6 * ((state.plan and state.plan.download_mb) or 0)
            self._expected |= {Part.DOWNLOAD: size / pace.download, Part.UNPACK: VENV_SECONDS + size / pace.unpack}
        if task is Task.VERIFY:
            self._full = state.level != "quick"
            self._expected = {Part.CHECK: FULL_SECONDS if self._full else pace.check}
        self._enter(PARTS[task])

    def _enter(self, part: Part) -> None:
        parts = tuple(Part)
        self._done |= {*parts[: parts.index(part)]}
        self._part, self._since, self._event = part, self._clock(), None

    def _leave(self) -> None:
        """End the part at hand, and learn from the time that it took."""
        part, self._part = self._part, None
        if part is None:
            return
        taken = self._clock() - self._since
        self._seconds[part] = self._seconds.get(part, 0.0) + taken
        seconds, event = self._seconds[part], self._event
        if part is Part.RESOLVE:
            self._done.add(part)
            self._learn(resolve=seconds)
        elif part is Part.DOWNLOAD and event and event.rate:
            self._learn(download=event.rate)
        elif part is Part.UNPACK and self._bytes and event and event.done == event.total:
            self._learn(unpack=self._bytes / max(seconds - VENV_SECONDS, 0.1))
        elif part is Part.CHECK and not self._full and event and event.done == event.total:
            self._learn(check=seconds)
        elif part is Part.REGISTER:
            self._learn(register=seconds)

    def _learn(self, **measured: float) -> None:
        """Take the geometric mean of what was known and what was measured: one busy moment spoils no later estimate."""
        middle = {name: math.sqrt(getattr(self._pace, name) * value) for name, value in measured.items() if value > 0}
        self._pace = replace(self._pace, **middle)

    def _hear(self, event: Progress) -> None:
        self._event = event
        if event.part is Part.CHECK and event.done and not self._imported:
            self._imported = self._clock() - self._since

    def _left(self, part: Part, spent: float) -> float:
        """Return the seconds that a part will still take."""
        expected = self._expected.get(part, 0.0)
        if part in self._done:
            return 0.0
        if part is not self._part:
            return expected * self._slowness()
        event = self._event
        if part is Part.DOWNLOAD and event and event.total:
            measured = event.done / event.rate if event.rate else 0.0  # seconds
            rate = (event.done + self._pace.download * PRIOR_SECONDS) / (measured + PRIOR_SECONDS)
            return max(0.0, event.total - event.done) / rate
        if part is Part.CHECK and event and event.total and self._imported:
            rest = FULL_SECONDS if self._full else self._imported * (1 / IMPORT_SHARE - 1)
            return rest * (1 - (event.done - 1) / event.total)
        if part is Part.CHECK and not self._full:  # however long the import takes, the others come after it
            first = expected * self._slowness() * IMPORT_SHARE
            return _rest(spent, first) + max(first, spent) * (1 / IMPORT_SHARE - 1)
        return _rest(spent, expected)

    def _slowness(self) -> float:
        """Return how many times slower than expected the unpacking was: a busy machine is as slow at all that comes."""
        expected = self._expected.get(Part.UNPACK, 0.0)
        running = self._clock() - self._since if self._part is Part.UNPACK else 0.0
        return max(1.0, (self._seconds.get(Part.UNPACK, 0.0) + running) / expected) if expected else 1.0

    def _row(self, part: Part, spent: float) -> Row:
        if part is self._part:
            return Row(part, TITLES[part], "running", spent, self._event.figures if self._event else "")
        return Row(part, TITLES[part], "done" if part in self._done else "waiting", spent)
