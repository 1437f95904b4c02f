"""The controller of one guided setup: actions in, new state out to whoever watches, tasks started and stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from assistant.host.base import Host
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.event import Event, JobFailed, LogLine, Sink
from assistant.session.runner import Runner
from assistant.session.sources import Sources
from assistant.session.state import Action, Begin, Finished, State, Task, Told, blockers, reduce
from assistant.session.store import Store
from assistant.session.tasks import TASKS, Tools

__all__ = ["Session"]

Watcher = Callable[[State, State], None]


class Session:
    """One setup; safe to call from any thread, because front ends run callbacks on threads of their choosing."""

    def __init__(
        self,
        host: Host,
        runner: Runner,
        store: Store | None = None,
        state: State | None = None,
        *,
        sources: Sources | None = None,
    ) -> None:
        self.state = state or State()
        self._host = host
        self._sources = sources or Sources(host)
        self._runner = runner
        self._store = store
        self._cancel = CancelToken()
        self._lock = threading.RLock()
        self._watchers: list[Watcher] = []
        self._sinks: list[Sink] = []

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher(old, new)` after every change of the state."""
        self._watchers.append(watcher)

    def listen(self, sink: Sink) -> None:
        """Hand every event of every task to `sink` as well."""
        self._sinks.append(sink)

    def dispatch(self, action: Action) -> None:
        """Apply an action; a begin that is accepted starts its task."""
        with self._lock:
            old, self.state = self.state, reduce(self.state, action)
            new = self.state
            started = isinstance(action, Begin) and new.running is action.task and old.running is None
            if started:
                self._cancel = CancelToken()
            if new is not old:
                for watcher in self._watchers:
                    watcher(old, new)
        if started and isinstance(action, Begin):
            self._start(action.task, self._cancel)

    def begin(self, task: Task) -> None:
        """Start a task; raise nothing when it may not start now, `blockers` says why."""
        self.dispatch(Begin(task=task))

    def blockers(self, task: Task) -> tuple[str, ...]:
        """List why a task cannot begin now."""
        return blockers(self.state, task)

    def cancel(self) -> None:
        """Ask the running task to stop and take back what it began."""
        self._cancel.set()

    def _start(self, task: Task, cancel: CancelToken) -> None:
        def job(emit: Sink) -> None:
            self.dispatch(self._outcome(task, Tools(self._host, self._sources, self._heard(emit), cancel)))
            if self._store and task is not Task.DETECT:  # a setup saved earlier outlives a mere look
                self._store.save(self.state)

        self._runner.start(job, lambda events: self.dispatch(Told(events=events)))

    def _outcome(self, task: Task, tools: Tools) -> Finished | JobFailed:
        """Run a task to its end; a failure of any kind becomes a sentence, never a lost exception."""
        begun = time.monotonic()
        try:
            changes = TASKS[task](self.state, tools)
        except AssistantError as error:
            return JobFailed(
                step=task.step,
                message=error.message,
                hint=error.hint,
                cancelled=isinstance(error, Cancelled),
                exit_code=error.exit_code,
            )
        except Exception as error:  # noqa: BLE001 - the shells must hear of it, whatever it is
            message = _("This step broke: {kind}: {reason}").format(kind=type(error).__name__, reason=error)
            return JobFailed(step=task.step, message=message, hint=_("Please report it together with the log file."))
        return Finished(task=task, changes=changes, seconds=time.monotonic() - begun)

    def _heard(self, emit: Sink) -> Sink:
        def sink(event: Event) -> None:
            if isinstance(event, LogLine) and self._store:
                self._store.write_log(event.text)
            for listener in self._sinks:
                listener(event)
            emit(event)

        return sink
