"""Broken environments are mended through the tools alone, by a client that follows what they answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from addons.agents.agent import Agent, User, wrong
from addons.agents.broken_environments import CASES, Broken, home
from loopback import LoopbackIndex

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="these environments are made on Linux"),
    pytest.mark.full,
]


# The change that is proposed, or, where none of packages mends it, the command of a remedy, which the user types.
TYPED = {"wrong_name": "uv pip install scikit-learn"}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_environment_is_mended_through_the_tools(
    case: str, tmp_path: Path, loopback_index: LoopbackIndex, connect: Callable[..., Agent]
) -> None:
    """The program fails, what the tools answer is followed, the user agrees, and the program runs."""
    env, user = home(tmp_path, loopback_index.url), User()
    broken = Broken(loopback_index, tmp_path, env)
    CASES[case](broken)
    failed = broken.run()
    assert failed.returncode, "the program does not fail"
    agent = connect(env, user)
    looked = agent.trusted("check_environment", check=str(broken.path))
    assert bool(wrong(looked)) is (case not in TYPED)
    mend = agent.call("propose_mend", mend=str(broken.path))
    assert agent.failed is (case in TYPED)
    if agent.failed:
        remedies = agent.call("diagnose", log=broken.failed or failed.stdout)["diagnoses"][0]["remedies"]
        assert remedies[0]["commands"] == [TYPED[case]]
        broken.install(TYPED[case].split()[-1])
    else:
        agent.agreed(mend)
    assert broken.run().returncode == 0
    assert wrong(agent.call("check_environment", check=str(broken.path))) == []
    assert len(user.asked) == 2 - (case in TYPED)  # first whether its Python may be run
