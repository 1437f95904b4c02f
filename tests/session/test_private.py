"""What the assistant keeps is for its user alone, and whatever lies in its place stops nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from tables import sampled

from assistant.catalog.tables import refreshed_path, user_tables
from assistant.cli.terminal import write_file
from assistant.host.files import STATE_LIMIT
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import to_json
from assistant.session.state import Choices, State
from assistant.session.store import Saved, Store

pytestmark = pytest.mark.process

posix = pytest.mark.skipif(os.name == "nt", reason="Windows keeps folders of a user to that user")
NAME = "pytorch-setup-assistant"


def mode(path: Path) -> int:
    """Give the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_mask():
    """Let new files be readable by all, as most systems do."""
    old = os.umask(0o022)
    yield
    os.umask(old)


@posix
@pytest.mark.usefixtures("open_mask")
def test_others_can_read_nothing(tmp_path: Path):
    """State, log and what broke, in folders that others cannot enter."""
    store = Store(tmp_path / "state")
    store.save(State(choices=Choices(target="/x")))
    store.write_log("line")
    fault = store.keep_fault("Traceback")
    assert {mode(path) for path in (store.path, store.log, fault)} == {0o600}
    assert {mode(path) for path in (store.folder, store.log.parent)} == {0o700}


@posix
@pytest.mark.usefixtures("open_mask")
def test_what_earlier_versions_left_open_is_closed(tmp_path: Path):
    """Folders of 0755 and files of 0644 are narrowed when they are used again."""
    store = Store(tmp_path / "state")
    old = store.folder / "logs" / "setup-20200101.log"
    old.parent.mkdir(parents=True)
    for path in (old, store.path, store.folder / "fault.log"):
        path.write_text("old")
    store.save(State(choices=Choices(target="/x")))
    store.write_log("line")
    store.keep_fault("Traceback")
    assert {mode(path) for path in (store.path, store.log, old, store.folder / "fault.log")} == {0o600}
    assert {mode(store.folder), mode(old.parent)} == {0o700}
    assert old.read_text() == "old"


def test_drafts_of_killed_processes_are_swept(tmp_path: Path):
    """Half a state of a process that is gone does not stay for ever."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    part = tmp_path / f".session.json.{gone.pid}-0123abcd.part"
    part.write_text("half")
    Store(tmp_path).save(State(choices=Choices(target="/x")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["session.json"]


def installed_in(path: str) -> bytes:
    """Write a setup whose environment has a path, as JSON spells it."""
    return b'{"schema": 3, "state": {"installed": {"environment": {"path": "%b", "python": "%b"}}}}' % (
        (path.encode(),) * 2
    )


GOOD = to_json(Saved(state=State(choices=Choices(target="/x"))))
BODIES = {
    "empty": b"",
    "a brace": b"{",
    "null": b"null",
    "a list": b"[]",
    "a number": b"1e999",
    "zeros": bytes(4096),
    "UTF-16": GOOD.encode("utf-16"),
    "bad UTF-8": b'{"schema": 3, "version": "\xff"}',
    "half": GOOD[: len(GOOD) // 2].encode(),
    "twice": (GOOD + GOOD).encode(),
    "another schema": b'{"schema": 9}',
    "schema 1": b'{"schema": 1}',
    "unknown key": b'{"schema": 3, "surprise": true}',
    "wrong type": b'{"schema": 3, "state": {"choices": {"target": 1}}}',
    "deep": b'{"schema": 3, "state": ' + b"[" * 10**5,
    "a great number": b'{"schema": 3, "process": 1' + b"0" * 400 + b"}",
    "NUL in a path": installed_in("\\u0000"),
    "half a character": installed_in("\\ud800"),
    "a plan far away": b'{"schema": 3, "state": {"choices": {"plan": -7}}}',
}


def huge(path: Path) -> None:
    """Make a file that is larger than any of ours, and takes no room."""
    with path.open("wb") as file:
        file.truncate(STATE_LIMIT + 1)


PLANTED: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "huge": huge,
} | {name: (lambda path, body=body: path.write_bytes(body)) for name, body in BODIES.items()}
ROWS = [pytest.param(plant, id=name) for name, plant in PLANTED.items()]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("plant", ROWS)
def test_whatever_lies_there_is_read_or_passed_over(tmp_path: Path, plant: Callable[[Path], object]):
    """Reading ends, tells that something was there, and the next state is saved over all but a folder."""
    store = Store(tmp_path / "state")
    store.folder.mkdir()
    plant(store.path)
    saved = store.read()
    assert saved is not None
    assert saved.at
    assert not saved.in_use
    store.save(State(choices=Choices(target="/y")))
    assert store.path.is_dir() or store.load() == State(choices=Choices(target="/y"))


COMMANDS = (
    ["verify"],
    ["export", "--to", "out"],
    ["doctor", "--json"],
    ["envs", "--json"],
)


@posix
@pytest.mark.timeout(90)
@pytest.mark.parametrize("plant", sampled(ROWS, 6))
def test_every_command_ends_in_a_sentence(tmp_path: Path, plant: Callable[[Path], object]):
    """No command that reads the last setup hangs or breaks; the ones that need it say how to make one."""
    (tmp_path / NAME).mkdir()
    plant(tmp_path / NAME / "session.json")
    for words in COMMANDS:
        done = forked.run(*words, env=forked.at_home(tmp_path), cwd=tmp_path)
        assert done.returncode in {0, 1, 2}
        said = done.stdout + done.stderr
        assert "itself failed" not in said
        assert "Traceback" not in said


@pytest.mark.timeout(20)
@posix
@pytest.mark.parametrize("plant", [PLANTED[name] for name in ("pipe", "folder", "link", "loop", "huge", "zeros")])
def test_whatever_lies_in_place_of_refreshed_tables_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], object]
):
    """Plans rest on the shipped tables then, and a sentence says so."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    refreshed_path().parent.mkdir(parents=True)
    plant(refreshed_path())
    user_tables.cache_clear()
    assert "are not used" in str(user_tables().remark)
    user_tables.cache_clear()


@posix
def test_a_named_file_is_written_whole_and_a_pipe_straight(tmp_path: Path):
    """A plain file keeps that others cannot read it; a pipe is written to, and through a link to a file nothing is."""
    plain, link, pipe = tmp_path / "plain", tmp_path / "link", tmp_path / "pipe"
    plain.write_text("old")
    plain.chmod(0o600)
    write_file(str(plain), "new")
    assert (plain.read_text(), mode(plain)) == ("new", 0o600)
    link.symlink_to(plain)
    with pytest.raises(BadInput, match="is a link to"):
        write_file(str(link), "through")
    assert plain.read_text() == "new"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        write_file(str(pipe), "streamed")
        assert reader.communicate()[0] == "streamed"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(WorkFailed):
        write_file(str(tmp_path), "a folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "plain"]


@posix
def test_a_recording_can_go_to_standard_output(tmp_path: Path):
    """`/dev/stdout` is a link: neither it nor the file that it may lead to is replaced by another."""
    command = [sys.executable, "-m", "assistant", "detect", "--replay", "linux-ubuntu2404-rtx4090", "--json"]
    command += ["--record", "/dev/stdout"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert '"said"' in piped
    with (tmp_path / "out").open("w") as file:
        subprocess.run(command, stdout=file, check=True, cwd=tmp_path)
        assert os.fstat(file.fileno()).st_ino == (tmp_path / "out").stat().st_ino
    assert Path("/dev/stdout").is_symlink()
