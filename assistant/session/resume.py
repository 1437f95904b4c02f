"""Where a setup goes on from: a saved one, if it was made for this machine, or an environment that is there."""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.detect import detect
from assistant.host.base import Host
from assistant.i18n import Message, Text, _
from assistant.install import not_an_environment, python_of, read_marker
from assistant.model.errors import BadInput
from assistant.model.event import Step
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Planning
from assistant.model.report import Environment
from assistant.session.state import Phase, State
from assistant.session.store import Saved, Store


def worth_telling(saved: State | None) -> bool:
    """Return whether a saved state holds a plan for the machine at hand, and so is worth going on with."""
    return saved is not None and not saved.machine and saved.plan is not None and saved.detection is not None


def obstacle(saved: Saved, machine: Machine) -> Text:
    """Return why a saved setup cannot be continued here; "" when it can."""
    state = saved.state
    if state is None:
        return _("It was saved by another version of the assistant, and this one cannot read it.")
    if saved.in_use:
        return _("Another window is still working on it. Wait until it is done, then run the cell again.")
    then = state.detection.machine if state.detection else Machine()
    changed = tuple(
        Message("{name}: {old} → {new}").format(name=name, old=_written(old), new=_written(new))
        for name, old, new in _identity(then, machine)
        if old != new
    )
    if changed:
        return _("It was made for another machine ({differences}).", differences=changed)
    if state.environment and not Path(state.environment.python).exists():
        return _("Its environment {path} is no longer there.", path=state.environment.path)
    return ""


def remarks(saved: Saved) -> tuple[Message, ...]:
    """Return what is worth knowing before going on: a task that never ended, another version of the assistant."""
    found = []
    if saved.running:
        found.append(_("The last run was interrupted; its partial changes will be rolled back first."))
    if saved.version and saved.version != __version__:
        found.append(
            _("It was saved by version {old} of the assistant; this is {new}.", old=saved.version, new=__version__)
        )
    return tuple(found)


def furthest(state: State) -> Step:
    """Return the step to go on with: the first that is not done, without the diagnosis, which nothing waits for."""
    steps = (step for step in Step if step is not Step.DIAGNOSE)
    return next((step for step in steps if state.status(step).phase is not Phase.DONE), Step.EXPORT)


def last_setup() -> State:
    """Return the state of the last setup; raise `BadInput` where there is none."""
    state = Store().load()
    if state is None or state.environment is None:
        raise BadInput(_("There is no earlier setup to continue."), hint=_("Run `assistant setup` first."))
    return state


def setup_of(target: Path, host: Host) -> State:
    """Start from an environment that is there; its marker says what it was planned for, if it is one of ours.

    Raises `BadInput` for a folder that is no environment.
    """
    marker, last = read_marker(target), Store().load()
    if marker and last and last.environment == marker.environment:
        return last
    if marker:
        planning = Planning(choice=marker.plan, plans=(marker.plan,))
        return State(detection=detect(host), planning=planning, environment=marker.environment)
    python = python_of(target)
    if not python.exists():
        raise not_an_environment(target)
    environment = Environment(path=str(python.parent.parent), python=str(python))
    return State(detection=Detection(machine=Machine()), environment=environment)


def _identity(then: Machine, now: Machine) -> list[tuple[Message, object, object]]:
    """Pair the facts that identify a machine; free disk space and the like change by the hour and do not count."""
    cards = [tuple(gpu.name or gpu.pci_id for gpu in machine.gpus) for machine in (then, now)]
    gpus = cards if cards[0] != cards[1] else [then.gpus, now.gpus]
    return [
        (_("System"), (then.os, then.os_version, then.arch), (now.os, now.os_version, now.arch)),
        (_("Python"), then.python, now.python),
        (_("NVIDIA driver"), then.nvidia_driver, now.nvidia_driver),
        (_("Graphics"), gpus[0], gpus[1]),
    ]


def _written(value: object) -> Text:
    words = value if isinstance(value, tuple) else (value,)
    return " ".join(str(getattr(word, "name", word)) for word in words if word) or _("none")
