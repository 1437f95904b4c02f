"""An environment that this user may not change: it can be checked and used, and nothing is offered that changes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.environments import is_mendable
from assistant.session.remediation import all_fixes
from assistant.session.state import EnvironmentSummary, Installed, State, Survey
from assistant.wizard.panels.environments import draw_environments


def test_no_fix_is_offered_that_would_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands can still be read."""
    made = Environment(path=str(tmp_path), python=str(tmp_path / "bin" / "python"), kernel="torch-cpu-2.13.0")
    remedy = Remedy(text="Install it", commands=("python -m pip install numpy",))
    finding = Finding(key="torch-missing", severity=Severity.ERROR, text="It is missing.", remedies=(remedy,))
    state = State(raised=(finding,), installed=Installed(environment=made))
    assert all_fixes(state)["torch-missing#1"].offered
    monkeypatch.setattr("assistant.session.environments.is_writable", lambda _folder: False)
    assert not all_fixes(state)["torch-missing#1"].offered


def card_of(one: EnvironmentSummary) -> str:
    """Draw the card of an environment."""
    return str(draw_environments(Survey(environments=(one,))))


def test_its_row_offers_nothing_that_changes_it() -> None:
    """It can be checked, and a notebook opened."""
    wrong = Finding(key="requirements-unmet", severity=Severity.ERROR, text="x")
    known = EnvironmentSummary(
        path="/opt/pytorch", name="pytorch", torch="2.13.0", made=True, findings=(wrong,), kernels=("k",)
    )
    assert "remove:/opt/pytorch" in card_of(known)
    closed = replace(known, others=True)
    assert not is_mendable(closed)
    assert re.findall(r'data-press="(\w+):', card_of(closed)) == ["check", "open"]
    assert "another user looks after it" in card_of(closed)
