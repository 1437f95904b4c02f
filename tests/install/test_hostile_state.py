"""Planted first, run then: whatever lies in a folder, a cache or the state, nothing of the user's is touched.

A fault is survived when everything that was the user's is where it was (or where the output says), nothing of an
installation's is left, and the end is one clear sentence with the right exit code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture
from tables import sampled

from assistant.cli import commands as cli
from assistant.host.live import LiveHost
from assistant.install.environments import Places, delete_previous, remove_folders, swap_with_previous
from assistant.install.in_place import read_last_change
from assistant.install.installation import Outcome, prepare, recover
from assistant.install.journal import Before, Journal, entry_for
from assistant.install.kernel import KernelNote
from assistant.install.site import MARKER, Site
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace, to_json

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks, links and pipes; Windows has none of the three"),
]

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs the command line in this process: exit code, what it said, what it complained of."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run(list(map(str, arguments)))
        out, complaint = capsys.readouterr()
        assert "Traceback" not in out + complaint
        assert "itself failed" not in complaint
        return code, out, complaint

    return run


@pytest.fixture
def home(ground: Ground) -> Path:
    """Give a folder of the user's with work of a year in it."""
    folder = ground.folder / "home"
    write({folder / "thesis" / "chapter.tex": "a year of work", folder / "thesis" / "src" / "main.py": "code"})
    write({folder / ".bashrc": "export MINE=1", folder / "important" / "keep.txt": "precious"})
    return folder


def write(files: dict[Path, str]) -> dict[Path, str]:
    """Write a user's files, and return them."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    return files


def site_of(target: Path) -> Path:
    """Find the packages' folder."""
    return next(target.glob("lib/python*/site-packages"))


def versions(target: Path) -> dict[str, str]:
    """Ask an environment what it holds, beside the tool that each new one gets."""
    return {name: version for name, version in Site.ask(target, LiveHost()).versions.items() if name != "pip"}


def planted_socket(path: Path) -> None:
    """Plant a socket."""
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)


def planted_folder(path: Path) -> None:
    """Plant a folder with a user's files in it."""
    write({path / "mine" / "model.bin": "weights", path / "pyvenv.cfg": "home = /usr", path / "bin" / "python": "#!"})


def planted_strangers(path: Path) -> None:
    """Plant a folder of another user's, with the marker of an environment of ours."""
    write({path / MARKER: "{}"})
    os.chown(path, 12345, 12345)


PLANTS: dict[str, Callable[[Path], None]] = {
    "a file": lambda path: path.write_text("{}") and None,
    "a pipe": os.mkfifo,
    "a socket": planted_socket,
    "a link to what is above": lambda path: path.symlink_to(".."),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to a file": lambda path: path.symlink_to(__file__),
    "a link to the user's folder": lambda path: path.symlink_to(write({path.parent / "x" / "y": "mine"}) and "x"),
    "a link to the root": lambda path: path.symlink_to("/"),
    "a folder of the user's": planted_folder,
    "a folder of another user": planted_strangers,
}
RUNS = {
    "recover there": ("recover", "--target"),
    "recover all": ("recover",),
    "dry run": ("install", "--backend", "cpu", "--dry-run", "--offline", "--target"),
    "install": ("install", "--backend", "cpu", "--yes", "--offline", "--target"),
}


@pytest.mark.parametrize("place", [".env.new", ".env.old", "env"])
@pytest.mark.parametrize("plant", sampled(PLANTS, 6))
def test_what_is_planted_beside_a_target_is_left_alone(
    ground: Ground, home: Path, command: Command, plant: str, place: str
) -> None:
    """Whatever a cloned or unpacked folder holds, no command deletes, moves or writes a thing because of it."""
    PLANTS[plant](home / "thesis" / place)
    before = picture(home)
    for name, words in RUNS.items():
        code, said, _complaint = command(*words, *([home / "thesis" / "env"] if words[-1] == "--target" else []))
        assert picture(home) == before, name
        assert code == (0 if name.startswith("recover") else code or 1), (name, said)
    if place == ".env.new":
        with pytest.raises(BadInput, match=r"/thesis/\.env\.new does not belong .* is left alone"):
            prepare(ground.plan, str(home / "thesis" / "env"), ground.tools)
        assert picture(home) == before


@pytest.mark.parametrize("place", ["new", "old"])
@pytest.mark.parametrize("plant", sampled(PLANTS, 6))
def test_an_environment_with_something_planted_beside_it_stays(ground: Ground, plant: str, place: str) -> None:
    """It is neither replaced nor undone, nothing is fetched for it; its removal leaves what is beside it."""
    resolution, beside = ground.resolution(), getattr(Places(ground.standing), place)
    PLANTS[plant](beside)
    before = picture(ground.folder)
    with pytest.raises(BadInput, match="is left alone"):
        ground.change(resolution)
    assert not list(ground.folder.glob("cache/**/*.whl"))
    with pytest.raises(BadInput):
        swap_with_previous(ground.standing)
    assert delete_previous(ground.standing) == 0
    assert picture(ground.folder).items() >= before.items()
    with contextlib.suppress(BadInput):
        remove_folders(ground.standing)
    assert ground.standing.exists() == (place == "new")
    after = {name for name in before if not name.startswith(f"{ground.standing.name}")}
    assert picture(ground.folder).keys() >= after


def test_what_comes_beside_an_environment_meanwhile_is_left_alone(ground: Ground) -> None:
    """A folder in the place of the old one that was made during the verification: all is taken back."""
    before = picture(ground.standing)
    with pytest.raises(BadInput, match="is left alone"):
        ground.change(ground.resolution(), lambda _made, _lock: planted_folder(Places(ground.standing).old))
    assert picture(ground.standing) == before
    assert (Places(ground.standing).old / "mine" / "model.bin").read_text() == "weights"
    assert ground.debris() == []
    assert not list(ground.folder.glob("jupyter/kernels/*"))


CROOKED: dict[str, dict[str, object]] = {
    "a target above": {"target": "{home}/thesis/../important"},
    "a relative target": {"target": "env"},
    "the root": {"target": "/"},
    "no target": {"target": ""},
    "a NUL": {"target": "{home}/a\0b"},
    "a parent elsewhere": {"parents": ("{home}/important",)},
    "a parent below": {"parents": ("{home}/thesis/env/lib",)},
    "a relative parent": {"parents": ("..",)},
    "a kernel above": {"kernel": KernelNote(name="../../important", python="/x")},
    "an absolute kernel": {"kernel": KernelNote(name="/important", python="/x")},
    "a kernel called ..": {"kernel": KernelNote(name="..", python="/x")},
    "an empty kernel": {"kernel": KernelNote(name="", python="/x")},
    "a long kernel": {"kernel": KernelNote(name="k" * 300, python="/x")},
    "packages of an environment that is built": {"before": Before(python="/bin/true", packages={})},
    "a change of no packages": {"kind": "change"},
}


@pytest.mark.parametrize("name", sampled(CROOKED, 6))
def test_a_journal_that_this_program_never_wrote_is_not_obeyed(home: Path, command: Command, name: str) -> None:
    """Even in the private folder: every path is checked, and the refusal names the file that has to go."""
    target = home / "thesis" / "env"
    text = to_json(replace(Journal(kind="install", target=str(target)), **CROOKED[name])).replace("{home}", str(home))
    entry_for(target).write(Journal(kind="install", target=str(target)))
    entry_for(target).journal.write_text(text)
    before = picture(home)
    code, _said, complaint = command("recover")
    assert (code, complaint.count("\n"), picture(home)) == (1, 1, before)
    assert str(entry_for(target).journal) in complaint
    entry_for(target).journal.unlink()
    assert command("recover")[:2] == (0, "There is nothing to roll back.\n")


@pytest.mark.parametrize("kind", ["install", "undo", "remove"])
@pytest.mark.parametrize("place", sampled(["env", ".env.new", ".env.old"], 2))
def test_a_folder_of_another_number_is_not_what_the_journal_means(
    ground: Ground, home: Path, kind: str, place: str
) -> None:
    """The environments have gone since and the user has made folders of such names: they are left alone."""
    target, numbers = home / "thesis" / "env", {"goes": 1, "comes": 2, "drops": 3}
    planted_folder(target.with_name(place))
    before = picture(home)
    entry_for(target).write(Journal(kind=kind, target=str(target), parents=(str(home / "thesis"),), **numbers))
    (told,) = recover(ground.tools)
    assert picture(home) == before
    assert (told.outcome is Outcome.FAILED) == (place == ".env.new" and kind != "undo")
    assert told.outcome is not Outcome.FAILED or str(target.with_name(place)) in str(told.error)


BODIES: dict[str, bytes | str] = {
    "empty": b"",
    "garbage": b"garbage",
    "null": b"null",
    "a list": b"[]",
    "a number": b"1e999",
    "cut": b'{"schema": 3, "kind": "install", "tar',
    "deep": b"[" * 100_000,
    "not text": b"\xff\xfe\x00\x01",
    "NULs": bytes(4096),
    "an earlier edition's": b'{"schema": 2, "kind": "existing"}',
    "of another version": b'{"schema": 99}',
    "an unknown key": b'{"schema": 3, "surprise": 1}',
    "a wrong type": b'{"schema": 3, "kind": 5}',
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
        write({path / "a user's": "whatever"})
    elif body == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path.name, "other": __file__}.get(body, body))


@pytest.mark.parametrize("suffix", sampled([".json", ".lock", ".undo"], 2))
@pytest.mark.parametrize("body", sampled(BODIES, 5))
def test_one_corrupt_file_of_the_state_stops_nobody_else(home: Path, command: Command, suffix: str, body: str) -> None:
    """The other target is settled; a journal or a lock that is damaged is named, and `recover` ends well without it."""
    corrupt, good = home / "thesis" / "env", home / "important" / "env"
    file = entry_for(corrupt).journal.with_suffix(suffix)
    before = picture(home)
    for target in (corrupt, good):
        entry_for(target).write(Journal(kind="install", target=str(target)))
        Places(target).new.mkdir()
    put(file, BODIES[body])
    code, said, complaint = command("recover")
    assert f"{good} has been restored." in said
    assert suffix != ".json" or code
    assert suffix != ".undo" or code == 0
    assert read_last_change(corrupt) is None
    assert code == 0 or (complaint.count("\n") == 1 and str(file) in complaint), complaint
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    assert command("recover")[0] == 0
    Places(corrupt).new.exists() and Places(corrupt).new.rmdir()  # of a damaged journal: its hint names that folder
    assert picture(home) == before


@pytest.mark.parametrize("place", ["standing", "foreign", "new"])
@pytest.mark.parametrize("body", sampled(BODIES, 5))
def test_an_installation_over_a_corrupt_journal_says_how_to_go_on(ground: Ground, body: str, place: str) -> None:
    """It is refused in a sentence that names the file, and changes nothing."""
    ground.build_foreign()
    target = getattr(ground, place)
    put(entry_for(target).journal, BODIES[body])
    before = picture(ground.folder)
    with pytest.raises(WorkFailed, match="is damaged") as refused:
        prepare(ground.plan, str(target), ground.tools)
    assert "Delete that file" in str(refused.value.hint)
    assert str(entry_for(target).journal) in str(refused.value.message)
    assert picture(ground.folder) == before


# What people do at a place where an installation was killed; each answers what is theirs now.
def own_folder(target: Path) -> dict[Path, str]:
    """Make a folder of one's own at the target."""
    return write({target / "mine" / "thesis.py": "a year", target / "notes.txt": "mine"})


def own_environment(target: Path) -> dict[Path, str]:
    """Make an environment by hand."""
    return write({target / "pyvenv.cfg": "home = /usr", target / "bin" / "mine": "#!", target / "lib" / "x.py": "m"})


def own_file(target: Path) -> dict[Path, str]:
    """Put a file there."""
    return write({target: "mine"})


def own_link(target: Path) -> dict[Path, str]:
    """Lead the target to another disk."""
    files = write({target.parent / "elsewhere" / "model.bin": "weights"})
    target.symlink_to("elsewhere")
    return files


def own_new_folder(target: Path) -> dict[Path, str]:
    """Delete what the killed run left, and keep something else under that name."""
    folder = target.with_name(f".{target.name}.new")
    shutil.rmtree(folder, ignore_errors=True)
    return write({folder / "mine.txt": "precious"})


DEEDS = (own_folder, own_environment, own_file, own_link, own_new_folder)


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
@pytest.mark.parametrize("kind", sampled(["existing", "new"], 2))
def test_what_the_user_put_there_after_a_kill_is_kept(
    ground: Ground, kind: str, deed: Callable[[Path], dict[Path, str]]
) -> None:
    """Killed at many moments, the user goes on by hand, then runs `recover`: theirs is there, and so is the old one."""
    resolution, pristine = ground.resolution(), ground.folder / "pristine"
    shutil.copytree(ground.standing, pristine, symlinks=True)
    before = picture(ground.standing)
    nursery = Nursery(ground, resolution)
    target = ground.standing if kind == "existing" else ground.new
    try:
        most = int(nursery.attempt(kind))
        restart(ground, pristine)
        first = most - 12 if kind == "existing" else 1  # before that the place is not free
        for operation in range(first, most + 1, max(1, (most - first) // 9)):
            nursery.attempt(kind, operation=operation)
            if not target.exists() or deed is own_new_folder:
                theirs = deed(target)
                (told,) = recover(ground.tools) or (None,)
                assert all(path.read_text() == text for path, text in theirs.items()), operation
                survives(ground, kind, before, told, operation)
            restart(ground, pristine)
    finally:
        nursery.close()


def survives(ground: Ground, kind: str, before: dict[str, tuple[object, ...]], told: object, operation: int) -> None:
    """Check that the environment from before is there, or where `recover` says, and nothing of ours is left."""
    failed = told is not None and told.outcome is Outcome.FAILED
    own = [str(path) for path in ground.debris() if Path(path, "mine.txt").exists()]
    assert not failed or own == [str(Places(told.target).new)], (operation, told)
    assert failed or ground.debris() == own, (operation, told)
    if kind == "existing":
        stands = Path(told.beside) if told and told.beside else ground.standing
        complete = stands == ground.standing and versions(stands)["torch"] == "9.0"
        assert complete or picture(stands) == before, (operation, told)


def restart(ground: Ground, pristine: Path) -> None:
    """Bring the first state back."""
    for path in (ground.standing, Places(ground.standing).old, Places(ground.standing).new):
        path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(pristine, ground.standing, symlinks=True)
    for name in ("new", "jupyter", "elsewhere", "state"):
        shutil.rmtree(ground.folder / name, ignore_errors=True)


@pytest.mark.parametrize("deed", [own_folder, own_link, own_file], ids=lambda deed: deed.__name__)
@pytest.mark.parametrize("renames", [1, 2, 3])
def test_an_undo_that_is_killed_loses_neither_environment(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, renames: int, deed: Callable[[Path], dict[Path, str]]
) -> None:
    """Killed after any of its renames, with something else at the free place or without: both are there, or named."""
    ground.change(ground.resolution())
    write({ground.standing / "since.txt": "mine"})
    now, before = picture(ground.standing), picture(Places(ground.standing).old)
    rename, done = Path.rename, []

    def killed(self: Path, goal: Path) -> Path:
        if len(done) == renames and ground.standing.parent == self.parent:
            raise KeyboardInterrupt
        done.append(goal) if ground.standing.parent == self.parent else None
        return rename(self, goal)

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(Path, "rename", killed)
        swap_with_previous(ground.standing)
    theirs = {} if ground.standing.exists() else deed(ground.standing)
    told = recover(ground.tools)
    assert all(path.read_text() == text for path, text in theirs.items())
    there = [
        picture(ground.standing.with_name(name)) for name in (".standing one.new", ".standing one.old", "standing one")
    ]
    assert now in there
    assert before in there
    assert not theirs or picture(Path(told[0].beside)) == now


@pytest.mark.parametrize("deed", DEEDS[:4], ids=lambda deed: deed.__name__)
def test_what_comes_to_the_place_meanwhile_is_left_as_it_is(
    ground: Ground, deed: Callable[[Path], dict[Path, str]]
) -> None:
    """Somebody makes the folder while the installation is at work: it ends in a sentence, and the folder stays."""
    theirs: dict[Path, str] = {}

    def meanwhile(_made: object, _lock: object) -> None:
        theirs.update(deed(ground.new))

    with pytest.raises(WorkFailed, match="was created while the installation was running"):
        ground.make(ground.resolution(), meanwhile)
    assert all(path.read_text() == text for path, text in theirs.items())
    assert ground.debris() == []
    assert not list(ground.folder.glob("jupyter/kernels/*"))


def test_a_parent_that_comes_meanwhile_is_no_obstacle(ground: Ground) -> None:
    """Two first installations make the same missing parent: both go through, and the other's files stay."""
    other = ground.new.parent / "another" / "file"
    made = ground.make(ground.resolution(), lambda _made, _lock: write({other: "theirs"}) and None)
    assert versions(Path(made.path))["torch"] == "9.0"
    assert other.read_text() == "theirs"
    assert ground.debris() == []


def test_an_empty_folder_of_the_users_keeps_its_mode(ground: Ground) -> None:
    """A folder that was made for the environment is replaced by it, with the rights that it had."""
    ground.new.mkdir(parents=True)
    ground.new.chmod(0o750)
    ground.make(ground.resolution())
    assert stat.S_IMODE(ground.new.stat().st_mode) == 0o750
