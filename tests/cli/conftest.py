"""A home in which commands run, and an index for those that ask what this machine's CPU plan needs."""

from __future__ import annotations

from pathlib import Path

import forked
import pytest
from loopback import LoopbackIndex

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.live import LiveHost
from assistant.model.plan import Backend, Plan, Request
from assistant.plan import make_plans


@pytest.fixture
def run(tmp_path: Path) -> forked.Run:
    """Give a function that runs the command in a home of its own, with the variables that are named."""

    def runner(*words: str | Path, input: str = "", typed: str = "", **variables: str):  # noqa: A002 - as forked.run
        env = forked.at_home(tmp_path / "home", **variables)
        return forked.run(*words, env=env, cwd=tmp_path, input=input, typed=typed)

    return runner


@pytest.fixture(scope="session")
def plan() -> Plan:
    """Give the CPU plan of this machine."""
    found = make_plans(detect(LiveHost()).machine, load_catalog(), Request(backend=Backend.CPU)).choice
    assert found
    return found


@pytest.fixture
def index(loopback_index: LoopbackIndex, plan: Plan) -> LoopbackIndex:
    """Give an index with a wheel of all that this machine's CPU plan asks for."""
    loopback_index.add("torch", f"{plan.torch}+cpu")
    for name in ("numpy", "onnx", "onnxruntime", "ipykernel"):
        loopback_index.add(name, "1.0")
    return loopback_index
