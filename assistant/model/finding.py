"""What the user should know, as records: findings, diagnoses and their remedies."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Text
from assistant.model.plan import Plan
from assistant.model.record import Record

# From this confidence on a cause is stated without "perhaps": in unseen texts nine in ten were right, 41 of 44.
SURE = 0.9
# Below it a cause is more often wrong than right: one possibility among others, told after what to look at.
LIKELY = 0.5


class Severity(Enum):
    """How much a finding matters, from good news to a stop."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Launch(Record, frozen=True):
    """Corrected launch arguments of an application: those to drop, those to add, the line that results.

    `file` holds the arguments, "" where they are typed; `line` is "" where the old arguments are not known.
    """

    app: str
    file: str = ""
    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    line: str = ""


class Remedy(Record, frozen=True, omit_defaults=False):
    """A fix: one sentence, the commands that apply it, and a new plan if the fix is one.

    `env` holds variables to set, `launch` changes to applications' arguments; the commands in `check` all end with exit
    code 0 once it has worked. `mends` is False if it does not remove the cause, but would suit the machine better.
    """

    text: Text
    commands: tuple[str, ...] = ()
    plan: Plan | None = None
    env: dict[str, str] = {}
    check: tuple[str, ...] = ()
    launch: tuple[Launch, ...] = ()
    mends: bool = True


class Finding(Record, frozen=True):
    """One observation: a stable key, one sentence, its evidence and what to do."""

    key: str
    severity: Severity
    text: Text
    evidence: tuple[Text, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether it is a problem to fix, not mere information."""
        return self.severity in {Severity.WARNING, Severity.ERROR}


class Diagnosis(Record, frozen=True, omit_defaults=False):
    """A possible cause of a failure, with its `confidence` from 0 to 1."""

    key: str
    title: Text
    cause: Text
    evidence: tuple[Text, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    confidence: float = 0.0
    sources: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR

    @property
    def sure(self) -> bool:
        """Whether its confidence is high enough to state it as the cause."""
        return self.confidence >= SURE

    @property
    def likely(self) -> bool:
        """Whether its confidence is high enough to name it at all where one answer is expected."""
        return self.confidence >= LIKELY


class Interpreter(Record, frozen=True):
    """How to run the Python of the program that wrote a log: its `path`, "" if unknown, and the `python` to type.

    `folder` names the application in whose folder that is typed, `project` the tool that keeps the packages; `pip` is
    what takes the place of pip, "" for pip itself. `container` is set where the change would go with the container,
    `compose` where a compose file starts it, `bundled` where a Python that comes with the program is not found.
    """

    path: str = ""
    python: str = "python"
    pip: str = ""
    folder: str = ""
    project: str = ""
    container: bool = False
    compose: bool = False
    bundled: bool = False
