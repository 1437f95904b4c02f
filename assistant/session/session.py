"""The controller of the wizard's setup: takes actions, holds the state that they lead to, starts and stops tasks."""

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
from assistant.i18n import Message, _
from assistant.install import Sources, Tools, Unsolved
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.record import replace
from assistant.model.report import Event, FindingRaised, Sink
from assistant.session import environments, steps
from assistant.session.actions import (
    Abandoned,
    Action,
    Answer,
    Asked,
    Begin,
    Choice,
    Drew,
    Failed,
    Finished,
    Reported,
    Stop,
    blockers,
    next_automatic_task,
    reduce,
)
from assistant.session.environments import findings_still_true
from assistant.session.planning import plan_setup
from assistant.session.remediation import apply_chosen_fix, diagnose_setup
from assistant.session.state import Drawn, Extra, Installed, Page, Result, State, Task, Verified
from assistant.session.store import Saved, Store

YIELD_SECONDS = 0.005  # lets the callback that started the work return first; both would share one interpreter lock


def run_addon(state: State, tools: Tools) -> Extra:
    """Run the add-on's `task(value, tools)` on its record, and return the record that it returns."""
    task = addons.load(addons.TASKS, state.addon)
    return Extra(value=task(state.extras[state.addon].value, tools))


TASKS: dict[Task, Callable[[State, Tools], Result]] = {
    Task.DETECT: steps.detect_machine,
    Task.PLAN: plan_setup,
    Task.PREPARE: steps.prepare_plan,
    Task.INSTALL: steps.install_prepared,
    Task.VERIFY: steps.verify_environment,
    Task.DIAGNOSE: diagnose_setup,
    Task.MEND: apply_chosen_fix,
    Task.EXPORT: steps.write_export,
    Task.ADDON: run_addon,
    Task.ADD: steps.add_packages,
    Task.SURVEY: environments.run_survey,
    Task.CHECK: environments.check_picked,
    Task.COMPARE: environments.work_out_repair,
    Task.REPAIR: environments.carry_out_repair,
    Task.UNDO: environments.undo_last_change,
    Task.FORGET: environments.forget_last_change,
    Task.REMOVE: environments.remove_picked,
    Task.KEEP: environments.keep_build,
}
# What writes; any other task is left to itself when it is cancelled.
TAKE_BACK = {
    Task.INSTALL,
    Task.EXPORT,
    Task.MEND,
    Task.ADD,
    Task.REPAIR,
    Task.UNDO,
    Task.FORGET,
    Task.REMOVE,
    Task.KEEP,
}


def perform_task(task: Task, state: State, tools: Tools) -> Finished:
    """Run a task; after one that may have fixed something, check which findings of detection are still true.

    Raises what the task raises, an `AssistantError` for anything that a user can meet.
    """
    begun = time.monotonic()
    result = TASKS[task](state, tools)
    found = None
    if task in {Task.INSTALL, Task.VERIFY, Task.MEND} and state.detection and state.detection.findings:
        report = result.report if isinstance(result, Verified) else None
        report = result.proof if isinstance(result, Installed) else report
        found = findings_still_true(state.detection, tools.host, passed=report is not None and report.passed)
    return Finished(task=task, result=result, seconds=time.monotonic() - begun, detected=found)


def failure_action(task: Task, error: AssistantError) -> Failed:
    """Return the action that ends a task which raised an error."""
    address = error.address if isinstance(error, Unsolved) else ""
    return Failed(
        step=task.step, message=error.message, hint=error.hint, exit_code=error.exit_code, unreachable=address
    )


class Runner(Protocol):
    """Runs the work of a task."""

    def start(self, work: Callable[[], object]) -> None:
        """Start the work and return, at once or after it."""


class ThreadRunner:
    """Runs the work on a daemon thread.

    Its threads get a copy of the caller's context: there ipykernel keeps which message it answers, and 7.0 lets nobody
    send a widget's change without (`Kernel.get_parent` in ipykernel/kernelbase.py; ipython/ipykernel#1451 mended 7.1).
    """

    def start(self, work: Callable[[], object]) -> None:
        """Start the thread and return."""

        def later() -> None:
            time.sleep(YIELD_SECONDS)
            work()

        threading.Thread(target=copy_context().run, args=(later,), daemon=True, name="assistant-job").start()


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
        self._changed = threading.Condition(self._lock)

    def wait(self, seen: State, seconds: float) -> State:
        """Wait until the state is not `seen` any more, or for some seconds; return the state."""
        with self._changed:
            self._changed.wait_for(lambda: self.state is not seen, seconds)
            return self.state

    def dispatch(self, action: Action) -> None:
        """Apply an action: `Begin` starts its task unless blocked; a choice or diagnosis ends one that only reads."""
        self._apply(action)

    def _apply(self, action: Action, reporter: CancelToken | None = None) -> None:
        """Apply an action, and start the task that it begins, or if guided the next one.

        What a task reports comes with its token as `reporter`, and is ignored once that task was abandoned.
        """
        with self._lock:
            if reporter not in {None, self._cancel}:
                return
            old = new = self.state
            if _is_given_up(old, action):
                self._abandon_running()
                new = reduce(new, Abandoned())
            if isinstance(action, Answer) and old.question:
                self._answers.put(action.yes)
            self.state = new = reduce(new, action)
            started = isinstance(action, Begin) and new.running is action.task and old.running is None
            if started:
                self._cancel = CancelToken()
            if new is not old:
                self._changed.notify_all()
        if started and isinstance(action, Begin):
            self._start(action.task, self._cancel)
        elif self._guided and new is not old and (task := next_automatic_task(new)):
            self.begin(task)

    def begin(self, task: Task) -> None:
        """Start a task, if nothing blocks it now (see `blockers`)."""
        self.dispatch(Begin(task=task))

    def cancel(self) -> None:
        """Ask the running task to stop; one that writes nothing counts as failed at once, whatever it waits for."""
        with self._lock:
            cancel, task = self._cancel, self.state.running
            cancel.set()
            self.dispatch(Stop())
            if task and task not in TAKE_BACK:
                self._abandon_running()
                try:
                    cancel.check()
                except Cancelled as error:
                    self.dispatch(failure_action(task, error))

    def _abandon_running(self) -> None:
        """Ask the running task to stop, and ignore what it still reports."""
        self._cancel.set()
        self._cancel = CancelToken()

    def read_saved(self) -> Saved | None:
        """Read the setup that was saved last, here or in another window; None if there is none."""
        return self._store.read() if self._store else None

    def drop(self) -> None:
        """Delete the setup that was saved last."""
        self._keeps = False
        if self._store:
            self._store.drop()

    def draw_picture(self) -> None:
        """Have the setup's environment draw a picture in the background, once; `State.drawn` holds it then."""
        with self._lock:
            made, plan, drawn = self.state.environment, self.state.plan, self.state.drawn
            if made is None or plan is None or (drawn and drawn.path == made.path):
                return
            self.dispatch(Drew(drawn=Drawn(path=made.path)))
        self.run_aside(lambda: self.dispatch(Drew(drawn=steps.draw_picture(made, plan))))

    def run_aside(self, work: Callable[[], object]) -> None:
        """Run some short work in the background, beside the tasks."""
        self._runner.start(work)

    def _start(self, task: Task, cancel: CancelToken) -> None:
        """Start a task on the runner; apply its events and its end as actions; save the state before and after it."""

        def work() -> None:
            def report(event: Event) -> None:
                self._apply(Reported(events=(event,)), cancel)

            self._save(task, report)
            self._apply(self._run_task(task, report, cancel), cancel)
            self._save(task, lambda event: self._apply(Reported(events=(event,))))

        self._runner.start(work)

    def _run_task(self, task: Task, emit: Sink, cancel: CancelToken) -> Finished | Failed:
        """Run a task; return its end, for any exception a `Failed`.

        Its questions wait for the action `Answer`; if nobody answers questions, the answer is no.
        """

        def ask(question: Message) -> bool:
            """Ask the user and return the answer, False if nobody answers questions; `Cancelled` on request."""
            cancel.check()  # one that was given up asks nothing: the answer would be another task's
            if self._asks:
                self._answers = queue.SimpleQueue()
                self._apply(Asked(question=question), cancel)
            while self._asks:
                with suppress(queue.Empty):
                    return self._answers.get(timeout=0.1)
                cancel.check()
            return False

        def sink(event: Event) -> None:
            emit(self._store.log_event(event) if self._store else event)

        try:
            return perform_task(task, self.state, Tools(self._host, self._sources, sink, cancel, ask))
        except AssistantError as error:
            return failure_action(task, error)
        except Exception as error:  # noqa: BLE001 - the shell must hear of it, whatever it is
            message = _("This step failed unexpectedly: {kind}: {reason}", kind=type(error).__name__, reason=error)
            return Failed(step=task.step, message=message, hint=_("Please report this with the log file."))

    def _save(self, task: Task, sink: Sink) -> None:
        """Save the state, before a task too, as it may never end; send a finding to `sink` if that fails.

        Nothing is saved for detection and tasks about environments, nor for a plan that a guided session makes by
        itself while an installed setup is saved.
        """
        if self._store is None or task is Task.DETECT or task.is_about_environments:
            return
        by_itself = self._guided and task in {Task.PLAN, Task.PREPARE} and self.state.environment is None
        if by_itself and self._keeps:
            return
        if fault := self._store.save(self.state):
            sink(FindingRaised(step=task.step, finding=fault))


def _is_given_up(state: State, action: Action) -> bool:
    """Return whether an action abandons the running task, which must be one that only reads.

    A choice does, and so does what is begun on the page of what is wrong, if nothing else blocks it.
    """
    if state.running is None or not state.running.only_reads:
        return False
    if isinstance(action, Begin) and action.task.page is Page.WRONG:
        return not blockers(reduce(state, Abandoned()), action.task)
    return isinstance(action, Choice)
