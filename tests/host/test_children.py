"""Children write UTF-8 whatever the locale is; programs that the user sees keep the user's own encoding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from assistant.host.live import LiveHost
from assistant.host.lock import Lock
from assistant.host.process import is_running, running

pytestmark = pytest.mark.process

NAMED = "C:\\用户\\张三\\wheels"
SAY = f"print({NAMED!r})"


@pytest.fixture(autouse=True)
def _chinese_code_page(monkeypatch):
    """Let every Python write GBK, as on a Chinese Windows."""
    monkeypatch.setenv("PYTHONIOENCODING", "gbk")


def test_a_child_is_read_as_it_writes():
    """One that is streamed and one that detection asks, such as `pip config list`."""
    with running([sys.executable, "-c", SAY]) as child:
        assert list(child) == [NAMED]
    assert child.returncode == 0
    assert LiveHost().run(sys.executable, "-c", SAY).text.strip() == NAMED


def test_a_name_that_is_no_text_ends_no_child():
    """A file's name of undecodable bytes is written with escapes."""
    with running([sys.executable, "-c", r"print('a\udc80b')"]) as child:
        assert list(child) == [r"a\udc80b"]
    assert child.returncode == 0


def test_pip_reads_its_own_file():
    """The locale stays as it is: `pip config set` writes pip.ini in the locale's encoding."""
    code = "import sys; print(sys.flags.utf8_mode, end=' '); import os; print(os.environ.get('PYTHONUTF8'))"
    with running([sys.executable, "-c", code]) as child:
        assert list(child) == [f"{sys.flags.utf8_mode} {os.environ.get('PYTHONUTF8')}"]


def test_a_child_that_prints_before_it_reads_gets_its_input():
    """Neither waits for the other, though both texts are longer than a pipe holds."""
    text = "line\n" * 200_000
    code = "import sys; print('\\n'.join(map(str, range(50_000)))); print(len(sys.stdin.read()))"
    with running([sys.executable, "-c", code], stdin=text, limit=60) as child:
        lines = list(child)
    assert child.returncode == 0
    assert len(lines) == 50_001
    assert lines[-1] == str(len(text))


def test_a_child_that_reads_nothing_keeps_to_its_time():
    """Its input waits in a full pipe meanwhile."""
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(TimeoutError), running(words, stdin="line\n" * 200_000, limit=1) as child:
        list(child)


def test_a_child_that_cannot_be_recorded_ends(monkeypatch, tmp_path):
    """What fails between its start and the first line leaves no program behind."""
    started: list[int] = []

    def refuse(pid: int) -> None:
        started.append(pid)
        raise MemoryError

    lock = Lock(tmp_path / "lock")
    assert lock.take() is None
    monkeypatch.setattr(lock, "add_child", refuse)
    with pytest.raises(MemoryError), running([sys.executable, "-c", "import time; time.sleep(600)"], lock=lock):
        pass
    lock.release()
    assert not is_running(started[0])


def test_what_the_user_sees_keeps_the_users_encoding():
    """The program that this process becomes writes for whoever reads the terminal or the pipe."""
    script = f"""import sys
from assistant.host.process import replace_process
replace_process([sys.executable, "-c", {SAY!r}])"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode("gbk").strip() == NAMED
