"""One row for each machine: how it stands, what it can run, what is wrong with it and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum

from assistant.export import same_hardware
from assistant.fleet.reading import Found, Unread
from assistant.fleet.record import FleetRecord, Installed
from assistant.i18n import Message, Text, _, first_line, map_texts, ngettext
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import Record, replace
from assistant.model.report import verdict
from assistant.model.visible import printable
from assistant.session.kinds import Gain, Help, outlook_of
from assistant.verify import raised
from assistant.views import gpu_line, rejection_reason

OLD = timedelta(days=30)  # chosen
_AHEAD = timedelta(days=1)  # chosen: more than any time zone that was set wrong
_DEEPEST = 6  # messages within one another, in anything that we write


class Standing(Enum):
    """How a machine stands, worst first."""

    BROKEN = "broken"
    UNREAD = "unread"
    BETTER = "better"
    BARE = "bare"
    UNCHECKED = "unchecked"
    WORKS = "works"

    @property
    def word(self) -> Message:
        """The standing in words."""
        return _WORDS[self]


_WORDS = {
    Standing.BROKEN: _("broken"),
    Standing.UNREAD: _("file cannot be read"),
    Standing.BETTER: _("could be better"),
    Standing.BARE: _("not set up"),
    Standing.UNCHECKED: _("not verified"),
    Standing.WORKS: _("works"),
}


class Build(Record, frozen=True, omit_defaults=False):
    """The build of torch that a machine can run, by today's tables."""

    backend: Backend
    variant: str
    torch: str
    python: str


class Problem(Record, frozen=True, omit_defaults=False):
    """What is wrong, by its key, and what mends it ("" if nothing is known)."""

    key: str
    severity: Severity
    text: Text
    remedy: Text = ""


class Row(Record, frozen=True, omit_defaults=False):
    """One machine, or a file that is none (`why` tells the reason, and nothing else is known).

    `can_run` is None where nothing fits; `verdict` is the result of the verification, "" without one. `remarks` are
    about the record itself: old, of a clock that is wrong, or one of several.
    """

    name: str
    file: str
    standing: Standing
    why: Text = ""
    when: datetime | None = None
    system: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""
    can_run: Build | None = None
    environment: Installed | None = None
    verdict: Text = ""
    problems: tuple[Problem, ...] = ()
    helps: tuple[Help, ...] = ()
    remarks: tuple[Text, ...] = ()


def rows_of(read: Iterable[Found | Unread], now: datetime) -> tuple[Row, ...]:
    """Return a row for each machine, worst first; of several records of one name the newest counts.

    Only rows are held, however many records there are.
    """
    rows: dict[str, Row] = {}
    machines: dict[str, Machine] = {}
    unread: list[Row] = []
    for one in read:
        try:
            row = _row_of(one, now) if isinstance(one, Found) else _unread(one)
        except BadInput as error:
            row = _unread(Unread(one.file, error.message))
        if not isinstance(one, Found) or row.when is None:
            unread.append(row)
            continue
        machine = _hardware(one.record.machine)
        if (other := rows.get(row.name)) and other.when:
            remark = _remark(same=same_hardware(machine, machines[row.name]))
            newest = row if row.when > other.when else other
            row = replace(newest, remarks=tuple(dict.fromkeys((*newest.remarks, remark))))
        rows[row.name], machines[row.name] = row, machine
    order = list(Standing)
    return tuple(sorted((*rows.values(), *unread), key=lambda row: (order.index(row.standing), row.name)))


def _hardware(machine: Machine) -> Machine:
    return Machine(os=machine.os, arch=machine.arch, gpus=machine.gpus)


def _remark(*, same: bool) -> Message:
    if same:
        return _("There are several records of this machine; the newest counts.")
    return _("The records of this name tell of different hardware: give each machine a name of its own.")


def _unread(one: Unread) -> Row:
    return Row(name="", file=one.file, standing=Standing.UNREAD, why=_said(one.why))


def _row_of(found: Found, now: datetime) -> Row:
    """Judge one record; raise `BadInput` for one with sentences that nobody can render."""
    record = found.record
    machine, kind = record.machine, outlook_of(record.machine)
    choice = kind.planning.choice
    problems = tuple(_problems(record))
    against = kind.planning.rejected[0] if choice is None and kind.planning.rejected else None
    if against and against.key not in {problem.key for problem in problems}:
        why = rejection_reason(against)
        problems = (Problem(key=against.key, severity=Severity.ERROR, text=why), *problems)
    return Row(
        name=printable(record.name),
        file=found.file,
        standing=_standing(record, problems, kind.helps, fits=choice is not None),
        when=record.when,
        system=printable(_system(machine)),
        gpus=_gpus(machine),
        driver=printable(machine.nvidia_driver or machine.rocm_version or ""),
        can_run=Build(backend=choice.backend, variant=choice.variant, torch=choice.torch, python=choice.python)
        if choice
        else None,
        environment=record.environment,
        verdict=_said(verdict(record.report)) if record.report else "",
        problems=problems,
        helps=kind.helps,
        remarks=tuple(_remarks(record, now)),
    )


def _system(machine: Machine) -> str:
    return " ".join(filter(None, (machine.os_version or machine.os, machine.arch, "WSL" if machine.wsl else "")))


def _gpus(machine: Machine) -> tuple[str, ...]:
    """Name each kind of GPU, with how many there are."""
    counted = Counter(printable(gpu_line(gpu)) for gpu in machine.gpus)
    return tuple(f"{count} × {line}" if count > 1 else line for line, count in counted.items())


def _problems(record: FleetRecord) -> Iterator[Problem]:
    """Yield what is wrong on a machine, worst first: what its verification found, the doctor's findings, its drift."""
    found = (*(raised(record.report) if record.report else ()), *record.findings, *(record.drift or ()))
    order = list(Severity)
    worst = sorted((one for one in found if one.wrong), key=lambda one: -order.index(one.severity))
    yield from dict.fromkeys(map(_problem, worst))


def _problem(finding: Finding) -> Problem:
    remedy = finding.remedies[0].text if finding.remedies else ""
    return Problem(
        key=printable(finding.key), severity=finding.severity, text=_said(finding.text), remedy=_said(remedy)
    )


def _standing(record: FleetRecord, problems: tuple[Problem, ...], helps: tuple[Help, ...], *, fits: bool) -> Standing:
    severities = {problem.severity for problem in problems}
    if not fits or Severity.ERROR in severities or (record.report and not record.report.usable):
        return Standing.BROKEN
    if severities or any(one.gain is not Gain.NEWER for one in helps):
        return Standing.BETTER
    if record.environment is None:
        return Standing.BARE
    return Standing.WORKS if record.report else Standing.UNCHECKED


def _remarks(record: FleetRecord, now: datetime) -> Iterator[Message]:
    if record.when > now + _AHEAD:
        yield _("The clock of this machine is ahead.")
    elif now - record.when > OLD:
        days = (now - record.when).days
        yield ngettext("This record is {count} day old.", "This record is {count} days old.", days)


def _said(text: Text) -> Text:
    """Return the first line of a sentence that somebody's file holds, with nothing in it that hides or runs on."""
    if not isinstance(text, Message):
        return printable(text)
    within: list[object] = [text]
    for _level in range(_DEEPEST):
        within = [value for one in within for value in _values(one)]
    if within:
        raise BadInput(_("Its sentences are nested too deeply."))
    line = first_line(text)
    return map_texts(line, printable) if isinstance(line, Message) else printable(line)


def _values(message: object) -> Iterator[object]:
    """Yield the messages within a message."""
    for value in message.params.values() if isinstance(message, Message) else ():
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Message))
