"""Whether a saved setup can be gone on with: made for this very machine, its environment still there."""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.i18n import _
from assistant.model.event import Step
from assistant.model.machine import Machine
from assistant.session.nouns import Phase, State
from assistant.session.store import Saved

__all__ = ["furthest", "obstacle", "remarks", "worth_telling"]

STEPS = tuple(Step)


def worth_telling(saved: State | None) -> bool:
    """Tell whether a saved state goes beyond a mere look."""
    return saved is not None and not saved.machine and saved.plan is not None and saved.detection is not None


def obstacle(saved: Saved, machine: Machine) -> str:
    """Say in a sentence why a saved setup cannot be gone on with here; "" when it can."""
    state = saved.state
    if state is None:
        return _("It was saved by another version of the assistant, and this one cannot read it.")
    if saved.in_use:
        return _("Another window is still at work on it; wait until that is done, then run the cell again.")
    then = state.detection.machine if state.detection else Machine()
    changed = [f"{name}: {_said(old)} → {_said(new)}" for name, old, new in _identity(then, machine) if old != new]
    if changed:
        return _("It was made for another machine ({differences}).").format(differences="; ".join(changed))
    if state.environment and not Path(state.environment.python).exists():
        return _("Its environment {path} is no longer there.").format(path=state.environment.path)
    return ""


def remarks(saved: Saved) -> tuple[str, ...]:
    """Say what is worth knowing before going on: a task that never ended, another version of the assistant."""
    told = []
    if saved.running:
        told.append(_("It ended in the middle of its work; what had been begun is taken back before the next try."))
    if saved.version and saved.version != __version__:
        told.append(
            _("It was saved by version {old} of the assistant; this is {new}.").format(
                old=saved.version, new=__version__
            )
        )
    return tuple(told)


def furthest(state: State) -> Step:
    """Name the step to go on with: the first that is not done."""
    return next((step for step in STEPS if state.status(step).phase is not Phase.DONE), STEPS[-1])


def _identity(then: Machine, now: Machine) -> list[tuple[str, object, object]]:
    """Pair the facts that make a machine; free disk and the like change by the hour and do not count."""
    cards = [tuple(gpu.name or gpu.pci_id for gpu in machine.gpus) for machine in (then, now)]
    gpus = cards if cards[0] != cards[1] else [then.gpus, now.gpus]
    return [
        (_("System"), (then.os, then.os_version, then.arch), (now.os, now.os_version, now.arch)),
        (_("Python"), then.python, now.python),
        (_("NVIDIA driver"), then.nvidia_driver, now.nvidia_driver),
        (_("Graphics"), gpus[0], gpus[1]),
    ]


def _said(value: object) -> str:
    words = value if isinstance(value, tuple) else (value,)
    return " ".join(str(getattr(word, "name", word)) for word in words if word) or _("none")
