"""How far an installation is: its parts in order, the one at work with its figures, the share where it is known."""

from __future__ import annotations

import re

import pytest
from tables import each

from assistant.i18n import render
from assistant.model.report import Part, Progress, Step
from assistant.session.state import Phase, State, StepStatus, Task
from assistant.wizard.panels.install import Receipt, draw_working

# Detection and planning are done by then, and with them the resolution.
BEFORE = ["ok", "ok"]
PARTS = [part for part in Part if part is not Part.RESOLVE]


def signs(state: State) -> list[str]:
    """Read how far each step of the receipt is."""
    receipt = Receipt()
    receipt.follow(state)
    return re.findall(r"ptsa-phase-(\w+)", draw_working(state, receipt))


@each("at", PARTS)
def test_the_parts_are_ticked_off_in_order(at: Part) -> None:
    """What comes before the one at work is done, what comes after it waits, and it alone has figures."""
    progress = Progress(step=Step.INSTALL, text="", part=at, done=3, total=44, unit="packages")
    statuses = {Step.INSTALL: StepStatus(phase=Phase.RUNNING, progress=progress)}
    state, place = State(running=Task.INSTALL, statuses=statuses), PARTS.index(at)
    assert signs(state) == [*BEFORE, *["ok"] * place, "running", *["waiting"] * (len(PARTS) - place - 1)]
    assert draw_working(state, Receipt()).count('data-shows="figures"') <= 1


def test_an_installation_begins_with_its_download_and_no_other_task_has_parts() -> None:
    """Its packages were resolved before."""
    assert signs(State(running=Task.INSTALL))[:4] == [*BEFORE, "running", "waiting"]
    assert signs(State(running=Task.VERIFY)) == [*BEFORE, "ok", "running"]


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
