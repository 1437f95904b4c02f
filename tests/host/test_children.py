"""Children write UTF-8 whatever the locale is; programs that the user sees keep the user's own encoding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from assistant.host.live import LiveHost
from assistant.host.process import stream

pytestmark = pytest.mark.process

NAMED = "C:\\用户\\张三\\wheels"
SAY = f"print({NAMED!r})"


@pytest.fixture(autouse=True)
def _chinese_code_page(monkeypatch):
    """Let every Python write GBK, as on a Chinese Windows."""
    monkeypatch.setenv("PYTHONIOENCODING", "gbk")


def test_a_child_is_read_as_it_writes():
    """One that is streamed and one that detection asks, such as `pip config list`."""
    lines: list[str] = []
    assert stream([sys.executable, "-c", SAY], lines.append) == 0
    assert lines == [NAMED]
    assert LiveHost().run(sys.executable, "-c", SAY).text.strip() == NAMED


def test_a_name_that_is_no_text_ends_no_child():
    """A file's name of undecodable bytes is written with escapes."""
    lines: list[str] = []
    assert stream([sys.executable, "-c", r"print('a\udc80b')"], lines.append) == 0
    assert lines == [r"a\udc80b"]


def test_pip_reads_its_own_file():
    """The locale stays as it is: `pip config set` writes pip.ini in the locale's encoding."""
    code = "import sys; print(sys.flags.utf8_mode, end=' '); import os; print(os.environ.get('PYTHONUTF8'))"
    lines: list[str] = []
    stream([sys.executable, "-c", code], lines.append)
    assert lines == [f"{sys.flags.utf8_mode} {os.environ.get('PYTHONUTF8')}"]


def test_what_the_user_sees_keeps_the_users_encoding():
    """The program that this process becomes writes for whoever reads the terminal or the pipe."""
    script = f"""import sys
from assistant.host.process import replace_process
replace_process([sys.executable, "-c", {SAY!r}])"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode("gbk").strip() == NAMED
