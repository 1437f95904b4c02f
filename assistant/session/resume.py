"""From where a setup goes on: one that was saved, if it was made for this machine, or an environment that stands."""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.detect import detect
from assistant.host.base import Host
from assistant.i18n import Message, Text, _
from assistant.install import python_of, read_marker
from assistant.model.errors import BadInput
from assistant.model.event import Step
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Planning
from assistant.model.report import Environment
from assistant.session.nouns import Phase, State
from assistant.session.store import Saved, Store

STEPS = tuple(Step)


def worth_telling(saved: State | None) -> bool:
    """Tell whether a saved state goes beyond a mere look."""
    return saved is not None and not saved.machine and saved.plan is not None and saved.detection is not None


def obstacle(saved: Saved, machine: Machine) -> Text:
    """Say in a sentence why a saved setup cannot be gone on with here; "" when it can."""
    state = saved.state
    if state is None:
        return _("It was saved by another version of the assistant, and this one cannot read it.")
    if saved.in_use:
        return _("Another window is still at work on it; wait until that is done, then run the cell again.")
    then = state.detection.machine if state.detection else Machine()
    changed = tuple(
        Message("{name}: {old} → {new}").format(name=name, old=_said(old), new=_said(new))
        for name, old, new in _identity(then, machine)
        if old != new
    )
    if changed:
        return _("It was made for another machine ({differences}).", differences=changed)
    if state.environment and not Path(state.environment.python).exists():
        return _("Its environment {path} is no longer there.", path=state.environment.path)
    return ""


def remarks(saved: Saved) -> tuple[Message, ...]:
    """Say what is worth knowing before going on: a task that never ended, another version of the assistant."""
    told = []
    if saved.running:
        told.append(_("It ended in the middle of its work; what had been begun is taken back before the next try."))
    if saved.version and saved.version != __version__:
        told.append(
            _("It was saved by version {old} of the assistant; this is {new}.", old=saved.version, new=__version__)
        )
    return tuple(told)


def furthest(state: State) -> Step:
    """Name the step to go on with: the first that is not done."""
    return next((step for step in STEPS if state.status(step).phase is not Phase.DONE), STEPS[-1])


def last_setup() -> State:
    """Give the state of the last setup; raise `BadInput` where there is none."""
    state = Store().load()
    if state is None or state.environment is None:
        raise BadInput(_("There is no setup to go on from."), hint=_("Run `assistant setup` first."))
    return state


def setup_of(target: Path, host: Host) -> State:
    """Start from an environment that is there; one of ours says what it was planned for."""
    marker, last = read_marker(target), Store().load()
    if marker and last and last.environment == marker.environment:
        return last
    if marker:
        planning = Planning(choice=marker.plan, plans=(marker.plan,))
        return State(detection=detect(host), planning=planning, environment=marker.environment)
    return State(detection=Detection(machine=Machine()), environment=_environment(target))


def _environment(target: Path) -> Environment:
    python = python_of(target)
    if not python.exists():
        raise BadInput(
            _("{path} is not an environment.", path=target),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )
    return Environment(path=str(python.parent.parent), python=str(python))


def _identity(then: Machine, now: Machine) -> list[tuple[Message, object, object]]:
    """Pair the facts that make a machine; free disk and the like change by the hour and do not count."""
    cards = [tuple(gpu.name or gpu.pci_id for gpu in machine.gpus) for machine in (then, now)]
    gpus = cards if cards[0] != cards[1] else [then.gpus, now.gpus]
    return [
        (_("System"), (then.os, then.os_version, then.arch), (now.os, now.os_version, now.arch)),
        (_("Python"), then.python, now.python),
        (_("NVIDIA driver"), then.nvidia_driver, now.nvidia_driver),
        (_("Graphics"), gpus[0], gpus[1]),
    ]


def _said(value: object) -> Text:
    words = value if isinstance(value, tuple) else (value,)
    return " ".join(str(getattr(word, "name", word)) for word in words if word) or _("none")
