"""Around an environment: kernels of the user's, state that cannot be had, disks, and links out of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture
from install.test_hostile_state import own_folder, put, site_of, versions, write
from tables import sampled

from assistant.host.files import make_private_folder, user_state
from assistant.install.environments import Places
from assistant.install.installation import prepare, recover
from assistant.install.kernel import kernel_folder
from assistant.model.errors import AssistantError, BadInput, WorkFailed

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks, links and pipes; Windows has none of the three"),
]


def plain(folder: Path) -> None:
    """Register a kernel of the user's."""
    write({folder / "kernel.json": json.dumps({"argv": ["/home/ada/python"], "display_name": "mine"})})


def linked(folder: Path) -> None:
    """Lead a kernel's name to another."""
    plain(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


KERNELS: dict[str, Callable[[Path], object]] = {
    "plain": plain,
    "a link": linked,
    "a logo alone": lambda folder: write({folder / "logo-64x64.png": "png"}),
    "broken": lambda folder: write({folder / "kernel.json": "{"}),
    "a link to itself": lambda folder: put(folder, "loop"),
    "a pipe": lambda folder: folder.mkdir(parents=True) or os.mkfifo(folder / "kernel.json"),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("plant", sampled(KERNELS, 3))
def test_a_kernel_of_the_users_is_never_touched(ground: Ground, plant: str, fails: bool) -> None:  # noqa: FBT001 - a row
    """One of the name that ours would get stays, byte for byte, after an installation and one that failed late."""
    KERNELS[plant](kernel_folder("torch-cpu-9.0"))
    before = picture(ground.folder / "jupyter")
    if fails:
        with pytest.raises(WorkFailed, match="was created"):
            ground.make(ground.resolution(), lambda _made, _lock: own_folder(ground.new) and None)
        assert picture(ground.folder / "jupyter") == before
    else:
        assert ground.make(ground.resolution()).kernel == "torch-cpu-9.0-2"
        assert picture(ground.folder / "jupyter").items() >= before.items()


@pytest.mark.parametrize("kind", ["existing", "foreign"])
def test_a_kernelspec_that_is_written_again_comes_back(ground: Ground, kind: str) -> None:
    """Killed while the kernel is registered anew: what the user changed in it is there, or the installation is."""
    target = ground.standing if kind == "existing" else ground.build_foreign()
    file = kernel_folder(str(ground.change(ground.resolution(), target=target).kernel)) / "kernel.json"
    before = file.read_bytes().replace(b'"debugger": true', b'"debugger": false')
    nursery = Nursery(ground, ground.resolution())
    try:
        most = int(nursery.attempt(kind))
        for operation in range(most - 16, most + 1, 2):
            file.write_bytes(before)
            number = target.stat().st_ino
            nursery.attempt(kind, operation=operation)
            is_settled = bool(recover(ground.tools))
            is_taken_back = is_settled and (target.stat().st_ino == number if kind == "existing" else True)
            assert file.read_bytes() == before or not is_taken_back, operation
            assert ground.debris() == []
    finally:
        nursery.close()


def given_away(folder: Path) -> None:
    """Let a folder be another user's."""
    make_private_folder(folder.parent)
    folder.mkdir()
    os.chown(folder, 12345, 12345)


STATES: dict[str, Callable[[Path], object]] = {
    "a file": lambda folder: write({folder: "a file in the way"}),
    "a pipe": lambda folder: folder.parent.mkdir() or os.mkfifo(folder),
    "a link to itself": lambda folder: put(folder, "loop"),
    "another user's": given_away,
    "another user's within": lambda folder: given_away(folder / "installs"),
}


@pytest.mark.parametrize("kind", ["existing", "new", "foreign"])
@pytest.mark.parametrize("plant", sampled(STATES, 3))
def test_without_a_private_journal_nothing_is_begun(ground: Ground, plant: str, kind: str) -> None:
    """Nothing could be taken back, and journals in a folder of another user could be anybody's orders."""
    resolution, target = ground.resolution(), ground.build_foreign()
    shutil.rmtree(ground.folder / "state", ignore_errors=True)  # where the first resolution was made
    STATES[plant](user_state())
    before = picture(ground.folder)
    with pytest.raises(AssistantError, match="nothing was started"):
        ground.make(resolution) if kind == "new" else ground.change(
            resolution, target=target if kind == "foreign" else ground.standing
        )
    assert picture(ground.folder) == before


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
    words = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"this test mounts a small file system, which needs the superuser: {done.stderr}", pytrace=False)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_target_that_is_mounted_is_refused(ground: Ground) -> None:
    """No folder can be renamed to it: said at once, with a folder inside it that can be used."""
    ground.new.mkdir(parents=True)
    with mounted(ground.new):
        with pytest.raises(BadInput, match="is a disk of its own") as refused:
            prepare(ground.plan, str(ground.new), ground.tools)
        assert str(ground.new / "torch") in str(refused.value.hint)
        assert list(ground.new.iterdir()) == []


def _refuse(_made: object, _lock: object) -> None:
    raise WorkFailed("no")


@pytest.mark.parametrize("kind", ["existing", "foreign"])
@pytest.mark.parametrize("place", ["", "torch", "numpy", "torch/lib"])
def test_what_a_link_out_of_an_environment_leads_to_stays(ground: Ground, kind: str, place: str) -> None:
    """site-packages, or a package in it, is the user's elsewhere: ours gets one of its own, another's is refused."""
    target = ground.standing if kind == "existing" else ground.build_foreign()
    link, outside = site_of(target) / place, ground.folder / "outside"
    link.rename(outside)
    link.symlink_to(outside)
    before, seen = picture(target), picture(outside)
    if kind == "existing":
        ground.change(ground.resolution())
        assert versions(target) == ground.resolution().versions
        assert picture(Places(target).old) == before
    else:
        with pytest.raises(BadInput, match="leads out of the environment"):
            ground.change(ground.resolution(), target=target)
        assert picture(target) == before
    assert picture(outside) == seen
    assert ground.debris() == []
