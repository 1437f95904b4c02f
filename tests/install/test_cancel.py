"""Who cancels gets everything back at once, and a kill on the way back is no worse than any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture
from install.test_damage import again, copied
from install.test_faults import runs
from install.test_hostile_state import versions

from assistant.host.lock import read_holder
from assistant.host.process import CancelToken, defer_signals, is_running, running
from assistant.install import journal
from assistant.install.contents import find_incomplete
from assistant.install.installation import prepare, recover
from assistant.install.journal import LOCK, delete_stale_folders
from assistant.model.errors import Cancelled

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks children and kills them; Windows has neither"),
    pytest.mark.full,
]


@pytest.mark.parametrize("kind", ["existing", "new", "foreign"])
def test_all_is_back_within_two_seconds(ground: Ground, kind: str) -> None:
    """A download that stalls does not hold it up; the sentence names the environment, nothing is left."""
    resolution, target = ground.resolution(), ground.build_foreign() if kind == "foreign" else ground.standing
    before = picture(target)
    ground.index.file_trouble["torch"] = "stall"
    threading.Timer(0.3, ground.cancel.set).start()
    begun = time.monotonic()
    with pytest.raises(Cancelled) as stopped:
        ground.make(resolution) if kind == "new" else ground.change(resolution, target=target)
    assert time.monotonic() - begun < 2
    assert str(ground.new if kind == "new" else target) in str(stopped.value.hint)
    assert picture(target) == before
    assert not ground.new.parent.exists()
    assert ground.debris() == []


NEVER_DELETES = "import time; time.sleep(600)"


@pytest.fixture(params=["the disk of the state", "another disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Give an empty folder on each of two disks; the second one is in memory."""
    if request.param == "another disk" and not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a file system
        pytest.skip("no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if request.param == "another disk" else tmp_path) as folder:  # noqa: S108
        yield Path(folder)


def test_nobody_waits_for_the_deletion(ground: Ground, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """While what was built is still being deleted all else is as before, and a new installation works."""
    ground.new, resolution = place / "new" / "环境", ground.resolution()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "DELETE", NEVER_DELETES)
        threading.Timer(1, ground.cancel.set).start()
        ground.index.file_trouble["torch"] = "stall"
        with pytest.raises(Cancelled):
            ground.make(resolution)
    assert not ground.new.parent.exists()
    ground.index.file_trouble.clear()
    ground.cancel = CancelToken()
    assert ground.make(resolution).kernel == "torch-cpu-9.0"
    delete_stale_folders()
    (part,) = journal.journals_folder().glob("*.part")  # as it is being deleted
    (program,) = read_holder(part / LOCK).children
    os.killpg(program, signal.SIGKILL)
    assert ground.debris() == []
    assert os.listdir(place) == ["new"]  # noqa: PTH208 - names


def test_the_next_start_ends_a_deletion_that_was_killed(ground: Ground, place: Path) -> None:
    """A program that hangs on it is ended, too."""
    folder = place / "one"
    (folder / "lib").mkdir(parents=True)
    code = (
        "import os, pathlib, sys; from assistant.install import journal; journal.DELETE = sys.argv[2]\n"
        "folder = pathlib.Path(sys.argv[1]); journal.delete_later(folder, folder.parent); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, folder, NEVER_DELETES], check=False)
    assert not folder.exists()
    (part,) = journal.journals_folder().glob("*.part")
    (program,) = read_holder(part / LOCK).children
    prepare(ground.plan, str(ground.new), ground.tools)
    assert ground.debris() == []
    assert os.listdir(place) == []  # noqa: PTH208 - names
    assert not runs(program)


@pytest.mark.parametrize("kind", ["existing", "new", "foreign"])
def test_a_cancelled_run_killed_on_its_way_back_is_recovered(ground: Ground, kind: str) -> None:
    """Killed at each of the last changes of files after a cancellation: the next start finds all as it was."""
    pristine, before = copied(ground), picture(ground.standing)
    nursery = Nursery(ground, ground.resolution())
    try:
        last = int(nursery.attempt(f"{kind} cancelled"))
        for operation in range(last - 11, last + 1):
            again(ground, pristine)
            nursery.attempt(f"{kind} cancelled", operation=operation)
            recover(ground.tools)
            assert picture(ground.standing) == before, operation
            assert versions(ground.foreign) == {"torch": "8.0"}, operation
            assert find_incomplete(ground.foreign) == {}, operation
            assert not ground.new.parent.exists(), operation
            assert ground.debris() == [], operation
    finally:
        nursery.close()


def test_ctrl_c_waits_for_the_end_of_what_must_not_be_cut() -> None:
    """A second Ctrl-C cannot stop the way back in its middle, and is heard after it."""
    done = []

    def way_back() -> None:
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        way_back()
    assert done == ["all"]


def test_a_child_that_does_not_want_to_end_is_killed() -> None:
    """A stop does not depend on the child's good will."""
    code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True)"
    cancel = CancelToken()
    with running([sys.executable, "-c", f"{code}; time.sleep(600)"], cancel=cancel) as child:
        lines = iter(child)
        next(lines)
        cancel.set()
        with pytest.raises(Cancelled):
            next(lines)
    assert not is_running(child.pid)
