"""Machines that are not here, as they are named on the command line: recorded, described in a file, or in a list."""

from __future__ import annotations

from pathlib import Path

from assistant.catalog import load_catalog
from assistant.cli.brief import Brief, read_brief
from assistant.cli.inputs import read_text
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import say
from assistant.machines import load, shipped
from assistant.model.plan import Request
from assistant.model.record import from_json
from assistant.plan import PlanInputs


class Listed(Brief, frozen=True):
    """A machine of a list, what is asked for on it, and what people call it."""

    name: str = ""


def case_of(name: str, request: Request) -> PlanInputs:
    """Return what is to be planned for a recorded machine, or for one that a file describes; raise `BadInput`."""
    if name in shipped() or not Path(name).exists():
        return PlanInputs(detect(ReplayHost(load(name))).machine, load_catalog(), request)
    brief = read_brief(read_text(name), name)
    return PlanInputs(brief, load_catalog(), brief.asked(request))


def listed(name: str, request: Request) -> list[tuple[str, PlanInputs]]:
    """Read a list of machines, one JSON object per line; raise `BadInput` that names the line at fault."""
    cases = []
    for number, line in enumerate(read_text(name).split("\n"), start=1):
        if line.strip():
            one = from_json(line, Listed, say("Line {number}", number=number))
            cases.append((one.name or f"PC {number}", PlanInputs(one, load_catalog(), one.asked(request))))
    return cases
