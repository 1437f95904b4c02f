"""Something worth telling the user, as a value: rendered for people and as JSON from the same record."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Text
from assistant.model.plan import Plan
from assistant.model.record import Record

SURE = 0.8  # confidence from which a cause is told without "perhaps"


class Severity(Enum):
    """How much a finding matters, from good news to a stop."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Launch(Record, frozen=True):
    """How an application is to be started: what to take out of its arguments, what to put in, the line as it then is.

    `file` is where the arguments stand, "" where they are typed; `line` is "" where the old arguments are not known.
    """

    app: str
    file: str = ""
    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    line: str = ""


class Remedy(Record, frozen=True, omit_defaults=False):
    """A way out: one sentence, the commands that do it, and a new plan where the way out is one.

    `env` holds variables to set; `check` holds commands that all end with exit code 0 once it worked; `launch` tells
    what to change where applications are started.
    """

    text: Text
    commands: tuple[str, ...] = ()
    plan: Plan | None = None
    env: dict[str, str] = {}
    check: tuple[str, ...] = ()
    launch: tuple[Launch, ...] = ()


class Finding(Record, frozen=True):
    """One observation: a stable key, one sentence, what it rests on and what to do."""

    key: str
    severity: Severity
    text: Text
    evidence: tuple[Text, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def wrong(self) -> bool:
        """Tell whether it is something to mend, not mere news."""
        return self.severity in {Severity.WARNING, Severity.ERROR}


class Diagnosis(Record, frozen=True, omit_defaults=False):
    """A ranked cause of a failure; `confidence` from 0 to 1."""

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
        """Tell whether it is a cause rather than a guess."""
        return self.confidence >= SURE
