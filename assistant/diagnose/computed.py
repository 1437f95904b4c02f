"""All causes that are worked out from a log and its machine: of installers, environments, companions and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from assistant.diagnose.causes import Cause
from assistant.diagnose.companions import companion_causes
from assistant.diagnose.environments import environment_causes
from assistant.diagnose.installers import installer_causes
from assistant.diagnose.log import Log
from assistant.diagnose.phrasings import resembled, unmistaken
from assistant.diagnose.retold import retold_causes
from assistant.diagnose.symptoms import fact_causes, symptom_causes
from assistant.model.machine import Machine

FINDERS: tuple[Callable[[Log, Machine], Iterable[Cause]], ...] = (
    installer_causes,
    environment_causes,
    companion_causes,
    retold_causes,
    symptom_causes,
)


def computed_causes(log: Log, machine: Machine) -> tuple[Cause, ...]:
    """Return the causes that are worked out, those of a person's words weighed by what others told in such words."""
    alike = resembled(log, machine)
    return tuple(_weighed(cause, alike) for finder in FINDERS for cause in finder(log, machine))


def supposed_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what to suppose where a text names no cause: what facts alone give, else what its words resemble most."""
    by_facts = tuple(fact_causes(log, machine))
    yield from by_facts
    if not by_facts and (key := unmistaken(log, machine)):
        yield Cause(key, "words-alone", (0,))


def _weighed(cause: Cause, alike: tuple[str, ...]) -> Cause:
    """Weigh a cause that rests on a person's words by whether others told it in such words."""
    if not alike or cause.basis not in {"message-retold", "symptom-told"}:
        return cause
    basis = "told-alike" if cause.key == alike[0] else "told-near" if cause.key in alike else "told-unlike"
    return cause._replace(basis=basis)
