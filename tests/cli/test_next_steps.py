"""What a finished installation tells people to type next."""

from __future__ import annotations

import pytest
from export.setups import ENVIRONMENT, PLAN, REPORT

from assistant.cli.draw import draw_next
from assistant.model.plan import Planning
from assistant.session.state import Installed, Planned, State, Verified

DONE = State(
    planned=Planned(planning=Planning(choice=PLAN, plans=(PLAN,))),
    installed=Installed(environment=ENVIRONMENT),
    verified=Verified(report=REPORT),
)


@pytest.mark.parametrize("offline", [False, True])
def test_no_command_that_needs_a_network_is_advised_without_one(
    capsys: pytest.CaptureFixture[str], *, offline: bool
) -> None:
    """`assistant lab` may have to fetch JupyterLab; the kernel is named all the same."""
    draw_next(DONE, offline=offline)
    told = capsys.readouterr().out
    assert "torch-cu126" in told
    assert ("assistant lab" in told) is not offline
