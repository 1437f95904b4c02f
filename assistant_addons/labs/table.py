"""A teacher's table: the results of a class, as one file for a spreadsheet and one page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from assistant.api import AssistantError, BadInput, Record, Text, _, ngettext, render, replace, say
from assistant.api.records import from_json
from assistant.api.system import read_regular, unreadable_error, unwritable_error, write_atomically
from assistant.api.texts import Markup, cell, html_language, tag
from assistant_addons.labs.definition import labs
from assistant_addons.labs.play import POINTS, RESULT, Result

RESULT_BYTES = 1 << 16
COLUMNS = ("learner", "lab", "solved", "points", "hints", "misses", "guessed", "minutes", "day")
STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem; }
th, td { text-align: left; padding: 0.3rem 0.7rem; border-bottom: 1px solid #ccc; }
caption { text-align: left; font-weight: bold; padding-bottom: 0.5rem; }"""


class Row(Record, frozen=True):
    """One result file, or why it is none."""

    file: str
    result: Result = Result(lab="")
    fault: Text = ""


def read_results(folder: Path) -> list[Row]:
    """Read every result below a folder; raise `BadInput` where there is none.

    A learner without a name in it is the first folder's name.
    """
    paths = sorted(folder.rglob(f"*{RESULT}")) if folder.is_dir() else []
    if not paths:
        raise BadInput(
            _("There is no result of a lab in {folder}.", folder=folder),
            hint=_(
                "Results are files such as {name}, which `assistant labs check` writes.", name=f"cpu-build-ann{RESULT}"
            ),
        )
    return [_read(path, path.relative_to(folder)) for path in paths]


def _read(path: Path, inside: Path) -> Row:
    """Read one result; one bad file must not cost the others theirs."""
    row = Row(file=inside.as_posix())
    learner = inside.parts[0] if len(inside.parts) > 1 else ""
    try:
        result = from_json(read_regular(path, RESULT_BYTES, follow=True), Result, row.file)
    except OSError as error:
        return replace(row, fault=unreadable_error(row.file, error).message)
    except AssistantError as error:
        return replace(row, fault=error.message)
    if result.lab not in labs() or not 0 <= result.points <= POINTS:
        return replace(row, fault=_("{file} is not the result of a lab.", file=row.file))
    return replace(row, result=replace(result, learner=result.learner or learner))


def write_table(folder: Path, rows: Sequence[Row]) -> tuple[Path, Path]:
    """Write labs.csv and labs.html into a folder; raise `WorkFailed` where that cannot be."""
    written = {folder / "labs.csv": as_csv(rows), folder / "labs.html": as_page(rows)}
    for path, text in written.items():
        try:
            write_atomically(path, text)
        except OSError as error:
            raise unwritable_error(path, error) from error
    csv_path, page_path = written
    return csv_path, page_path


def as_csv(rows: Sequence[Row]) -> str:
    """Return a line for each result, with the names of the columns first."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*COLUMNS, "remarks", "file"])
    for row in rows:
        writer.writerow(
            [*(cell(getattr(row.result, name)) for name in COLUMNS), cell(render(row.fault)), cell(row.file)]
        )
    return table.getvalue()


def as_page(rows: Sequence[Row]) -> str:
    """Return a page: the points of each learner in each lab, and what they sum up to."""
    good = [row.result for row in rows if not row.fault]
    played = [key for key in labs() if key in {one.lab for one in good}]
    best = {(one.learner, one.lab): one for one in sorted(good, key=lambda one: one.points)}
    learners = sorted({one.learner for one in good})
    title = say("Labs: {learners}", learners=ngettext("{count} learner", "{count} learners", len(learners)))
    by_learner = [
        [learner or "–", *(_points(best.get((learner, key))) for key in played), _sum(learner, best)]
        for learner in learners
    ]
    parts = [_table(say("Points"), [say("Learner"), *played, say("Sum")], by_learner)]
    if bad := [[row.file, render(row.fault)] for row in rows if row.fault]:
        parts.append(_table(say("Not counted"), [say("File"), say("Why")], bad))
    head = tag("head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Markup(STYLE)))
    note = say("Learners can change their own results. Ask two of them to explain what they did.")
    page = tag("html", head, tag("body", tag("h1", title), *parts, tag("p", note)), lang=html_language())
    return f"<!DOCTYPE html>\n{page}\n"


def _points(result: Result | None) -> str:
    return "" if result is None else str(result.points) if result.solved else say("not fixed")


def _sum(learner: str, best: dict[tuple[str, str], Result]) -> str:
    return str(sum(result.points for (name, _lab), result in best.items() if name == learner))


def _table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = tag("tr", *(tag("th", title, scope="col") for title in titles))
    body = (tag("tr", *(tag("td", one) for one in row)) for row in rows)
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
