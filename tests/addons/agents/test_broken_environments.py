"""Broken environments are mended through the tools alone, by a client that follows what they answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agents.agent import Agent, User, solved, wrong
from agents.broken_environments import CASES, Broken, home
from loopback import LoopbackIndex

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="these environments are made on Linux"),
    pytest.mark.full,
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_environment_is_mended_through_the_tools(
    case: str, tmp_path: Path, loopback_index: LoopbackIndex, connect: Callable[..., Agent]
) -> None:
    """The program fails, what the tools answer is followed, the user agrees, and the program runs."""
    env, user = home(tmp_path, loopback_index.url), User()
    broken = Broken(loopback_index, tmp_path, env)
    CASES[case](broken)
    assert broken.run().returncode, "the program does not fail"
    agent = connect(env, user)
    done = solved(agent, str(broken.path), broken.run, broken.failed)
    print(case, done, user.asked)
    assert wrong(agent.call("check_environment", path=str(broken.path))) == []
    assert len(user.asked) == len(done) + 1 > 1  # first whether its Python may be run
