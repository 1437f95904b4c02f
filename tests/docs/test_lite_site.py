"""What the demo in the browser is made of, looked at without a browser; tests/browser/test_lite.py opens it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from assistant.host.live import LiveHost
from assistant.session.actions import Simulate
from assistant.session.runner import LoopRunner
from assistant.session.session import Session
from assistant.session.state import Task

LITE = Path(__file__).parents[2] / "docs" / "lite"
LOADED = """
import json, sys
from assistant.wizard.gallery import open_gallery
gallery = open_gallery("linux-arch-rx9070xt")
gallery.press("open")
from assistant.session.kits import package_for
exhibit = next(one for one in gallery._all if one.planning.choice)
package_for(exhibit.machine, exhibit.planning.choice, "a PC")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def named(lines):
    """Give the names of packages that lines begin with."""
    return {canonicalize_name(found[0]) for line in lines if (found := re.match(r"[\w.-]+", line))}


@pytest.mark.process
def test_everything_that_the_demo_loads_is_in_its_list(tmp_path):
    """Those of the assistant's packages that the gallery and its wizard import are the ones that the site brings."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, check=True)
    owners = packages_distributions()
    loaded = {canonicalize_name(name) for module in json.loads(done.stdout) for name in owners.get(module, ())}
    listed = named((LITE / "requirements.txt").read_text("utf-8").splitlines())
    own = named(requires("torch-setup-assistant"))
    assert own & loaded == own & listed


def test_a_session_without_threads_returns_first_and_then_works():
    """In an event loop a task begins after its start has returned, and the recorded machine gets its plan."""

    async def walk() -> Session:
        session = Session(LiveHost(), LoopRunner())
        session.dispatch(Simulate(machine="linux-arch-rx6700xt-directml"))
        for task in (Task.DETECT, Task.PLAN):
            session.begin(task)
            assert session.state.running is task
            await asyncio.sleep(0)
            assert session.state.running is None
        return session

    with ThreadPoolExecutor(1) as pool:  # the browser's tests may have a loop of their own running here
        plan = pool.submit(asyncio.run, walk()).result().state.plan
    assert plan.env == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
