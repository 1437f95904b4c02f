"""What is known of the environments on a machine, as records."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Message, Text, _, ngettext, sentences
from assistant.install import Difference, LastChange
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Backend
from assistant.model.record import Record, replace


class Light(Enum):
    """How good an environment is, by the worst of its findings; unknown where it could not be looked at."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"

    @property
    def word(self) -> Message:
        """The light's meaning in words, such as "good"."""
        return _WORDS[self]


_WORDS = {
    Light.GOOD: _("good"),
    Light.WARNING: _("could be better"),
    Light.BAD: _("broken"),
    Light.UNKNOWN: _("unknown"),
}


class EnvironmentSummary(Record, frozen=True):
    """One environment: where and what it is, what it holds, what is wrong with it.

    `kind` and `of` tell what keeps it: "venv" or "conda", a "project" of uv or pixi, a Jupyter "kernel", an
    "application". `made` is set if the assistant made it, `own` if the assistant runs in it, `others` if this user may
    not change it.
    `checked` is when its Python was asked, "" where only files were read, and `stamp` tells whether anything was
    installed since; `size` in bytes, None until then; `device` is the one on which torch was seen to compute, and
    `keeps` the pins that later installations go by.
    """

    path: str
    name: str
    kind: str = "venv"
    of: str = ""
    python: str = ""
    torch: str = ""
    backend: Backend | None = None
    findings: tuple[Finding, ...] = ()
    kernels: tuple[str, ...] = ()
    made: bool = False
    own: bool = False
    others: bool = False
    unread: bool = False
    checked: str = ""
    stamp: tuple[int, ...] = ()
    size: int | None = None
    device: str = ""
    undo: LastChange | None = None
    keeps: tuple[str, ...] = ()

    @property
    def light(self) -> Light:
        """How good it is."""
        if self.unread:
            return Light.UNKNOWN
        found = {finding.severity for finding in self.findings}
        return Light.BAD if Severity.ERROR in found else Light.WARNING if Severity.WARNING in found else Light.GOOD

    @property
    def keeper(self) -> Text:
        """What it is, or what keeps it."""
        if self.own:
            return _("the assistant's own")
        if self.others:
            return _("another user looks after it")
        if self.made:
            return _("made by the assistant")
        kinds = {
            "kernel": _("Jupyter kernel"),
            "venv": _("virtual environment"),
            "conda": _("conda environment"),
            "project": _("{tool} project", tool=self.of),
            "application": Message("{tool}").format(tool=self.of),
        }
        return kinds[self.kind]

    @property
    def build(self) -> Text:
        """Its PyTorch, with what that is built for, such as "2.13.0, CPU"."""
        if not self.torch:
            return _("none")
        public = self.torch.partition("+")[0]
        return f"{public}, {self.backend.title}" if self.backend else self.torch

    @property
    def state(self) -> Text:
        """The worst that is wrong with it, or that nothing is, in a sentence."""
        order = list(Severity)
        findings = sorted(self.findings, key=lambda finding: -order.index(finding.severity))
        wrong = [finding for finding in findings if finding.wrong]
        if self.own:
            return _("The assistant runs in this environment and looks after it by itself.")
        if self.unread:
            return _("It could not be read.")
        if not wrong:
            works = _("Works: PyTorch computes on the device {device}.", device=self.device)
            return works if self.device else _("No problems found in its packages.")
        more = len(wrong) - 1
        rest = ngettext("There is {count} more problem.", "There are {count} more problems.", more) if more else ""
        return sentences((wrong[0].text, rest))


class Survey(Record, frozen=True):
    """The environments that were found, in `folders` that the user named and in the usual places.

    `cut_short` is set where the search ended before it had been everywhere; `notes` are what the last change reported.
    """

    environments: tuple[EnvironmentSummary, ...] = ()
    folders: tuple[str, ...] = ()
    cut_short: bool = False
    notes: tuple[Finding, ...] = ()

    def summary_at(self, path: str) -> EnvironmentSummary | None:
        """Return the environment at a path; None where none was found there."""
        return next((row for row in self.environments if row.path == path), None)

    def with_summary(self, summary: EnvironmentSummary) -> Survey:
        """Return the survey with one environment's summary replaced, or added at the end."""
        every = {**{row.path: row for row in self.environments}, summary.path: summary}
        return replace(self, environments=tuple(every.values()))


class Repair(Record, frozen=True):
    """A change that would mend an environment: what moves, what is mended by it, and what it leaves as it is."""

    path: str
    difference: Difference
    mends: tuple[Finding, ...] = ()
    remains: tuple[Finding, ...] = ()


def megabytes(size: int) -> float:
    """Return bytes in MB for people; any amount above nothing is at least 0.1."""
    return max(size / 1e6, 0.1) if size else 0.0


def undo_notice(change: LastChange) -> Message:
    """Return a sentence on what undoing a change takes: a folder that is kept, or fetching the old versions."""
    if change.is_replacement:
        return _("The environment as it was is kept beside it until the next change, or until you delete it.")
    return _("For that, uv fetches the old versions again.")
