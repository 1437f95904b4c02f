"""A power cut: what is on the disk at a moment, mounted anew, is the old environment or the whole new one.

The home, caches and all, lies on an ext4 image. The kernel's own writing is held back, so that the image holds what was
asked to be on the disk and little else, or it is hurried. At each moment everything is stopped and the image copied.
The copy is mounted in the same place in a name space of its own, where `recover` and the checks run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from install.real import INSTALL, NEWER, OLDER, Home, incomplete, lacking, outline, versions

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="mounts an ext4 image"),
]

MOMENTS = 10  # of each kind
PAUSE_SECONDS = 0.7
LAZY = {"dirty_writeback_centisecs": 0, "dirty_expire_centisecs": 360_000, "dirty_background_ratio": 60}
EAGER = {"dirty_writeback_centisecs": 20, "dirty_expire_centisecs": 20}
OPTIONS = {"lazy": "commit=3600", "eager": "commit=1"}


@contextlib.contextmanager
def writing(settings: dict[str, int]) -> Iterator[None]:
    """Let the kernel write dirty pages late or early for a while."""
    files = {Path("/proc/sys/vm") / name: str(value) for name, value in settings.items()}
    before = {file: file.read_text() for file in files}
    try:
        for file, value in files.items():
            file.write_text(value)
        yield
    finally:
        for file, value in before.items():
            file.write_text(value)


def command(*words: str | Path) -> str:
    """Run a tool that needs the superuser; fail the test with its words."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"this test mounts images as the superuser: {' '.join(done.args)}: {done.stderr}", pytrace=False)
    return done.stdout.strip()


class Disk:
    """An ext4 image, mounted."""

    def __init__(self, folder: Path, options: str) -> None:
        self.image, self.mount = folder / "image", folder / "disk"
        self.mount.mkdir()
        command("truncate", "-s", "6G", self.image)
        command("mkfs.ext4", "-q", "-F", self.image)
        self.device = command("losetup", "--find", "--show", self.image)
        command("mount", "-o", options, self.device, self.mount)

    def written(self) -> str:
        """Tell how much was written to the device."""
        return (Path("/sys/block") / Path(self.device).name / "stat").read_text().split()[6]

    def cut(self, name: str) -> Path:
        """Copy what is on the disk, at a moment in which nothing is written; answer the copy's path."""
        copy = self.image.with_name(f"copy {name}")
        for _try in range(100):
            before = self.written()
            command("cp", "--sparse=always", self.image, copy)
            if self.written() == before:
                return copy
            time.sleep(0.1)
        pytest.fail("something writes to the disk all the time", pytrace=False)

    def close(self) -> None:
        """Unmount."""
        command("umount", self.mount)
        command("losetup", "-d", self.device)


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process and all below it for a while."""
    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        root.suspend()
        below = [root, *root.children(recursive=True)]
    for process in below:
        with contextlib.suppress(psutil.Error):
            process.suspend()
    time.sleep(0.2)
    try:
        yield
    finally:
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.resume()


def after_the_cut(disk: Disk, copy: Path) -> dict[str, object]:
    """Mount the copy where the disk was, in a name space of its own; run `recover` and look."""
    inner = 'mount -o loop "$1" "$2" && shift 2 && exec "$@"'
    words = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        inner,
        "sh",
        copy,
        disk.mount,
        sys.executable,
        __file__,
        disk.mount,
    ]
    told = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, env=told)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["new", "standing", "foreign"])
@pytest.mark.parametrize("pace", ["lazy", "eager"])
def test_a_power_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, pace: str) -> None:
    """At ten moments, success among them: old, complete, or what `recover` restores; then an installation works."""
    disk = Disk(tmp_path, OPTIONS[pace])
    found: Counter[str] = Counter()
    try:
        copies = interrupted(disk, kind, LAZY if pace == "lazy" else EAGER)
        for name, copy in copies.items():
            must = ("complete",) if name == "success" else ("untouched", "complete")
            found[judged(disk, copy, (kind, pace, name), must)] += 1
            copy.unlink()
    finally:
        disk.close()
        shutil.rmtree(tmp_path, ignore_errors=True)
    with capsys.disabled():
        print(f"\npower cut, {kind}, {pace}: {dict(found)}", end="", flush=True)
    assert found.total() >= MOMENTS // 2


def interrupted(disk: Disk, kind: str, settings: dict[str, int]) -> dict[str, Path]:
    """Install, and copy what is on the disk at several moments and at that of success."""
    copies = {}
    with writing(settings):
        home = prepared(disk, kind)
        with home.start(*words(disk.mount, kind)) as child:
            while child.poll() is None and not begun(disk.mount):
                time.sleep(0.05)
            for number in range(1, MOMENTS):
                time.sleep(PAUSE_SECONDS)
                with stopped(child.pid):
                    if child.poll() is not None:
                        break
                    copies[str(number)] = disk.cut(str(number))
            out, complaint = child.communicate(timeout=600)
        assert child.returncode == 0, (out, complaint)
        copies["success"] = disk.cut("success")
    return copies


def words(mount: Path, kind: str) -> tuple[str | Path, ...]:
    """Give the command."""
    return (*INSTALL, *(NEWER if kind == "standing" else ()), "--target", mount / "env")


def begun(mount: Path) -> bool:
    """Tell whether the installation has its journal."""
    return any(mount.glob("state/*/installs/*.json"))


def prepared(disk: Disk, kind: str) -> Home:
    """Make a home on the disk, and in it the environment that stands, ours or not; all that is on the disk itself."""
    home, env = home_on(disk.mount), disk.mount / "env"
    if kind == "foreign":
        home.make(env)
    if kind == "standing":
        done = home.run(*INSTALL, *OLDER, "--target", env)
        assert done.returncode == 0, done.stderr
    (disk.mount / "before.json").write_text(json.dumps([kind, outline(env), versions(env)]))
    subprocess.run(["sync", "-f", disk.mount], check=True)
    return home


def home_on(mount: Path) -> Home:
    """Give the home on a disk; uv's cache lies there, too: a power cut damages it like all else."""
    return Home(mount, mount / "uv")


def judged(disk: Disk, copy: Path, moment: object, must: tuple[str, ...]) -> str:
    """Check what came of a copy."""
    seen = after_the_cut(disk, copy)
    assert seen["state"] in must, (moment, seen)
    assert (seen["code"], seen["left"]) == (0, []), (moment, seen)
    assert seen["again"] in {"complete", "not tried"}, (moment, seen["again"])
    return str(seen["state"])


def look(mount: Path) -> dict[str, object]:
    """Run `recover` on a disk that was mounted anew; tell what state the environment is in, and install once more."""
    home, env = home_on(mount), mount / "env"
    done = home.run("recover")
    kind, files, packages = json.loads((mount / "before.json").read_text())
    same = outline(env) == {name: tuple(told) for name, told in files.items()}
    if kind == "foreign" and versions(env) == packages:  # uv brings back versions, and not the files
        same = not lacking(env)
    wrong = [] if same else incomplete(env)
    state = "untouched" if same else "complete" if not wrong else f"broken: {wrong[:5]}"
    again = "not tried"
    left = home.left_over()
    if state == "untouched":
        second = home.run(*words(mount, kind))
        wrong = incomplete(env)
        again = f"{second.stderr} {second.stdout} {wrong[:5]}" if second.returncode or wrong else "complete"
    return {"state": state, "code": done.returncode, "said": done.stderr, "left": left, "again": again}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print(json.dumps(look(Path(sys.argv[1]))))
    os.sync()
