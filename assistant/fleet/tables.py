"""The tables that people read of a report on many machines, for terminal, page, notebook and spreadsheet alike.

A cell holds `Text`, or several as its lines; whoever writes it renders them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assistant.fleet.rows import Build, Row, Standing
from assistant.fleet.summary import Fleet, Helped
from assistant.i18n import Message, Text, _, ngettext, render, sentences
from assistant.model.visible import SHORT, printable
from assistant.session.kinds import Gain

Cell = Text | int | Standing | tuple[Text, ...]
_NAMED = 12  # chosen: machines that are named in a cell
_SHOWN = 3  # chosen: problems of a machine in a cell


class Table(NamedTuple):
    """A table with its key, its title, a sentence about it, the headings, and rows of as many cells."""

    key: str
    title: Message
    lead: Message
    headings: tuple[Message, ...]
    rows: Sequence[tuple[Cell, ...]]


def lines_of(cell: Cell) -> tuple[str, ...]:
    """Return the lines of a cell in the language in force, none longer than a reader bears."""
    texts = cell if isinstance(cell, tuple) else (cell.word if isinstance(cell, Standing) else cell,)
    return tuple(_clipped(render(text)) for text in texts if text != "")


def _clipped(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def title_of(fleet: Fleet) -> Message:
    """Say how many machines the report is about."""
    count = sum(row.standing is not Standing.UNREAD for row in fleet.machines)
    return ngettext("PyTorch on {count} machine", "PyTorch on {count} machines", count)


def standings(fleet: Fleet) -> list[tuple[Standing, int]]:
    """Return how many machines stand how, worst first."""
    return [(standing, fleet.standings[standing]) for standing in Standing if standing in fleet.standings]


def tables_of(fleet: Fleet) -> tuple[Table, ...]:
    """Return the tables that have rows, that of the machines last."""
    found = (_helps(fleet), _problems(fleet), _runs(fleet), machines_of(fleet))
    return tuple(table for table in found if table.rows)


def _helps(fleet: Fleet) -> Table:
    return Table(
        "helps",
        _("What would help most"),
        _("What the planner says would let machines run more, most gained first."),
        (_("Do this"), _("What is gained"), _("How many"), _("Machines")),
        [(one.text, _gain(one), len(one.machines), _names(one.machines)) for one in fleet.helps],
    )


def _gain(one: Helped) -> Message:
    if one.gain is Gain.TORCH:
        return _("PyTorch can be installed at all")
    if one.gain is Gain.GPU:
        return _("PyTorch computes on the GPU ({backend}), not on the CPU", backend=one.backend.title)
    return _("torch {then} in place of {now}", now=", ".join(one.now), then=", ".join(one.then))


def _problems(fleet: Fleet) -> Table:
    return Table(
        "problems",
        _("What is wrong, and what mends it"),
        _("The words are those of the first machine that has the problem."),
        (_("Problem"), _("What mends it"), _("How many"), _("Machines")),
        [(one.problem.text, one.problem.remedy, len(one.machines), _names(one.machines)) for one in fleet.problems],
    )


def _runs(fleet: Fleet) -> Table:
    return Table(
        "runs",
        _("What the machines can run"),
        _("The best build for each machine, by the tables of the assistant that made this report."),
        (_("torch"), _("Python"), _("How many"), _("Machines")),
        [
            (_build(one.build), one.build.python if one.build else "", len(one.machines), _names(one.machines))
            for one in fleet.runs
        ],
    )


def _build(build: Build | None) -> Text:
    if build is None:
        return _("nothing fits")
    variant = build.variant if build.variant != build.backend.value else ""
    return f"{build.torch} {build.backend.title} {variant}".strip()


def _names(names: tuple[str, ...]) -> Text:
    shown = ", ".join(names[:_NAMED])
    return _("{names} and {count} more", names=shown, count=len(names) - _NAMED) if names[_NAMED:] else shown


MACHINE_KEYS = ("name", "state", "system", "gpu", "driver", "can_run", "installed", "problems", "recorded")


def machines_of(fleet: Fleet, by: str = "state") -> Table:
    """Return a row for each machine, with the cells of `MACHINE_KEYS`, sorted by one of them."""
    rows = [_machine(row) for row in fleet.machines]
    if by != "state":
        place = MACHINE_KEYS.index(by)
        rows.sort(key=lambda row: lines_of(row[place]))
    return Table(
        "machines",
        _("The machines"),
        _("Worst first; a heading sorts by its column."),
        (
            _("Machine"),
            _("State"),
            _("System"),
            _("GPU"),
            _("Driver"),
            _("Can run"),
            _("Installed"),
            _("Problems"),
            _("Recorded"),
        ),
        rows,
    )


def _machine(row: Row) -> tuple[Cell, ...]:
    if row.standing is Standing.UNREAD:
        return (row.file, row.standing, "", "", "", "", "", row.why, "")
    made = row.environment
    installed = (printable(made.torch) if made.torch else _("no torch"), row.verdict) if made else _("nothing")
    problems = tuple(sentences((one.text, one.remedy)) for one in row.problems[:_SHOWN])
    more = len(row.problems) - _SHOWN
    rest = (ngettext("There is {count} more problem.", "There are {count} more problems.", more),) if more > 0 else ()
    when = f"{row.when:%Y-%m-%d %H:%M}" if row.when else ""
    return (
        row.name,
        row.standing,
        row.system,
        row.gpus or _("none found"),
        row.driver,
        _build(row.can_run),
        installed,
        (*problems, *rest),
        (when, *row.remarks),
    )
