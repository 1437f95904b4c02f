"""Installations through the server: refused without consent, done with it, followed, cancelled, removed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from addons.agents.agent import Agent, User
from addons.agents.broken_environments import home
from loopback import LoopbackIndex, with_code
from torch_wheels import rewrite

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="what is left of a cancelled installation is looked for there"),
    pytest.mark.full,
]

FAKE = Path(__file__).parents[2] / "verify" / "faketorch" / "torch" / "__init__.py"
Connect = Callable[..., Agent]


class Shop:
    """An index with a torch that is made of NumPy, a home, and how a server is started there."""

    def __init__(self, index: LoopbackIndex, folder: Path, connect: Connect) -> None:
        self.index, self.folder, self._connect = index, folder, connect
        self.env = home(folder, index.url)
        self.target = folder / "made" / "for an agent"
        self.wish: dict[str, Any] = {"target": str(self.target), "backend": "cpu", "bundle": "minimal"}
        probe = connect(self.env, None, "--index-url", index.url)
        plan = probe.call("plan", backend="cpu", bundle="minimal")["choice"]
        torch = index.add("torch", f"{plan['torch']}+cpu", requires=("numpy",))
        with_code(torch, "torch", FAKE.read_text("utf-8").replace("2.9.9+fake", f"{plan['torch']}+cpu"))
        borrowed = str(Path(np.__file__).parents[1]).encode()
        for name, version in (("numpy", np.__version__), ("onnx", "1.19"), ("onnxruntime", "1.23")):
            own = {f"{name}.pth": borrowed}  # the modules are those of the tests' own environment
            bare = partial(lambda more, old: {**{n: c for n, c in old.items() if ".dist-info" in n}, **more}, own)
            rewrite(index.add(name, version), bare)
        for name, version in (("ipykernel", "7.0"), ("pip", "25.3")):
            index.add(name, version)

    def server(self, user: User | None = None) -> Agent:
        """Start a server that takes torch from the index."""
        return self._connect(self.env, user, "--index-url", self.index.url)


@pytest.fixture
def shop(loopback_index: LoopbackIndex, tmp_path: Path, connect: Connect) -> Shop:
    """Give a shop."""
    return Shop(loopback_index, tmp_path, connect)


def test_an_installation_needs_consent_and_is_followed(shop: Shop) -> None:
    """Without it nothing is there; with it the environment is verified, known to the list, and can be removed."""
    silent = shop.server()
    proposal = silent.call("propose_install", **shop.wish)
    assert not silent.failed, proposal
    assert {one["name"] for one in proposal["resolution"]["packages"]} >= {"torch", "numpy"}
    refused = silent.agreed(proposal)
    assert silent.failed
    assert refused["command"].startswith(f"assistant install --target '{shop.target}'")
    assert not shop.target.exists()
    user = User()
    agent = shop.server(user)
    shop.index.add("einops", "0.8.1")
    named = {"pins": [f"einops @ {shop.index.url}/einops/einops-0.8.1-py3-none-any.whl"]}
    assert agent.call("propose_install", **shop.wish, **named)["exit_code"] == 2  # no agent says where from
    made = agent.agreed(agent.call("propose_install", **shop.wish, pins=["einops"]))
    assert not agent.failed, made
    assert made["path"] == str(shop.target)
    assert f"Everything goes into {shop.target}" in user.asked[0]
    assert "einops 0.8.1" in user.asked[0]
    numbers = [number for number, _total, _text in agent.progress]
    assert numbers == sorted(set(numbers))
    assert agent.progress
    assert all(text for _number, _total, text in agent.progress)
    listed = {one["path"]: one for one in agent.call("list_environments")["environments"]}
    assert listed[str(shop.target)]["light"] == "good"
    removal = agent.call("propose_remove", remove=str(shop.target))
    assert removal["command"].startswith(f"assistant envs --remove '{shop.target}'")
    assert agent.agreed(removal) == {"removed": str(shop.target), "freed_bytes": None}
    assert not shop.target.exists()


def test_a_cancelled_installation_is_taken_back(shop: Shop) -> None:
    """The server goes on, nothing is left, and the same can be agreed to again; so it is when the client goes."""
    agent = shop.server(User())
    proposal = agent.call("propose_install", **shop.wish)
    shop.index.delay = 2.0
    shop.index.requests.clear()
    agent.cancelled(
        "carry_out", lambda: any(path.endswith(".whl") for path in shop.index.requests), change=proposal["change"]
    )
    shop.index.delay = 0.0
    assert agent.call("detect")["os"] == "linux"
    again = agent.call("propose_install", **shop.wish)
    for _ in range(60):  # a call that is cancelled is over for the client before all is taken back
        if not agent.failed:
            break
        time.sleep(1)
        again = agent.call("propose_install", **shop.wish)
    assert not agent.failed, again
    assert not shop.target.exists()
    assert agent.agreed(again)["path"] == str(shop.target)
