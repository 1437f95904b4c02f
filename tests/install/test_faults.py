"""Whatever happens to an installation, the environment is as it was, file for file, or has all of the plan."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture
from tables import sampled

from assistant.host.live import LiveHost
from assistant.host.lock import Lock
from assistant.install import EnvironmentFolder, Resolution
from assistant.install.environments import Places
from assistant.install.installation import recover
from assistant.install.journal import entry_for
from assistant.install.site import Site
from assistant.model.errors import WorkFailed
from assistant.model.report import Environment

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks children and kills them; Windows has neither"),
]

SEED = 20261


def versions(target: Path) -> dict[str, str]:
    """Ask an environment's own Python what is installed, beside pip, which is in no resolution."""
    return {name: version for name, version in Site.ask(target, LiveHost()).versions.items() if name != "pip"}


def holds(ground: Ground, before: dict[str, tuple[object, ...]], resolution: Resolution) -> None:
    """Check that the environment is untouched or complete, and that nothing else is left."""
    after = picture(ground.standing)
    assert after == before or versions(ground.standing) == resolution.versions
    assert ground.debris() == []


def test_an_environment_of_ours_gets_the_plan(ground: Ground) -> None:
    """It is built anew: old files go, the user's own come along; the old one stays beside it, to be undone to."""
    resolution, before = ground.resolution(), picture(ground.standing)
    made = ground.change(resolution)
    site = next(ground.standing.glob("lib/*/site-packages"))
    assert versions(ground.standing) == {"torch": "9.0", "numpy": "1.0", "ipykernel": "7.0"}
    assert not (site / "torch" / "gone.py").exists()
    assert (site / "torch" / "mine too.txt").exists()
    assert (site / "mine.py").read_text() == "precious = 1\n"
    assert (ground.standing / "notebooks" / "thesis.ipynb").exists()
    assert (ground.standing / "share" / "torch" / "notes.txt").read_text() == "9.0"
    said = subprocess.run([ground.standing / "bin" / "torch-run"], capture_output=True, text=True, check=True)
    assert said.stdout == "9.0\n"
    assert made.kernel == "torch-cpu-9.0"
    assert ground.debris() == []
    assert picture(Places(ground.standing).old) == before
    EnvironmentFolder(ground.standing).undo_last_change(ground.tools)
    assert picture(ground.standing) == before
    EnvironmentFolder(ground.standing).undo_last_change(ground.tools)
    assert versions(ground.standing) == resolution.versions
    assert ground.debris() == []


def test_an_environment_of_somebody_else_gets_the_plan(ground: Ground) -> None:
    """It is changed where it is; what no package lists stays, and undoing brings the old versions back by uv."""
    target, resolution = ground.build_foreign(), ground.resolution()
    made = ground.change(resolution, target=target)
    site = next(target.glob("lib/*/site-packages"))
    assert versions(target) == resolution.versions
    assert (site / "torch" / "mine too.txt").exists()
    assert made.kernel == "torch-cpu-9.0"
    assert not Places(target).old.exists()
    EnvironmentFolder(target).undo_last_change(ground.tools)
    assert versions(target) == {"torch": "8.0"}
    assert (site / "mine.py").exists()
    assert ground.debris() == []


def test_a_verification_that_fails_takes_everything_back(ground: Ground) -> None:
    """The hook sees the new torch; when it refuses, every file and mode is as before, and so is the kernel list."""
    before, seen = picture(ground.standing), []

    def refuse(made: Environment, _lock: Lock) -> None:
        seen.append(versions(Path(made.path))["torch"])
        subprocess.run([made.python, "-c", "import torch.m1, numpy"], check=True)  # leaves compiled files
        raise WorkFailed("no")

    with pytest.raises(WorkFailed, match="no"):
        ground.change(ground.resolution(), refuse)
    assert seen == ["9.0"]
    assert picture(ground.standing) == before
    assert not list(ground.folder.glob("jupyter/kernels/*"))
    assert ground.debris() == []


@pytest.mark.parametrize("trouble", sampled(["cut", "stall", 500, 404, "truncate", "alter"], 2))
@pytest.mark.parametrize("kind", ["existing", "new", "foreign"])
@pytest.mark.parametrize("project", ["torch", "numpy"])  # a large wheel is ours to fetch, a small one uv's
def test_a_download_that_fails_changes_nothing(ground: Ground, trouble: int | str, kind: str, project: str) -> None:
    """A connection cut, a stall, an error, a short file, other bytes: one sentence, nothing changed."""
    target = ground.build_foreign() if kind == "foreign" else ground.standing
    before, resolution = picture(target), ground.resolution()
    ground.index.file_trouble[project] = trouble
    with pytest.raises(WorkFailed, match=rf"{project}[-=\d.]*(-py3-none-any\.whl)? cannot be fetched"):
        ground.make(resolution) if kind == "new" else ground.change(resolution, target=target)
    assert picture(target) == before
    assert not ground.new.parent.exists()
    assert ground.debris() == []


@pytest.mark.parametrize("trouble", sampled(["cut", 503, "truncate", "alter"], 2))
def test_a_download_that_recovers_goes_on(ground: Ground, trouble: int | str) -> None:
    """One bad answer is made good by the next."""
    resolution = ground.resolution()
    ground.index.file_trouble["torch"], ground.index.bad_answers = trouble, 1
    ground.change(resolution)
    holds(ground, {}, resolution)


def test_a_second_writer_hears_who_is_at_work(ground: Ground) -> None:
    """While one installation holds the environment, another is refused with its process number."""
    before, resolution = picture(ground.standing), ground.resolution()
    code = (
        "import sys, pathlib; from assistant.host.lock import Lock\n"
        "lock = Lock(pathlib.Path(sys.argv[1])); assert lock.take() is None; print('held', flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, entry_for(ground.standing).lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(WorkFailed, match=f"process {other.pid} of"):
            ground.change(resolution)
        other.kill()
    recover(ground.tools, ground.standing)
    holds(ground, before, resolution)


def runs(pid: int) -> bool:
    """Tell whether a process still runs; one that ended and waits to be fetched does not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False


def test_a_full_disk_changes_nothing(ground: Ground, tmp_path: Path) -> None:
    """A target without room (a small file system, or a limit on files where that cannot be mounted) is as it was."""
    resolution = ground.resolution()
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2500k", "tmpfs", small]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        target = ground.build(small / "env") if mounted else ground.standing
        if mounted:
            room = shutil.disk_usage(small).free
            (small / "filler").write_bytes(bytes(max(0, room - BODY_ROOM)))
        before = picture(target)
        with _limited(not mounted), pytest.raises((WorkFailed, OSError)):
            ground.change(resolution, target=target)
        assert picture(target) == before
        assert ground.debris() == []
    finally:
        if mounted:
            subprocess.run(["umount", small], check=True)


BODY_ROOM = 100_000


@contextlib.contextmanager
def _limited(wanted: bool) -> Iterator[None]:  # noqa: FBT001 - one switch
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if wanted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (BODY_ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def kill_often(ground: Ground, times: int, seed: int) -> None:
    """Kill installations at random moments: at a random change of a file, or after a random time."""
    resolution, chance = ground.resolution(), random.Random(seed)  # noqa: S311 - repeatable, no secret
    pristine = ground.folder / "pristine"
    shutil.copytree(ground.standing, pristine, symlinks=True)
    before = picture(ground.standing)
    nursery = Nursery(ground, resolution)
    try:
        most, longest = {}, {}
        for kind in ("existing", "new"):
            begun = time.monotonic()
            most[kind] = int(nursery.attempt(kind))
            longest[kind] = time.monotonic() - begun
            reset(ground, pristine)
        for number in range(times):
            kind = ("existing", "existing", "new")[number % 3]
            moment = (
                {"operation": chance.randint(1, most[kind])}
                if number % 2
                else {"seconds": chance.uniform(0.001, longest[kind])}
            )
            nursery.attempt(kind, **moment)
            recover(ground.tools)
            complete = ground.standing if kind == "existing" else ground.new
            untouched = picture(ground.standing) == before and not ground.new.parent.exists()
            assert untouched or versions(complete) == resolution.versions, (kind, moment)
            assert ground.debris() == [], (kind, moment)
            assert not untouched or not list(ground.folder.glob("jupyter/kernels/*")), (kind, moment)
            if not untouched:
                reset(ground, pristine)
    finally:
        nursery.close()


def reset(ground: Ground, pristine: Path) -> None:
    """Bring the first state back; every other time the downloads are gone as well."""
    shutil.rmtree(ground.standing)
    shutil.copytree(pristine, ground.standing, symlinks=True)
    for name in ("new", "jupyter", "cache"):
        shutil.rmtree(ground.folder / name, ignore_errors=True)


def test_kill_at_any_moment(ground: Ground) -> None:
    """Twenty kills at random moments of the real thing: untouched or complete each time, nothing left behind."""
    kill_often(ground, 20, SEED)


def test_a_run_killed_between_two_folders_leaves_neither(ground: Ground) -> None:
    """Of the folders for a new environment only the outer one was made when the run was killed."""
    before = picture(ground.folder)
    nursery = Nursery(ground, ground.resolution())
    try:
        for operation in range(1, 30):
            nursery.attempt("new", operation=operation)
            recover(ground.tools)
            assert not ground.new.parent.exists(), operation
            assert ground.debris() == [], operation
    finally:
        nursery.close()
    assert {name for name in picture(ground.folder) if name.startswith("standing")} <= set(before)


def test_a_resolution_that_is_killed_leaves_no_folder(ground: Ground) -> None:
    """What it had written for itself lies where `recover` looks, and nothing in the system's temporary folder."""
    code = (
        "import os; from assistant.install.journal import temporary_folder\n"
        "with temporary_folder() as (folder, _lock):\n    (folder / 'pyproject.toml').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(ground.debris()) == 1
    recover(ground.tools)
    assert ground.debris() == []


def test_the_folder_of_a_killed_resolution_goes_though_its_number_is_anothers_now(ground: Ground) -> None:
    """Windows uses numbers of processes again at once; the folder of one that works is left alone."""
    code = "import sys; from assistant.install.journal import temporary_folder as f\nwith f() as (folder, _lock):\n    "
    subprocess.run([sys.executable, "-c", f"{code}import os; os.kill(os.getpid(), 9)"], check=False)
    (left,) = ground.debris()
    Path(left).rename(Path(left).with_name(f"0badcafe.{os.getpid()}.part"))
    words = [sys.executable, "-c", f"{code}print(folder, flush=True); sys.stdin.read()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as works:
        folder = works.stdout.readline().strip()
        recover(ground.tools)
        assert [Path(one).name for one in ground.debris()] == [Path(folder).name]
        works.communicate("")
    assert ground.debris() == []


def test_a_program_that_a_killed_resolution_left_running_is_ended(ground: Ground) -> None:
    """It would go on writing into the folder that is taken away: `recover` ends it first, then nothing is left."""
    busy = (
        "import itertools, os, pathlib, sys\nprint(os.getpid(), flush=True)\n"
        "for number in itertools.count():\n    pathlib.Path(sys.argv[1], str(number % 500)).write_text('x')"
    )
    code = (
        "import sys; from assistant.install.journal import temporary_folder as f\n"
        "from assistant.host.process import running\n"
        "with f() as (folder, lock), running([sys.executable, '-c', sys.argv[1], folder], lock=lock) as child:\n"
        "    for line in child:\n        print(line, flush=True)"
    )
    first = subprocess.Popen([sys.executable, "-c", code, busy], stdout=subprocess.PIPE, text=True)
    with first:
        child = int(first.stdout.readline())
        first.kill()
    recover(ground.tools)
    assert not runs(child)
    assert ground.debris() == []
