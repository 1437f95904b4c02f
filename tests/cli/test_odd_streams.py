"""Streams as cron, full disks and `| head` leave them: one sentence or nothing, and never a fault of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import forked
import pytest
from loopback import LoopbackIndex
from refused import refused

from assistant.cli import commands as cli
from assistant.cli.setup import Bar, with_own_python
from assistant.host.live import LiveHost
from assistant.host.process import REQUESTS_TO_END
from assistant.model.plan import Request
from assistant.model.report import Progress, Step

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="shells of POSIX")]
PLAN = "plan --offline --replay linux-arch-rx6700xt-directml"


def sh(line: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which `assistant` is this one, for a user whose pip knows one index."""
    command = f'assistant() {{ "{sys.executable}" -m assistant "$@"; }}\n{line}'
    env = forked.at_home(home, **variables)
    return subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("options", ["", " --json"])
def test_an_answer_that_cannot_be_written_is_one_sentence(tmp_path: Path, options: str) -> None:
    """Nothing is called a fault of the assistant's."""
    refused(sh(f"assistant {PLAN}{options} >/dev/full", tmp_path), 1, "could not be written", "No space left")


def test_whoever_reads_only_the_beginning_sees_no_complaint(tmp_path: Path) -> None:
    """The rest is dropped."""
    done = sh(f"assistant {PLAN} --why | head -1", tmp_path)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_report_is_not_written_through_a_link(tmp_path: Path) -> None:
    """A stranger's folder may lead it into one's own settings; the terminal is a link, too, and is written to."""
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    (tmp_path / "report.md").symlink_to(tmp_path / "mine")
    line = "echo 'No module named torch' | assistant diagnose - --replay windows11-rtx3060 --report {}"
    done = sh(line.format(tmp_path / "report.md"), tmp_path)
    assert (done.returncode, "is a link to" in done.stderr) == (2, True)
    assert (tmp_path / "mine").read_text("utf-8") == "mine"
    assert "### " in sh(line.format("/dev/stdout"), tmp_path).stdout


def test_without_standard_input_nobody_is_asked(index: LoopbackIndex, tmp_path: Path) -> None:
    """As under cron: the command ends in its own sentence."""
    done = sh(f'assistant install --backend cpu --target "{tmp_path}/new" <&-', tmp_path, index=index.url)
    refused(done, 130, "--yes")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [("install", "--yes"), ("setup", "--yes"), ("install", "--dry-run")])
def test_an_empty_target_is_no_wish_for_the_default(command: tuple[str, ...]) -> None:
    """It is a variable that was not set."""
    refused(forked.run(*command, "--offline", "--target", ""), 2, "--target is empty")


def test_new_is_no_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`setup --target new` looks into no folder called new, which may be a stranger's."""
    (tmp_path / "new" / "bin").mkdir(parents=True)
    (tmp_path / "new" / "pyvenv.cfg").write_text("home = /usr/bin")
    python = tmp_path / "new" / "bin" / "python"
    python.write_text("#!/bin/sh\ntouch ran")
    python.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert with_own_python(Request(), "new", LiveHost()) == Request()
    assert not (tmp_path / "ran").exists()


def test_a_signal_after_the_end_changes_nothing() -> None:
    """While Python tidies up, `kill` and Ctrl-C find a command that has said how it ended."""
    ends = "import atexit, signal, assistant.cli.commands as cli; cli.run = lambda words: 3; "
    ends += "atexit.register(signal.raise_signal, {})"
    for number in REQUESTS_TO_END:
        done = subprocess.run(
            [sys.executable, "-c", f"{ends.format(int(number))}; cli.main()"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (3, ""), number


def test_no_progress_is_drawn_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that keeps the error stream, as under cron, holds sentences alone."""
    bar = Bar(hidden=False)
    with bar:
        bar.show(Progress(step=Step.INSTALL, text="Resolving the packages"))
    assert capsys.readouterr().err == ""


def test_a_fault_of_ours_is_one_sentence_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The traceback is in the file that the sentence names."""

    def broken(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cli.cli, "make_context", broken)
    assert cli.run([]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "itself failed: RuntimeError: out of order." in line
    (kept,) = tmp_path.rglob("fault.log")
    assert str(kept) in line
    assert "Traceback" in kept.read_text(encoding="utf-8")
