"""What is typed at a real terminal before a question is asked answers nothing."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

QUESTION = r"Install now\? \[Y/n\]: "


class Seat:
    """Somebody at a terminal on which a command runs: sees the screen, and types."""

    def __init__(self, *words: str, env: dict[str, str]) -> None:
        self.hand, theirs = pty.openpty()
        self.screen = ""
        command = [sys.executable, "-m", "assistant", *words]
        self.child = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, process_group=0)
        os.close(theirs)

    def sees(self, pattern: str, seconds: float = 120) -> bool:
        """Wait until the screen shows something; return whether it did in time."""
        deadline = time.monotonic() + seconds
        while not (seen := re.search(pattern, self.screen)) and time.monotonic() < deadline:
            if select.select([self.hand], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self.hand, 1 << 16).decode("utf-8", "replace")
                except OSError:  # how Linux says that the last writer has gone
                    break
        return seen is not None

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self.hand, keys.encode())


@pytest.fixture
def sit_down(tmp_path: Path) -> Iterator[Callable[..., Seat]]:
    """Let somebody type a command in a home of its own."""
    names = ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")
    home = {name: str(tmp_path / name) for name in names} | {"TERM": "xterm-256color", "COLUMNS": "200"}
    taken: list[Seat] = []

    def type_command(*words: str) -> Seat:
        taken.append(Seat(*words, env={**os.environ, **home, "LANGUAGE": "en"}))
        return taken[-1]

    yield type_command
    for seat in taken:
        if seat.child.poll() is None:
            seat.child.kill()
        seat.child.wait()
        os.close(seat.hand)


def test_nothing_is_agreed_to_before_it_is_shown(sit_down: Callable[..., Seat], tmp_path: Path) -> None:
    """Enter, y and n while the packages are resolved do nothing; the question waits, and says what it takes."""
    seat = sit_down("install", "--backend", "cpu", "--pin", "torch==2.13.0", "--target", str(tmp_path / "env"))
    assert seat.sees("\\d GB of disk"), seat.screen  # the plan is shown, and its packages are being resolved
    seat.types("\ny\nn\n")
    assert seat.sees(QUESTION), seat.screen
    assert not seat.sees("Nothing was installed|Downloading|Installing", 2), seat.screen
    seat.types("maybe\n")
    assert seat.sees(f"Answer y for yes or n for no; Enter alone means yes.\\s+{QUESTION}"), seat.screen
    seat.types("n\n")
    assert seat.sees("Nothing was installed"), seat.screen
    assert seat.child.wait(20) == 130
    assert not (tmp_path / "env").exists()


def test_one_of_the_five_tasks_is_chosen_by_its_number(sit_down: Callable[..., Seat]) -> None:
    """Any other answer is asked for again, and Enter alone leaves."""
    seat = sit_down()
    assert seat.sees(r"Number \[1–5\]: "), seat.screen
    seat.types("9\n")
    assert seat.sees(r"Type a number from 1 to 5; Enter alone leaves\.\s+Number"), seat.screen
    seat.types("3\n")
    assert seat.sees(r"problems? found|No problems found"), seat.screen
    assert seat.child.wait(20) == 0
    left = sit_down()
    assert left.sees(r"Number \[1–5\]: ")
    left.types("\n")
    assert left.child.wait(20) == 0
