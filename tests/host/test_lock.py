"""A lock's killed holder is known by the boot and the process, whatever the machine calls itself meanwhile."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.host.lock import Holder, Lock, read_holder
from assistant.host.process import is_running
from assistant.model.record import replace, to_json

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="tests/windows has its own")]

HOLD = """
import subprocess, sys, time
from pathlib import Path
from assistant.host.lock import Lock
lock = Lock(Path(sys.argv[1]))
lock.take()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True,
                         pass_fds=(lock.fileno,))
lock.add_child(child.pid)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path: Path):
    """Return a lock whose holder was killed, and the child that holds it still."""
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True) as holder:
        child = int(holder.stdout.readline())
        holder.kill()
    yield path, child
    if is_running(child):
        os.kill(child, 9)


def rewrite(path: Path, where: str) -> None:
    """Let the lock's file name another place."""
    holder = read_holder(path)
    assert holder
    path.write_text(to_json(replace(holder, where=where)) + "\n")


def test_another_name_of_the_machine_is_the_same_machine(killed, monkeypatch):
    """A Mac gets another name from the network: what its killed holder left running is ended all the same."""
    path, _child = killed
    monkeypatch.setattr(platform, "node", lambda: "mac-17.dhcp.example.org")
    lock = Lock(path)
    assert lock.take() is None  # which it cannot be while the child lives
    lock.release()


def test_another_boot_or_machine_is_left_alone(killed):
    """A process number of elsewhere means another process here, on a machine of the same name, too."""
    path, child = killed
    rewrite(path, f"{platform.node()} 00000000-0000-0000-0000-000000000000 pid:[1]")
    holder = Lock(path).take()
    assert isinstance(holder, Holder)
    assert holder.children == (child,)
    assert is_running(child)
