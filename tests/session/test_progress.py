"""How far an installation is: its parts in order, the one at work with its figures, the share where it is known."""

from __future__ import annotations

import re

import pytest
from tables import each

from assistant.i18n import render
from assistant.model.report import Part, Progress, Step
from assistant.session.state import Phase, State, StepStatus, Task
from assistant.wizard.panels.setup import draw_working


def phases(drawn: str) -> list[str]:
    """Read how far each part is."""
    return re.findall(r"ptsa-phase-(\w+)", drawn)


@each("at", list(Part))
def test_the_parts_are_ticked_off_in_order(at: Part) -> None:
    """What comes before the one at work is done, what comes after it waits, and it alone has figures."""
    progress = Progress(step=Step.INSTALL, text="", part=at, done=3, total=44, unit="packages")
    statuses = {Step.INSTALL: StepStatus(phase=Phase.RUNNING, progress=progress)}
    drawn = draw_working(State(running=Task.INSTALL, statuses=statuses))
    place = list(Part).index(at)
    assert phases(drawn) == ["done"] * place + ["running"] + ["waiting"] * (len(Part) - place - 1)
    assert drawn.count("3 / 44") == 1


def test_an_installation_begins_with_its_download_and_no_other_task_has_parts() -> None:
    """Its packages were resolved before."""
    assert phases(draw_working(State(running=Task.INSTALL)))[:3] == ["done", "running", "waiting"]
    assert phases(draw_working(State(running=Task.VERIFY))) == []


@each(
    ("done", "total", "rate", "share", "figures"),
    [
        (12.3e6, 46e6, 5.1e6, 12.3 / 46, "12.3 / 46.0 MB, 5.1 MB/s, 7 s left"),
        (12.3e6, None, None, None, "12.3 MB"),
        (47e6, 46e6, None, 1.0, "47.0 / 46.0 MB"),
    ],
)
def test_a_download_says_how_much_and_how_fast(
    done: float, total: float | None, rate: float | None, share: float | None, figures: str
) -> None:
    """As far as it is known; nobody is told a time."""
    progress = Progress(step=Step.INSTALL, text="", done=done, total=total, rate=rate, unit="bytes")
    assert progress.share == (None if share is None else pytest.approx(share))
    assert render(progress.figures) == figures
