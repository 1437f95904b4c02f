"""Planted first, run then: whatever lies in a folder, a cache or the state, nothing of the user's is touched.

A fault is survived when everything that was the user's is where it was (or where the output says), nothing of an
installation's is left, and the end is one clear sentence with the right exit code.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture
from tables import sampled

from assistant import cli
from assistant.host.folders import user_state
from assistant.host.live import LiveHost
from assistant.install import work_folder
from assistant.install.inspect_env import look_at
from assistant.install.kernel import KernelNote, kernel_folder
from assistant.install.swap import Change
from assistant.install.transaction import Outcome, recover
from assistant.install.wheels import contents, incomplete, places
from assistant.install.work_folder import WORK, Journal, entry_of
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.event import LogLine
from assistant.model.record import replace, to_json

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks, links and pipes; Windows has none of the three"),
]

TOKEN = "0123456789abcdef" * 2


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Give a function that runs the command line in this process: exit code, what it said, what it complained of."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assistant", *map(str, arguments)])
        capsys.readouterr()
        code = cli._run()
        out, complaint = capsys.readouterr()
        assert "Traceback" not in out + complaint
        assert "itself failed" not in complaint
        return code, out, complaint

    return run


@pytest.fixture
def home(ground: Ground) -> Path:
    """Give a folder of the user's with work of a year in it, and links in both directions."""
    folder = ground.folder / "home"
    (folder / "thesis" / "repository" / "src").mkdir(parents=True)
    (folder / "thesis" / "chapter.tex").write_text("a year of work")
    (folder / "thesis" / "repository" / "src" / "main.py").write_text("code")
    (folder / ".bashrc").write_text("export MINE=1")
    (folder / "important").mkdir()
    (folder / "important" / "keep.txt").write_text("precious")
    return folder


def old_journal(**content: object) -> Callable[[Path], None]:
    """Plant a work folder whose journal, as the first edition wrote it, orders a change."""

    def plant(folder: Path) -> None:
        work = folder / WORK
        (work / "aside").mkdir(parents=True)
        (work / "staged").mkdir()
        (work / "journal.json").write_text(json.dumps(content))
        (work / "token").write_text(TOKEN)

    return plant


def planted_link(goal: str) -> Callable[[Path], None]:
    """Plant a work folder that is a link."""
    return lambda folder: (folder / WORK).symlink_to(goal)


def planted_pipe(folder: Path) -> None:
    """Plant a pipe of the work folder's name."""
    os.mkfifo(folder / WORK)


def planted_file(folder: Path) -> None:
    """Plant a file of the work folder's name."""
    (folder / WORK).write_text("{}")


def planted_socket(folder: Path) -> None:
    """Plant a socket of the work folder's name."""
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as opened:
        opened.bind(WORK)


PLANTS = {
    "kind new": old_journal(kind="new"),
    "a kernel that is a path": old_journal(kind="existing", kernel="../../../important"),
    "a change that leads out": old_journal(kind="existing", change={"goes": ["../../.bashrc"], "comes": ["../x"]}),
    "an absolute change": old_journal(kind="existing", change={"goes": ["/etc/passwd"]}),
    "the words of this edition": old_journal(schema=2, kind="over", target="/", token=TOKEN, work="/"),
    "nonsense": old_journal(nonsense=True),
    "a link to what is above": planted_link(".."),
    "a link to itself": planted_link(WORK),
    "a link to nothing": planted_link("nowhere"),
    "a link to the user's home": planted_link("../.."),
    "a link to the root": planted_link("/"),
    "a pipe": planted_pipe,
    "a file": planted_file,
    "a socket": planted_socket,
}
RUNS = {
    "recover there": ("recover", "--target"),
    "give up there": ("recover", "--give-up", "--target"),
    "recover all": ("recover",),
    "dry run": ("install", "--backend", "cpu", "--dry-run", "--offline", "--target"),
    "install": ("install", "--backend", "cpu", "--yes", "--offline", "--target"),
}


@pytest.mark.parametrize("plant", sampled(PLANTS, 6))
def test_a_planted_work_folder_is_named_and_left_alone(
    home: Path, command: Callable[..., tuple[int, str, str]], plant: str
) -> None:
    """Whatever a cloned or unpacked folder holds, no command deletes, moves or writes a thing because of it."""
    target = home / "thesis" / "repository"
    PLANTS[plant](target)
    before = picture(home)
    for name, words in RUNS.items():
        code, said, complaint = command(*words, *([target] if words[-1] == "--target" else []))
        assert picture(home) == before, name
        assert code == {"recover all": 0, "give up there": 0}.get(name, code), name
        assert code in {1, 2} or name in {"recover all", "give up there"}, (name, said)
        if "recover there" in name:
            assert str(target / WORK) in complaint


@pytest.mark.parametrize("plant", sampled(PLANTS, 6))
def test_an_environment_with_a_planted_work_folder_is_not_changed(ground: Ground, plant: str) -> None:
    """The installation names the folder and ends before anything is fetched."""
    resolution = ground.resolution()
    PLANTS[plant](ground.standing)
    before = picture(ground.folder / "standing one")
    shutil.rmtree(ground.folder / "cache", ignore_errors=True)
    with pytest.raises(BadInput, match="is left alone"):
        ground.change(resolution)
    assert picture(ground.standing) == before
    assert not list(ground.folder.glob("cache/**/*.whl"))


def journal(target: Path, **changes: object) -> Journal:
    """Write a journal of ours about a target, with a work folder that carries its token."""
    work = target / WORK
    work.mkdir(parents=True, exist_ok=True)
    (work / "token").write_text(TOKEN)
    made = Journal(kind="existing", target=str(target), token=TOKEN, work=str(work))
    made = replace(made, **changes)
    entry_of(target).write(made)
    return made


CROOKED = {
    "a work folder elsewhere": {"work": "/"},
    "the user's home as work folder": {"work": "{home}"},
    "a work folder with dots": {"work": "{target}/../thesis"},
    "a relative work folder": {"work": WORK},
    "a way out elsewhere": {"gone": "{home}/important"},
    "a place elsewhere": {"kind": "new", "place": "{home}/important"},
    "a token that is none": {"token": ""},
    "a change above": {"change": Change(goes=("../../.bashrc",))},
    "a change in the middle": {"change": Change(comes=("lib/../../x",))},
    "an absolute change": {"change": Change(comes=("/etc/passwd",))},
    "an empty name": {"change": Change(goes=("",))},
    "a NUL": {"change": Change(goes=("a\0b",))},
    "a kernel above": {"kernel": KernelNote(name="../../important", python="/x")},
    "an absolute kernel": {"kernel": KernelNote(name="{home}/important", python="/x")},
    "a kernel called ..": {"kernel": KernelNote(name="..", python="/x")},
    "an empty kernel": {"kernel": KernelNote(name="", python="/x")},
    "a long kernel": {"kernel": KernelNote(name="k" * 300, python="/x")},
}


@pytest.mark.parametrize("name", sampled(CROOKED, 6))
def test_a_journal_that_this_program_never_wrote_is_not_obeyed(
    home: Path, command: Callable[..., tuple[int, str, str]], name: str
) -> None:
    """Even in the private folder: every path is checked, the refusal says how to go on, giving up deletes nothing."""
    target = home / "thesis" / "repository"

    def filled(value: object) -> object:
        text = to_json(value).replace("{home}", str(home)).replace("{target}", str(target))
        return json.loads(text) if isinstance(value, str) else value

    changes = {key: filled(value) for key, value in CROOKED[name].items()}
    if isinstance(changes.get("kernel"), KernelNote):
        kernel = changes["kernel"]
        changes["kernel"] = replace(kernel, name=kernel.name.replace("{home}", str(home)))
    journal(target, **changes)
    before = picture(home)
    code, _said, complaint = command("recover")
    assert (code, picture(home)) == (1, before)
    assert str(target) in complaint
    assert "--give-up" in complaint
    code, said, _complaint = command("recover", "--give-up")
    assert (code, picture(home)) == (0, before)
    assert str(target) in said
    assert command("recover")[:2] == (0, "There is nothing to roll back.\n")


BODIES: dict[str, bytes | str] = {
    "empty": b"",
    "garbage": b"garbage",
    "null": b"null",
    "a list": b"[]",
    "a number": b"1e999",
    "cut": b'{"schema": 2, "kind": "existing", "tar',
    "deep": b"[" * 100_000,
    "not text": b"\xff\xfe\x00\x01",
    "NULs": bytes(4096),
    "the first edition's": b'{"kind": "existing"}',
    "of another version": b'{"schema": 99}',
    "an unknown key": b'{"schema": 2, "surprise": 1}',
    "a wrong type": b'{"schema": 2, "kind": 5}',
    "huge": b" " * (65 << 20),
    "a folder": "folder",
    "a pipe": "pipe",
    "a link to a device": "/dev/zero",
    "a link to itself": "loop",
    "a link to another file": "other",
}


def put(path: Path, body: bytes | str) -> None:
    """Let a file be what it should never be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if isinstance(body, bytes):
        path.write_bytes(body)
    elif body == "folder":
        path.mkdir()
        (path / "a user's").write_text("whatever")
    elif body == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path.name, "other": __file__}.get(body, body))


@pytest.mark.parametrize("file", sampled(["journal", "lock", "manifest", "where"], 2))
@pytest.mark.parametrize("body", sampled(BODIES, 5))
def test_one_corrupt_file_of_the_state_stops_nobody_else(
    home: Path, command: Callable[..., tuple[int, str, str]], file: str, body: str
) -> None:
    """The other targets are taken back, this one is named with a way on, and giving up ends it."""
    corrupt, good = home / "thesis" / "repository", home / "important"
    made = journal(corrupt, change=Change(comes=("never-came",)))
    entry_of(corrupt).write_manifest({})
    journal(good)
    put(getattr(entry_of(corrupt), file), BODIES[body])
    work = picture(home / "thesis")
    code, said, complaint = command("recover")
    assert f"{good} has been restored." in said
    assert not (good / WORK).exists()
    if code:
        assert (code, complaint.count("\n")) == (1, 1), complaint
        assert picture(home / "thesis") == work
        code, said, _complaint = command("recover", "--give-up")
        assert code == 0
        assert "is forgotten" in said
    assert command("recover")[0] == 0
    assert (corrupt / "src" / "main.py").read_text() == "code"
    assert (home / "important" / "keep.txt").read_text() == "precious"
    assert Path(made.work).exists() or not code


@pytest.mark.parametrize("body", sampled(BODIES, 5))
def test_an_installation_over_a_corrupt_journal_says_how_to_go_on(ground: Ground, body: str) -> None:
    """It is refused in a sentence, changes nothing, and goes through once the journal is given up."""
    resolution = ground.resolution()
    put(entry_of(ground.standing).journal, BODIES[body])
    before = picture(ground.standing)
    with pytest.raises(WorkFailed, match="its journal is damaged") as refused:
        ground.change(resolution)
    assert "--give-up" in str(refused.value.hint)
    assert picture(ground.standing) == before


# What people do at a place where an installation was killed; each answers what is theirs now.
def own_folder(target: Path) -> dict[Path, str]:
    """Make a folder of one's own at the target."""
    files = {target / "mine" / "thesis.py": "a year", target / "notes.txt": "mine"}
    write(files)
    return files


def own_environment(target: Path) -> dict[Path, str]:
    """Give up and make an environment by hand."""
    (target / "bin").mkdir(parents=True, exist_ok=True)
    files = {target / "pyvenv.cfg": "home = /usr", target / "bin" / "mine": "#!", target / "lib" / "x.py": "mine = 1"}
    write(files)
    return files


def own_link(target: Path) -> dict[Path, str]:
    """Lead the target to another disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    goal = target.parent / "elsewhere"
    files = {goal / "model.bin": "weights"}
    write(files)
    if not os.path.lexists(target):
        target.symlink_to(goal)
    return files


def site_of(target: Path) -> Path:
    """Find the packages' folder."""
    return next(target.glob("lib/python*/site-packages"))


def added_to_torch(target: Path) -> dict[Path, str]:
    """Put files of one's own among those that came, and into a folder of one's own there."""
    torch = site_of(target) / "torch"
    files = {torch / "my_patch.py": "patch", torch / "mine" / "model.bin": "weights", torch / "lib" / "mine.so": "own"}
    write(files)
    return files


def edited_torch(target: Path) -> dict[Path, str]:
    """Edit files that came."""
    torch = site_of(target) / "torch"
    files = {torch / "__init__.py": "__version__ = 'patched'", torch / "m1.py": "x = 'mine'"}
    write(files)
    return files


def replaced_torch(target: Path) -> dict[Path, str]:
    """Delete torch and bring another by hand, with a file where an old one was."""
    torch = site_of(target) / "torch"
    shutil.rmtree(torch, ignore_errors=True)
    files = {torch / "__init__.py": "# mine", torch / "gone.py": "mine, too", site_of(target) / "numpy.py": "mine"}
    write(files)
    return files


def a_file_for_a_folder(target: Path) -> dict[Path, str]:
    """Put a file where a folder was."""
    torch = site_of(target) / "torch"
    shutil.rmtree(torch, ignore_errors=True)
    write({torch: "not a folder"})
    return {torch: "not a folder"}


def write(files: dict[Path, str]) -> None:
    """Write a user's files."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)


DEEDS = {
    "new": (own_folder, own_environment, own_link),
    "existing": (added_to_torch, edited_torch, replaced_torch, a_file_for_a_folder),
}


@pytest.mark.parametrize("kind", sampled(DEEDS, 3))
def test_what_the_user_put_there_after_a_kill_is_kept(ground: Ground, kind: str) -> None:
    """Killed at many moments, the user goes on by hand, then runs `recover`: each file is there, or is named."""
    resolution, pristine = ground.resolution(), ground.folder / "pristine"
    shutil.copytree(ground.standing, pristine, symlinks=True)
    nursery = Nursery(ground, resolution)
    target = ground.standing if kind == "existing" else ground.new
    try:
        most = int(nursery.attempt(kind))
        restart(ground, pristine)
        first = 3 * most // 4 if kind == "existing" else 1  # before that nothing has moved
        moments = range(first, most + 1, max(1, (most - first) // 10))
        for operation, deed in zip(moments, itertools.cycle(DEEDS[kind]), strict=False):
            nursery.attempt(kind, operation=operation)
            if kind == "existing" and not site_of(target).exists():
                continue
            theirs = deed(target)
            told = recover()
            survives(theirs, told, (operation, deed.__name__))
            assert ground.debris() == [], (operation, deed.__name__)
            restart(ground, pristine)
    finally:
        nursery.close()


def survives(theirs: dict[Path, str], told: tuple[object, ...], moment: object) -> None:
    """Check that each file of the user's is where it was, or in a folder that was named."""
    kept = [Path(folder) for one in told for folder in one.kept]
    for path, text in theirs.items():
        if path.is_file() and path.read_text() == text:
            continue
        found = [file for folder in kept for file in folder.rglob(path.name) if file.is_file()]
        assert text in [file.read_text() for file in found], (moment, path, kept)
    assert all(one.outcome is not Outcome.FAILED for one in told), (moment, told)


def restart(ground: Ground, pristine: Path) -> None:
    """Bring the first state back."""
    shutil.rmtree(ground.standing)
    shutil.copytree(pristine, ground.standing, symlinks=True)
    for name in ("new", "jupyter"):
        shutil.rmtree(ground.folder / name, ignore_errors=True)


def test_files_that_come_while_an_installation_fails_are_kept(ground: Ground) -> None:
    """Not only after a kill: what the user puts among the new files during the verification is named, too."""

    def refuse(_made: object, _lock: object) -> None:
        added_to_torch(ground.standing)
        raise WorkFailed("no", hint="Try again.")

    before = picture(ground.standing)
    with pytest.raises(WorkFailed, match="no") as failed:
        ground.change(ground.resolution(), refuse)
    (kept,) = ground.standing.glob("assistant-set-aside-*")
    assert str(kept) in str(failed.value.hint)
    assert [path.name for path in kept.rglob("*") if path.is_file()] == ["mine.so"]  # its folder came as a whole
    shutil.rmtree(kept)
    (site_of(ground.standing) / "torch" / "my_patch.py").unlink()
    shutil.rmtree(site_of(ground.standing) / "torch" / "mine")
    assert picture(ground.standing) == before


def test_what_comes_to_the_place_meanwhile_is_left_as_it_is(ground: Ground) -> None:
    """Somebody makes the folder while the installation is at work: it ends in a sentence, and the folder stays."""
    for deed in DEEDS["new"]:
        with pytest.raises(WorkFailed, match="was created while the installation was running"):
            ground.make(ground.resolution(), lambda _made, _lock, deed=deed: deed(ground.new) and None)
        theirs = {path for path in ground.new.parent.rglob("*") if path.is_file()}
        assert theirs
        assert ground.debris() == []
        assert not list(ground.folder.glob("jupyter/kernels/*"))
        shutil.rmtree(ground.new.parent)


def test_a_parent_that_comes_meanwhile_is_no_obstacle(ground: Ground) -> None:
    """Two first installations make the same missing parent: both go through, and the other's files stay."""

    def meanwhile(_made: object, _lock: object) -> None:
        (ground.new.parent / "another").mkdir(parents=True)
        (ground.new.parent / "another" / "file").write_text("theirs")

    made = ground.make(ground.resolution(), meanwhile)
    assert look_at(Path(made.path), LiveHost()).versions["torch"] == "9.0"
    assert (ground.new.parent / "another" / "file").read_text() == "theirs"
    assert ground.debris() == []


def test_an_empty_folder_of_the_users_keeps_its_mode(ground: Ground) -> None:
    """A folder that was made for the environment is replaced by it, with the rights that it had."""
    ground.new.mkdir(parents=True)
    ground.new.chmod(0o750)
    ground.make(ground.resolution())
    assert stat.S_IMODE(ground.new.stat().st_mode) == 0o750


def test_an_empty_file_system_takes_an_environment(ground: Ground) -> None:
    """No folder can be renamed to a mounted one, so its content comes entry by entry; a failure leaves it empty."""
    resolution = ground.resolution()
    ground.new.mkdir(parents=True)
    with mounted(ground.new):
        with pytest.raises(ZeroDivisionError):
            ground.make(resolution, lambda _made, _lock: 1 / 0)
        assert list(ground.new.iterdir()) == []
        made = ground.make(resolution)
        assert look_at(Path(made.path), LiveHost()).versions["torch"] == "9.0"
        done = subprocess.run([ground.new / "bin" / "torch-run"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "9.0\n")
        assert ground.debris() == []


def test_a_kernel_of_the_users_is_never_touched(ground: Ground) -> None:
    """One of the same name, a link of that name, one that was made after a kill: each stays, byte for byte."""
    resolution = ground.resolution()
    ours = "torch-cpu-9.0"
    theirs = {"argv": ["/home/ada/python"], "display_name": "mine"}

    def plain(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(theirs))

    def link(folder: Path) -> None:
        plain(folder.with_name("elsewhere"))
        folder.symlink_to("elsewhere")

    def logo_only(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "logo-64x64.png").write_bytes(b"png")

    def broken(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text("{")

    for plant, succeeds in ((plain, True), (plain, False), (link, False), (logo_only, True), (broken, True)):
        plant(kernel_folder(ours))
        before = picture(ground.folder / "jupyter")
        if succeeds:
            assert ground.make(resolution).kernel == f"{ours}-2"
            assert picture(ground.folder / "jupyter").items() >= before.items()
        else:
            with pytest.raises(ZeroDivisionError):
                ground.make(resolution, lambda _made, _lock: 1 / 0)
            assert picture(ground.folder / "jupyter") == before
        shutil.rmtree(ground.folder / "jupyter")
        shutil.rmtree(ground.new.parent, ignore_errors=True)


def test_a_kernelspec_that_is_written_again_comes_back(ground: Ground) -> None:
    """A second installation that fails while it registers the kernel leaves the first one's kernelspec as it was."""
    made = ground.change(ground.resolution())
    file = kernel_folder(str(made.kernel)) / "kernel.json"
    file.write_text(file.read_text().replace('"debugger": true', '"debugger": false'))
    before = file.read_bytes()
    nursery = Nursery(ground, ground.resolution())
    try:
        for operation in range(1, int(nursery.attempt("existing")), 2):
            file.write_bytes(before)
            nursery.attempt("existing", operation=operation)
            told = recover()
            assert file.read_bytes() == before or not told or told[0].outcome is Outcome.STANDS, operation
            assert ground.debris() == []
    finally:
        nursery.close()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")
def test_a_work_folder_of_somebody_else_is_left_alone(ground: Ground) -> None:
    """A work folder that has changed hands is neither entered nor emptied, though it carries the token."""
    if os.geteuid():
        pytest.fail("only the superuser can give a folder away: run this test as root", pytrace=False)
    journal(ground.standing)
    work = ground.standing / WORK
    (work / "aside").mkdir()
    (work / "aside" / "theirs").write_text("x")
    os.chown(work, 12345, 12345)
    before = picture(ground.standing)
    (told,) = recover()
    assert told.outcome is Outcome.FAILED
    assert str(work) in str(told.error)
    assert picture(ground.standing) == before
    os.chown(work, 0, 0)
    (work / "token").write_text("another")
    before = picture(ground.standing)
    (told,) = recover()
    assert told.outcome is Outcome.FAILED
    assert picture(ground.standing) == before


def test_a_state_folder_of_somebody_else_is_not_used(ground: Ground) -> None:
    """Journals in a folder that another user owns could be anybody's orders."""
    if os.geteuid():
        pytest.fail("only the superuser can give a folder away: run this test as root", pytrace=False)
    resolution = ground.resolution()
    user_state().mkdir(parents=True)
    os.chown(user_state(), 12345, 12345)
    before = picture(ground.standing)
    with pytest.raises(WorkFailed, match="belongs to another user"):
        ground.change(resolution)
    assert picture(ground.standing) == before


def test_the_state_is_private(ground: Ground) -> None:
    """A state folder that others could open is closed to them, and no file in it is for others while we work."""
    user_state().mkdir(parents=True, exist_ok=True)
    user_state().chmod(0o755)
    modes: dict[str, int] = {}

    def look(_made: object, _lock: object) -> None:
        paths = [user_state(), *user_state().rglob("*")]
        modes.update({str(path): stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths})

    ground.change(ground.resolution(), look)
    assert set(modes.values()) == {0}, modes


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Let a folder be a file system of its own."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"this test mounts a small file system, which needs the superuser: {done.stderr}", pytrace=False)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_packages_on_another_file_system_are_refused_before_the_download(ground: Ground) -> None:
    """No rename reaches it, so nothing of it could be taken back: said at once, nothing is fetched."""
    resolution, before = ground.resolution(), None
    site = site_of(ground.standing)
    copy = ground.folder / "copy"
    shutil.copytree(site, copy, symlinks=True)
    with mounted(site):
        shutil.copytree(copy, site, symlinks=True, dirs_exist_ok=True)
        before = picture(ground.standing)
        with pytest.raises(WorkFailed, match="another file system"):
            ground.change(resolution)
        assert picture(ground.standing) == before
        assert not list(ground.folder.glob("cache/**/*.whl"))


def test_links_that_lead_out_of_an_environment_are_refused(ground: Ground) -> None:
    """site-packages, or a package in it, is a link to a folder of the user's: nothing is moved through it."""
    resolution, outside = ground.resolution(), ground.folder / "outside"
    site = site_of(ground.standing)
    for place in (site, site / "torch"):
        shutil.copytree(place, outside)
        shutil.move(place, ground.folder / "kept")
        place.symlink_to(outside)
        before = picture(ground.standing), picture(outside)
        with pytest.raises(WorkFailed, match="leads out of the environment"):
            ground.change(resolution)
        assert (picture(ground.standing), picture(outside)) == before
        assert ground.debris() == []
        place.unlink()
        shutil.move(ground.folder / "kept", place)
        shutil.rmtree(outside)


def test_a_folder_that_became_a_link_after_a_kill_is_not_followed(ground: Ground) -> None:
    """`recover` moves nothing through it and says so; when the folder is back, all is taken back."""
    nursery = Nursery(ground, ground.resolution())
    before, pristine = picture(ground.standing), ground.folder / "pristine"
    shutil.copytree(ground.standing, pristine, symlinks=True)
    try:
        operation = int(nursery.attempt("existing"))
        while not swapped_midway(ground):
            recover()
            restart(ground, pristine)
            operation -= 5
            nursery.attempt("existing", operation=operation)
    finally:
        nursery.close()
    site, outside = site_of(ground.standing), ground.folder / "outside"
    site.rename(outside)
    site.symlink_to(outside)
    seen = picture(outside)
    (told,) = recover()
    assert told.outcome is Outcome.FAILED
    assert "leads out of the environment" in str(told.error)
    assert picture(outside) == seen
    site.unlink()
    outside.rename(site)
    (told,) = recover()
    assert told.outcome is Outcome.TAKEN_BACK
    assert picture(ground.standing) == before


def swapped_midway(ground: Ground) -> bool:
    """Tell whether a killed run left files moved."""
    told = entry_of(ground.standing).read()
    return told is not None and told.kind == "existing" and told.change != Change()


def cut(path: Path) -> None:
    """Cut a wheel in half."""
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    """Leave a file of no bytes, as a power cut does."""
    os.truncate(path, 0)


def altered(path: Path) -> None:
    """Change bytes, not the size."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(bytes(50))


def zeroed(path: Path) -> None:
    """Fill with zeros, not changing the size."""
    path.write_bytes(bytes(path.stat().st_size))


def swapped(path: Path) -> None:
    """Put another wheel under the name."""
    path.write_bytes(b"PK\x03\x04 something else")


def longer(path: Path) -> None:
    """Append to it."""
    with path.open("ab") as file:
        file.write(b"more")


def without_pip(versions: dict[str, str]) -> dict[str, str]:
    """Leave out the tool that each new environment gets beside what was resolved."""
    return {name: version for name, version in versions.items() if name != "pip"}


@pytest.mark.parametrize(
    "harm", sampled([cut, emptied, altered, zeroed, swapped, longer], 3), ids=lambda harm: harm.__name__
)
@pytest.mark.parametrize("kind", sampled(DEEDS, 3))
def test_a_damaged_wheel_in_the_cache_is_fetched_again(ground: Ground, harm: Callable[[Path], None], kind: str) -> None:
    """It is set aside, which is told, and the installation goes through with a whole one."""
    resolution = ground.resolution()
    ground.make(resolution)
    shutil.rmtree(ground.new)
    harm(places(resolution.packages)["torch"])
    ground.events.clear()
    made = ground.make(resolution) if kind == "new" else ground.change(resolution)
    assert without_pip(look_at(Path(made.path), LiveHost()).versions) == resolution.versions
    assert [event for event in ground.events if isinstance(event, LogLine) and "is damaged" in str(event.text)]
    assert ground.debris() == []


@pytest.mark.parametrize("harm", sampled([cut, emptied, Path.unlink], 3), ids=["cut", "emptied", "gone"])
@pytest.mark.parametrize(
    "names", sampled(["archive-v0/*/torch/lib/*", "archive-v0/*/*.dist-info/*", "**/*.rev", "**/*.http"], 2)
)
def test_a_damaged_cache_of_the_installers_does_not_matter(
    ground: Ground, harm: Callable[[Path], None], names: str
) -> None:
    """Uv links what it unpacked before without looking at it: what is not whole is unpacked anew, without its cache."""
    resolution = ground.resolution()
    ground.make(resolution)
    shutil.rmtree(ground.new)
    for path in ground.folder.joinpath("uv").glob(names):
        harm(path)
    made = ground.make(resolution)
    assert without_pip(look_at(Path(made.path), LiveHost()).versions) == resolution.versions
    assert incomplete(Path(made.path), contents(places(resolution.packages).values())) == []
    assert (site_of(ground.new) / "torch" / "lib" / "library.so").stat().st_size > 100_000
    assert ground.debris() == []


@pytest.mark.parametrize("body", sampled(["a folder", "a pipe", "a link to a device", "a link to itself"], 2))
def test_what_is_no_file_in_the_cache_is_fetched_again(ground: Ground, body: str) -> None:
    """A pipe does not make it wait, a link to a device does not fill the memory."""
    resolution = ground.resolution()
    put(places(resolution.packages)["torch"], BODIES[body])
    made = ground.make(resolution)
    assert without_pip(look_at(Path(made.path), LiveHost()).versions) == resolution.versions


def test_a_damaged_wheel_of_the_users_own_is_named(ground: Ground) -> None:
    """A folder of wheels is the user's: nothing in it is moved, and the sentence names the file."""
    resolution = ground.resolution()
    wheel = ground.folder / "torch-9.0-py3-none-any.whl"
    shutil.copy(ground.index.folder / "torch" / wheel.name, wheel)
    packages = tuple(
        replace(package, url=wheel.as_uri()) if package.name == "torch" else package for package in resolution.packages
    )
    cut(wheel)
    with pytest.raises(WorkFailed, match="its size or hash differs") as refused:
        ground.make(replace(resolution, packages=packages))
    assert str(wheel) in str(refused.value.message)
    assert wheel.exists()
    assert ground.debris() == []


def test_a_home_without_room_or_right_to_write_changes_nothing(ground: Ground) -> None:
    """Without a private journal nothing could be taken back, so nothing is begun."""
    resolution, before = ground.resolution(), picture(ground.standing)
    (ground.folder / "state").write_text("a file in the way")
    for work in (functools.partial(ground.change, resolution), functools.partial(ground.make, resolution)):
        with pytest.raises(AssistantError, match="nothing was started"):
            work()
        assert picture(ground.standing) == before
        assert not ground.new.parent.exists()
        assert not list(ground.folder.rglob(f"{WORK}*"))


def test_to_wait_begins_with_the_first_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that outlives a killed installation may still write while a slow disk deletes: one more try is made."""
    folder = tmp_path / "work"
    work_folder.make(folder, "token")
    (folder / "staged").mkdir()
    rmtree, tried = shutil.rmtree, []

    def slow(path: Path) -> None:
        tried.append(path)
        if len(tried) == 1:
            time.sleep(2 * work_folder.PATIENCE_SECONDS)
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        rmtree(path)

    monkeypatch.setattr(work_folder, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(shutil, "rmtree", slow)
    work_folder.delete(folder, "token")
    assert not folder.exists()
