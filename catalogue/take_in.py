# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch-setup-assistant",  # replays machines, plans for them, and knows the cards
# ]
#
# [tool.uv.sources]
# torch-setup-assistant = { path = "..", editable = true }
# ///
"""Take files of `assistant contribute` in: `uv run catalogue/take_in.py FILE…`.

Each file is judged (`plausibility.py`); one that is refused gets a sentence, and nothing of it is written. What is
taken becomes a line of `taken.jsonl`, from which the table `seen.json` is counted anew, and the first machine with such
GPUs on such a system becomes a recorded machine. Exit code 2 if any file was refused.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path

from plausibility import Refused, answers, faults, figures, read

from assistant.detect import detect
from assistant.host.files import write_whole
from assistant.host.recording import ReplayHost
from assistant.i18n import render
from assistant.model.errors import AssistantError
from assistant.model.machine import Machine, Recording, Vendor
from assistant.model.record import Record, from_json, replace, to_json
from assistant.plan import card_name
from assistant.session.contribution import Contribution
from assistant.session.recordings import with_expected
from assistant.session.seen import Case, SeenRow, SeenTables, case_of
from assistant.views import system_name

ROOT = Path(__file__).parents[1]
LEDGER, TABLE, MACHINES = "catalogue/taken.jsonl", "assistant/catalog/data/seen.json", "assistant/machines"


class Taken(Record, frozen=True, omit_defaults=False):
    """A contribution that was taken in: what it counts for, and three digests by which it is known again."""

    mark: str
    figures: str
    answers: str
    row: SeenRow


def main() -> None:
    """Judge each file, write what is taken, and say what became of each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as `assistant contribute` writes them")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to write into; by default this one")
    parser.add_argument("--dry-run", action="store_true", help="judge only, and write nothing")
    wanted = parser.parse_args()
    ledger, refused = read_ledger(wanted.root / LEDGER), False
    before = len(ledger)
    machines: dict[str, str] = {}
    for path in wanted.files:
        told, why = judged(path, ledger, datetime.now(UTC))
        for sentence in why:
            print(f"{path.name!r}: refused. {sentence}", file=sys.stderr)  # noqa: T201 - it talks to a person
        refused |= told is None
        if told is not None:
            ledger.append(taken_of(told))
            machines |= new_machine(told, wanted.root / MACHINES, machines)
            print(f"{path.name!r}: taken, {ledger[-1].row.card or 'processor'}.")  # noqa: T201 - likewise
    if len(ledger) > before and not wanted.dry_run:
        write(wanted.root, ledger, machines)
    sys.exit(2 if refused else 0)


def judged(path: Path, ledger: Iterable[Taken], now: datetime) -> tuple[Contribution | None, list[str]]:
    """Return what a file tells, or None and why it is refused."""
    try:
        told = read(path)
        why = list(faults(told, now))
        known = [] if why else duplicate(told, ledger)
    except AssistantError as error:
        return None, [render(error.message)]
    except Refused as error:
        return None, [str(error)]
    except Exception as error:  # noqa: BLE001 - whatever a stranger's file brings down is a reason to refuse it
        return None, [f"It cannot be judged: {type(error).__name__}."]
    return (None, why or known) if why or known else (told, [])


def duplicate(told: Contribution, ledger: Iterable[Taken]) -> list[str]:
    """Say whether a contribution counts already: under its mark, by its figures, or by its machine's answers."""
    case = case_of(machine_of(told.recording), told.plan)
    for one in ledger:
        if one.figures == figures(told):
            return ["Its verification was contributed before, whoever did it."]
        if one.row.case == case and one.mark == told.mark:
            return ["This machine counts for this build already."]
        if one.row.case == case and one.answers == answers(told.recording):
            return ["Its machine gave the same answers, to the last free byte, in a contribution of before."]
    return []


def taken_of(told: Contribution) -> Taken:
    """Return what is kept of a contribution."""
    machine = machine_of(told.recording)
    case = case_of(machine, told.plan)
    assert case  # noqa: S101 - see `faults`
    row = SeenRow(card=card_name(machine, told.plan.backend), last=told.when.date(), machines=1, **case._asdict())
    return Taken(mark=told.mark, figures=figures(told), answers=answers(told.recording), row=row)


def machine_of(recording: Recording) -> Machine:
    """Replay a recording."""
    return detect(ReplayHost(recording)).machine


def read_ledger(path: Path) -> list[Taken]:
    """Return what was taken in so far."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [from_json(line, Taken, f"{path.name}:{number}") for number, line in enumerate(lines, 1)]


def rows_of(ledger: Iterable[Taken]) -> tuple[SeenRow, ...]:
    """Count the machines of each card, system and build."""
    found: dict[tuple[Case, str], list[date]] = defaultdict(list)
    for one in ledger:
        found[one.row.case, one.row.card].append(one.row.last)
    return tuple(
        SeenRow(card=card, last=max(days), machines=len(days), **case._asdict())
        for (case, card), days in sorted(found.items(), key=lambda pair: to_json(pair[0]))
    )


def new_machine(told: Contribution, folder: Path, others: dict[str, str]) -> dict[str, str]:
    """Return a recorded machine as the text of a file, by its name; {} where one with such GPUs is there."""
    machine, there = machine_of(told.recording), [path.read_bytes() for path in folder.glob("*.json")]
    known = [from_json(text, Recording, "a machine") for text in (*there, *others.values())]
    if any(_kind(machine_of(one)) == _kind(machine) for one in known if one.origin == "recorded"):
        return {}
    system, what = "WSL" if machine.wsl else system_name(machine.os or ""), ", ".join(_gpus(machine)) or "CPU"
    label = f"{system} {machine.arch}, {what} (recorded {told.when:%Y-%m-%d})"
    name = re.sub(r"[^a-z0-9.]+", "-", f"recorded-{system}-{machine.arch}-{what}".lower()).strip("-.")
    while (folder / f"{name}.json").exists() or name in others:
        name = f"{name}-2"
    source = f"assistant contribute, version {told.assistant}"
    recording = replace(told.recording, label=label, source=source)
    text = to_json(recording).replace('{"ask"', '\n{"ask"') + "\n"
    return {name: with_expected(text, name)}


def _kind(machine: Machine) -> tuple[object, ...]:
    """Return what makes a machine worth recording: its system, its processor and its GPUs."""
    return machine.os, bool(machine.wsl), machine.arch, sorted(_gpus(machine))


def _gpus(machine: Machine) -> list[str]:
    """Name the GPUs, those of unknown makers aside."""
    return list(dict.fromkeys(gpu.label for gpu in machine.gpus if gpu.vendor is not Vendor.OTHER))


def write(root: Path, ledger: list[Taken], machines: dict[str, str]) -> None:
    """Write the machines, the ledger, and the table that is counted from it."""
    for name, text in machines.items():
        write_whole(root / MACHINES / f"{name}.json", text)
    write_whole(root / LEDGER, "".join(f"{to_json(one)}\n" for one in ledger))
    path = root / TABLE
    table = from_json(path.read_bytes(), SeenTables, path.name).seen
    rows = rows_of(ledger)
    as_of = max([date.fromisoformat(table.as_of), *(row.last for row in rows)])
    lines = ",\n".join(f"   {to_json(row)}" for row in rows)
    head = to_json({"source": table.source, "as_of": f"{as_of}"})[:-1]
    write_whole(path, f'{{\n "seen": {head},\n  "rows": [\n{lines}\n  ]\n }}\n}}\n')


if __name__ == "__main__":
    main()
