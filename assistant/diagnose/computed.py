"""All causes that are worked out from a log and its machine: of installers, environments, companions and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from assistant.diagnose.causes import Cause
from assistant.diagnose.companions import companion_causes
from assistant.diagnose.environments import environment_causes
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.log import Log
from assistant.diagnose.retold import retold_causes
from assistant.diagnose.symptoms import symptom_causes
from assistant.model.machine import Machine

FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    installer_causes,
    environment_causes,
    companion_causes,
    retold_causes,
    symptom_causes,
)


def computed_causes(log: Log, machine: Machine) -> tuple[Cause, ...]:
    """Return the causes that are worked out from what a log says."""
    return tuple(cause for finder in FINDERS for cause in finder(log, machine))
