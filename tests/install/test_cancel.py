"""Who cancels gets the target back at once; what was half made is deleted afterwards, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture

from assistant.host.process import CancelToken, alive, stream, uninterrupted
from assistant.install.transaction import Outcome, recover, transaction
from assistant.install.work_folder import WORK, Journal, entries, entry_of, make
from assistant.model.errors import Cancelled, WorkFailed

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks children and kills them; Windows has neither"),
    pytest.mark.full,
]

FILES = 500


def leave_half_made(target: Path, reason: BaseException) -> None:
    """Make a folder of many files in an installation that then ends for a reason."""
    with suppress(type(reason)), transaction(target, stands=False) as work:
        (work.layout.build / "lib").mkdir(parents=True)
        for number in range(FILES):
            (work.layout.build / "lib" / f"{number}.py").touch()
        raise reason


def test_nothing_is_deleted_while_the_user_waits(ground: Ground) -> None:
    """By the end of a cancelled installation its folder has gone by renames, however many files are in it."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\n"
        "from install.test_cancel import Cancelled, leave_half_made\n"
        "deleted = []\n"
        "def hear(event, arguments):\n"
        "    if event in {'os.remove', 'os.rmdir', 'shutil.rmtree'}: deleted.append(arguments[0])\n"
        "sys.addaudithook(hear)\n"
        "leave_half_made(Path(sys.argv[1]), Cancelled('enough'))\n"
        "print(len(deleted), Path(sys.argv[1]).parent.exists())"
    )
    command = [sys.executable, "-c", code, ground.new, Path(__file__).parents[1]]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said[1] == "False"
    assert int(said[0]) < FILES / 10
    while ground.debris():  # the deletion goes on by itself, and ends
        time.sleep(0.02)


def test_a_failure_is_cleared_before_it_is_told(ground: Ground) -> None:
    """After a failure the room on the disk is free again when the user reads of it."""
    leave_half_made(ground.new, WorkFailed("no"))
    assert ground.debris() == []
    assert not ground.new.parent.exists()


def test_a_deletion_that_never_began_is_done_at_the_next_start(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed deletion leaves is known by its pointer, out of the target's sight, and `recover` finishes it."""
    monkeypatch.setattr(sys, "executable", "/bin/true")  # ends at once, as if it was killed
    leave_half_made(ground.new, Cancelled("enough"))
    assert not ground.new.parent.exists()
    (entry,) = entries()
    assert len(list(Path(entry.read().work).rglob("*.py"))) == FILES
    leave_half_made(ground.new, Cancelled("again"))  # what is left of the first is no obstacle
    assert {one.outcome for one in recover()} == {Outcome.TAKEN_BACK}  # not that it is complete and stays
    assert ground.debris() == []
    assert list(entries()) == []


def test_a_removal_that_was_killed_is_finished_and_told_as_one(ground: Ground) -> None:
    """What is left of the removed environment goes; nobody hears that an installation is complete and stays."""
    token = "0123456789abcdef" * 2
    work = ground.new.parent.parent / f"{WORK}-{token}"
    entry_of(ground.new).write(Journal(kind="removed", target=str(ground.new), token=token, work=str(work)))
    make(work, token)
    (work / "env.gone").mkdir()
    assert [one.outcome for one in recover()] == [Outcome.REMOVED]
    assert ground.debris() == []


@pytest.mark.parametrize("kind", ["existing", "new"])
def test_a_cancelled_run_killed_on_its_way_back_is_recovered(ground: Ground, kind: str) -> None:
    """Killed at each of the last changes of files after a cancellation: the next start finds all as it was."""
    before = picture(ground.standing)
    nursery = Nursery(ground, ground.resolution())
    try:
        last = int(nursery.attempt(f"{kind} cancelled"))
        for operation in range(last - 11, last + 1):
            nursery.attempt(f"{kind} cancelled", operation=operation)
            recover()
            assert picture(ground.standing) == before, operation
            assert not ground.new.parent.exists(), operation
            assert ground.debris() == [], operation
    finally:
        nursery.close()


def test_ctrl_c_waits_for_the_end_of_what_must_not_be_cut() -> None:
    """A second Ctrl-C cannot stop the way back in its middle, and is heard after it."""
    done = []

    def way_back() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        way_back()
    assert done == ["all"]


def test_a_child_that_does_not_want_to_end_is_killed() -> None:
    """A stop does not depend on the child's good will."""
    code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True)"
    said, cancel = [], CancelToken()

    def hear(line: str) -> None:
        said.append(int(line))
        cancel.set()

    with pytest.raises(Cancelled):
        stream([sys.executable, "-c", f"{code}; time.sleep(600)"], hear, cancel=cancel)
    assert not alive(said[0])
