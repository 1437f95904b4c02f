"""The controller of one guided setup: takes actions, shows each new state to its watchers, starts and stops tasks."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol

from assistant import addons
from assistant.host.base import Host
from assistant.host.process import CancelToken
from assistant.i18n import Message, _, render
from assistant.install import Sources, Tools, Unsolved
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.event import Event, FindingRaised, JobFailed, LogLine, Sink
from assistant.model.finding import Finding, Severity
from assistant.model.record import replace
from assistant.parsers.decode import without_colours
from assistant.session.actions import Abandoned, Action, Answer, Asked, Begin, Finished, Stop, Told, Wished
from assistant.session.adding import added
from assistant.session.causes import causes_found
from assistant.session.environments import looked, surveyed
from assistant.session.mending import compared, forgotten, removed, repaired, undone
from assistant.session.planning import planned
from assistant.session.reducer import blockers, following, reduce
from assistant.session.remediation import mended
from assistant.session.state import Extra, Page, Result, State, Task
from assistant.session.steps import detected, exported, installed, prepared, verified
from assistant.session.store import Saved, Store

PUMP_SECONDS = 0.1  # between deliveries; chosen: smooth to the eye, and few messages for a remote browser
YIELD_SECONDS = 0.005  # lets the callback that started the job return first; both would share one interpreter lock

Job = Callable[[Sink], None]
End = Callable[[], None]
Deliver = Callable[[tuple[Event, ...]], None]


def nothing() -> None:
    """Do nothing when a job is over."""


class Runner(Protocol):
    """Runs one job; `deliver` receives the events that the job emits, in order, and `end` is called after the last."""

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Start the job and return, at once or after it."""


class InlineRunner:
    """Runs the job in the caller's thread and delivers each event as it comes."""

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Run the job to its end."""
        job(lambda event: deliver((event,)))
        end()


class ThreadRunner:
    """Runs the job on a daemon thread; events are delivered in batches, so that they cannot flood the front end.

    Its threads get a copy of the caller's context: there ipykernel keeps which message it answers, and 7.0 lets nobody
    send a widget's change without (`Kernel.get_parent` in ipykernel/kernelbase.py; ipython/ipykernel#1451 mended 7.1).
    """

    def start(self, job: Job, deliver: Deliver, end: End = nothing) -> None:
        """Start both threads and return."""
        work = (self._work, job, deliver, end)
        threading.Thread(target=copy_context().run, args=work, daemon=True, name="assistant-job").start()

    def _work(self, job: Job, deliver: Deliver, end: End) -> None:
        time.sleep(YIELD_SECONDS)
        pump = _Pump(deliver)
        pump.start()
        try:
            job(pump.take)
        finally:
            pump.stop()
        end()


class _Pump(threading.Thread):
    def __init__(self, deliver: Deliver) -> None:
        super().__init__(daemon=True, name="assistant-pump")
        self._context = copy_context()
        self._deliver = deliver
        self._gathered: list[Event] = []
        self._lock = threading.Lock()
        self._over = threading.Event()

    def take(self, event: Event) -> None:
        """Keep one event for the next delivery."""
        with self._lock:
            self._gathered.append(event)

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._over.wait(PUMP_SECONDS):
            self._context.run(self._flush)

    def stop(self) -> None:
        """Deliver the rest and end."""
        self._over.set()
        self.join()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            events, self._gathered = tuple(self._gathered), []
        if events:
            self._deliver(events)


def _addon_ran(state: State, tools: Tools) -> Extra:
    """Have an add-on work on its record: `task(value, tools)` returns the record with what was found."""
    task = addons.load(addons.TASKS, state.addon)
    return Extra(value=task(state.extras[state.addon].value, tools))


TASKS: dict[Task, Callable[[State, Tools], Result]] = {
    Task.DETECT: detected,
    Task.PLAN: planned,
    Task.PREPARE: prepared,
    Task.INSTALL: installed,
    Task.VERIFY: verified,
    Task.DIAGNOSE: causes_found,
    Task.MEND: mended,
    Task.EXPORT: exported,
    Task.ADDON: _addon_ran,
    Task.ADD: added,
    Task.SURVEY: surveyed,
    Task.CHECK: looked,
    Task.COMPARE: compared,
    Task.REPAIR: repaired,
    Task.UNDO: undone,
    Task.FORGET: forgotten,
    Task.REMOVE: removed,
}


Watcher = Callable[[State, State], None]

# What writes; any other task is left to itself when it is cancelled.
TAKE_BACK = {Task.INSTALL, Task.EXPORT, Task.MEND, Task.ADD, Task.REPAIR, Task.UNDO, Task.FORGET, Task.REMOVE}


class Session:
    """One setup; safe to call from any thread, because front ends run callbacks on threads of their choosing.

    With `asks`, somebody answers a task's questions (`State.question`) by the action `Answer`; else the answer is no.
    With `guided`, tasks that only read follow one another by themselves, up to what the user must agree to.
    """

    def __init__(
        self,
        host: Host,
        runner: Runner,
        store: Store | None = None,
        state: State | None = None,
        *,
        sources: Sources | None = None,
        asks: bool = False,
        guided: bool = False,
    ) -> None:
        self.state = replace(state or State(), log_file=str(store.log) if store else "")
        self._host = host
        self._sources = sources or Sources(host)
        self._runner = runner
        self._store = store
        self._cancel = CancelToken()
        self._asks = asks
        self._guided = guided
        # Whether an installed setup was saved: read once, here, so that no two threads begin to decode it together.
        self._keeps = bool(guided and store and store.environment())
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._watchers: list[Watcher] = []
        self._sinks: list[Sink] = []

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher(old, new)` after every change of the state."""
        self._watchers.append(watcher)

    def listen(self, sink: Sink) -> None:
        """Send every event of every task to `sink` as well."""
        self._sinks.append(sink)

    def dispatch(self, action: Action) -> None:
        """Apply an action; a `Begin` that is accepted starts its task, and one that only reads may be given up then."""
        self._apply(action)

    def _apply(self, action: Action, teller: CancelToken | None = None) -> None:
        """Apply an action; what a task tells, whose token is `teller`, counts only as long as the task is at hand."""
        with self._lock:
            if teller not in {None, self._cancel}:
                return
            old = new = self.state
            if _gives_up(old, action):
                self._leave()
                new = reduce(new, Abandoned())
            if isinstance(action, Answer) and old.question:
                self._answers.put(action.yes)
            self.state = new = reduce(new, action)
            started = isinstance(action, Begin) and new.running is action.task and old.running is None
            if started:
                self._cancel = CancelToken()
            if new is not old:
                for watcher in self._watchers:
                    watcher(old, new)
        if started and isinstance(action, Begin):
            self._start(action.task, self._cancel)
        elif self._guided and new is not old and (task := following(new)):
            self.begin(task)

    def begin(self, task: Task) -> None:
        """Start a task, if nothing blocks it now (see `blockers`)."""
        self.dispatch(Begin(task=task))

    def blockers(self, task: Task) -> tuple[Message, ...]:
        """Return why a task cannot begin now; () when it can."""
        return blockers(self.state, task)

    def cancel(self) -> None:
        """Ask the running task to stop; one that writes nothing is over at once, whatever it waits for."""
        with self._lock:
            cancel, task = self._cancel, self.state.running
            cancel.set()
            self.dispatch(Stop())
            if task and task not in TAKE_BACK:
                self._leave()
                try:
                    cancel.check()
                except Cancelled as error:
                    self.dispatch(_failed(task, error))

    def _leave(self) -> None:
        """Stop the running task, and listen no more to what it still reports."""
        self._cancel.set()
        self._cancel = CancelToken()

    def interrupt(self) -> None:
        """Ask the running task to stop, from a signal's handler, which must not wait for a lock."""
        self._cancel.signal()

    def saved(self) -> Saved | None:
        """Return the setup that was saved last, here or in another window."""
        return self._store.read() if self._store else None

    def drop(self) -> None:
        """Delete the setup that was saved last."""
        self._keeps = False
        if self._store:
            self._store.drop()

    def aside(self, work: Callable[[], object]) -> None:
        """Do some short work beside the tasks, without making the caller wait."""

        def job(_emit: Sink) -> None:
            work()

        self._runner.start(job, lambda _events: None)

    def _start(self, task: Task, cancel: CancelToken) -> None:
        def tell(action: Action) -> None:
            self._apply(action, cancel)

        outcomes: list[Finished | JobFailed] = []

        def job(emit: Sink) -> None:
            self._save(task, emit)
            outcomes.append(self._outcome(task, self._tools(emit, cancel)))

        def end() -> None:
            tell(outcomes[0])
            self._save(task, lambda event: self._apply(Told(events=(event,))))

        self._runner.start(job, lambda events: tell(Told(events=events)), end)

    def _save(self, task: Task, tell: Sink) -> None:
        """Save the state, also before a task in case it never ends; where that fails, tell what will be lost.

        Detection alone does not replace a saved setup, nor does what goes on by itself replace one that was installed.
        """
        if self._store is None or task is Task.DETECT or task.is_about_environments:
            return
        by_itself = self._guided and task in {Task.PLAN, Task.PREPARE} and self.state.environment is None
        if not (by_itself and self._keeps):
            reason = self._store.save(self.state)
            if reason:
                text = _("This setup cannot be saved in {folder}: {reason}. It will be gone when you start again.")
                text = text.format(folder=self._store.folder, reason=reason)
                tell(
                    FindingRaised(
                        step=task.step, finding=Finding(key="setup-not-saved", severity=Severity.INFO, text=text)
                    )
                )

    def _tools(self, emit: Sink, cancel: CancelToken) -> Tools:
        def ask(question: Message) -> bool:
            cancel.check()  # one that was given up asks nothing: the answer would be another task's
            if self._asks:
                self._answers = queue.SimpleQueue()
                self._apply(Asked(question=question), cancel)
            while self._asks:
                with suppress(queue.Empty):
                    return self._answers.get(timeout=0.1)
                cancel.check()
            return False

        return Tools(self._host, self._sources, self._logged(emit), cancel, ask)

    def _outcome(self, task: Task, tools: Tools) -> Finished | JobFailed:
        """Run a task to its end; a failure of any kind becomes a sentence, never a lost exception."""
        begun = time.monotonic()
        try:
            result = TASKS[task](self.state, tools)
        except AssistantError as error:
            return _failed(task, error)
        except Exception as error:  # noqa: BLE001 - the shells must hear of it, whatever it is
            message = _("This step failed unexpectedly: {kind}: {reason}", kind=type(error).__name__, reason=error)
            hint = _("Please report this with the log file.")
            return JobFailed(step=task.step, message=message, hint=hint)
        return Finished(task=task, result=result, seconds=time.monotonic() - begun)

    def _logged(self, emit: Sink) -> Sink:
        """Wrap a sink: lines go into the log too, and every event to whoever listens."""

        def sink(event: Event) -> None:
            if isinstance(event, LogLine):
                text = without_colours(render(event.text))  # of a program that colours what nobody asked it to
                event = replace(event, text=text) if isinstance(event.text, str) else event
                if self._store:
                    self._store.write_log(text)
            for listener in self._sinks:
                listener(event)
            emit(event)

        return sink


def _gives_up(state: State, action: Action) -> bool:
    """Return whether a running task is given up: one that only reads, for a wish or to find what is wrong."""
    if state.running is None or not state.running.only_reads:
        return False
    if isinstance(action, Begin) and action.task.page is Page.WRONG:
        return not blockers(reduce(state, Abandoned()), action.task)
    return isinstance(action, Wished)


def _failed(task: Task, error: AssistantError) -> JobFailed:
    return JobFailed(
        step=task.step,
        message=error.message,
        hint=error.hint,
        exit_code=error.exit_code,
        unreachable=error.address if isinstance(error, Unsolved) else "",
    )
