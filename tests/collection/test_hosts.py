"""Twelve hosts, three kinds of recorded machines, one bundle: set up, left alone, killed, repaired, by the playbook."""

from __future__ import annotations

import filecmp
import json
import os
import platform
import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hosts import Host, Room, disk, room
from playbooks import NAME, PROGRAMS, settings

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(5400)]
RECORDINGS = ("linux-ubuntu2204-uhd630", "linux-fedora42-rtx3070-nouveau", "linux-kvm-virtio")
FACES = {f"pc-{number:02}": RECORDINGS[number % 3] for number in range(1, 13)}
ABSENT = "pc-99"
PINNED = RECORDINGS[1]  # its machines are asked to keep an older NumPy: they are another kind, with another wheel
ROOM_GB = 20  # chosen: twelve environments, while not every large file is there but once yet
LARGE = 1 << 20  # bytes
ASSISTANT = str(PROGRAMS / "assistant")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Let the assistant make one bundle for the recorded machines, with the Python and the C library that are here."""
    if shutil.disk_usage(tmp_path).free < ROOM_GB << 30:
        pytest.fail(f"Twelve environments with torch need {ROOM_GB} GB of free disk.", pytrace=False)
    python = _said("/usr/bin/python3", "-c", "import platform; print(platform.python_version())").strip()
    lines = []
    for name, recording in FACES.items():
        machine = json.loads(_said(ASSISTANT, "detect", "--replay", recording, "--json"))
        machine.pop("evidence", None)
        machine.update(name=name, python=python, glibc=platform.libc_ver()[1])
        lines.append(json.dumps({**machine, "pins": ["numpy<2.4"]} if recording == PINNED else machine))
    (tmp_path / "machines.jsonl").write_text("\n".join(lines))
    folder = tmp_path / "bundle"
    _said(ASSISTANT, "bundle", "make", str(folder), "--machines", str(tmp_path / "machines.jsonl"), "--backend", "cpu")
    return folder


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Room]:
    """Run the hosts on a disk that is gone with them."""
    folder = tmp_path / "room"
    folder.mkdir()
    with disk(folder, ROOM_GB), room(folder, FACES, ABSENT) as running, _each_large_file_once(folder):
        yield running


def test_twelve_hosts(bundle, hosts, tmp_path):
    """What the first run carries is what each host needs, the second changes nothing, the third repairs what died."""
    chance = random.Random(seed := random.randrange(10**6))  # noqa: S311 - no secret
    needed = _needed(bundle)
    _code, recap = _play(hosts, tmp_path, bundle, "--check", "--diff")
    assert {name: recap[name]["changed"] for name in FACES} == dict.fromkeys(FACES, 2)
    assert not [name for name, host in hosts.hosts.items() if (host.folder / "root" / "bundle").exists()]

    began, before = time.monotonic(), {host.name: host.received() for host in hosts.hosts.values()}
    code, recap = _play(hosts, tmp_path, bundle)
    assert code == 4, "one host cannot be reached"
    assert recap.pop(ABSENT)["unreachable"] == 1
    assert {name: row["failed"] + row["unreachable"] for name, row in recap.items()} == dict.fromkeys(FACES, 0)
    assert {name: row["changed"] for name, row in recap.items()} == dict.fromkeys(FACES, 2)
    carried = {name: hosts.hosts[name].received() - before[name] for name in FACES}
    share = max(carried[name] / needed[name] for name in FACES)
    _print_figures(f"first run {time.monotonic() - began:.0f} s", needed, carried, share)
    assert share <= 1.05
    _records_are_those_of_the_machines(tmp_path / "reports")

    began, before = time.monotonic(), {name: hosts.hosts[name].received() for name in FACES}
    code, recap = _play(hosts, tmp_path, bundle)
    assert recap.pop(ABSENT)["unreachable"] == 1
    assert {name: (row["changed"], row["failed"]) for name, row in recap.items()} == dict.fromkeys(FACES, (0, 0))
    again = max(hosts.hosts[name].received() - before[name] for name in FACES)
    print(f"second run {time.monotonic() - began:.0f} s, at most {again / 1e6:.1f} MB to a host")
    assert again < 5e6

    killed = chance.sample(sorted(FACES), 4)
    print(f"seed {seed}: {', '.join(killed)} will be killed")
    _kill_at_work(hosts, killed, chance, tmp_path, bundle)
    for name in killed:
        hosts.hosts[name].boot()

    began = time.monotonic()
    code, recap = _play(hosts, tmp_path, bundle)
    assert recap.pop(ABSENT)["unreachable"] == 1
    assert {name: row["failed"] + row["unreachable"] for name, row in recap.items()} == dict.fromkeys(FACES, 0)
    assert {name for name, row in recap.items() if row["changed"]} == set(killed)
    print(f"third run {time.monotonic() - began:.0f} s")
    for name in killed:
        assert _leftovers(hosts.hosts[name]) == []
    _records_are_those_of_the_machines(tmp_path / "reports")


def _needed(bundle: Path) -> dict[str, int]:
    """Return the bytes of the files that each host needs of a bundle, each counted once."""
    index = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    sizes = {one["path"]: one["bytes"] for one in index["files"]}
    own = (bundle / "bundle.json").stat().st_size
    assert len(index["kinds"]) == 2
    return {
        name: own + sum(sizes[path] for path in {*kind["files"], *index["platforms"][kind["platform"]]})
        for kind in index["kinds"]
        for name in kind["machines"]
    }


def _play(hosts: Room, tmp_path: Path, bundle: Path, *limit: str) -> tuple[int, dict[str, dict[str, int]]]:
    """Play the collection's playbook in the hosts' network; return its exit code and the rows of its recap."""
    given = {
        "torch_setup_bundle_src": str(bundle),
        "torch_setup_bundle": "/root/bundle",
        "torch_setup_target": "/root/torch",
        "torch_setup_reports": str(tmp_path / "reports"),
        "torch_setup_program": ASSISTANT,
    }
    words = [str(PROGRAMS / "ansible-playbook"), f"{NAME}.site", "-e", json.dumps(given), *limit]
    with (tmp_path / "ansible.log").open("a+") as log:
        begins = log.tell()
        done = subprocess.run(
            hosts.command(*words),
            env=settings(tmp_path, {"ANSIBLE_CONFIG": str(hosts.folder / "ansible.cfg")}),
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log.seek(begins)
        told = log.read()
    rows = re.findall(r"^(\S+) +: ok=\d+ +(.*)$", told.partition("PLAY RECAP")[2], re.MULTILINE)
    assert rows, told
    if done.returncode not in {0, 4}:
        print(told)
    return done.returncode, {
        name: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row)}
        for name, row in rows
        if name != "localhost"
    }


def _records_are_those_of_the_machines(reports: Path) -> None:
    """Every host has a record: the recorded card, a verification that passed; the page names them all."""
    page = (reports / "index.html").read_text(encoding="utf-8")
    for name, recording in FACES.items():
        record = json.loads((reports / f"{name}.json").read_text(encoding="utf-8"))
        known = json.loads(_said(ASSISTANT, "detect", "--replay", recording, "--json"))
        cards = [[one.get("pci_id") for one in machine.get("gpus", ())] for machine in (record["machine"], known)]
        assert cards[0] == cards[1]
        assert record["machine"]["os_version"] == known["os_version"]
        assert record["report"]["checks"]
        assert not [check["key"] for check in record["report"]["checks"] if check["status"] == "failed"]
        assert name in page


# Signs that a host is at a certain work, by which the moment is chosen to pull its plug.
WORK: tuple[tuple[str, Callable[[Path], bool]], ...] = (
    ("while a file was carried", lambda home: any((home / "bundle" / ".incoming").glob("*"))),
    (
        "while the assistant was set up",
        lambda home: any((home / ".local/share/pytorch-setup-assistant/bundle").glob("part.*")),
    ),
    ("while packages were unpacked", lambda home: any(home.glob(".assistant-install-*"))),
    (
        "when torch had been unpacked",
        lambda home: any(home.glob(".assistant-install-*/torch/lib/python3*/site-packages/torch/lib")),
    ),
)


def _kill_at_work(hosts: Room, names: list[str], chance: random.Random, tmp_path: Path, bundle: Path) -> None:
    """Let four hosts do all of the work again, and kill each at a random moment of one part of it."""
    for name in names:
        home = hosts.hosts[name].folder / "root"
        for path in (home / "torch", home / ".local", home / ".cache"):
            shutil.rmtree(path)
        for wheel in (home / "bundle" / "wheels").glob("torch-*.whl"):
            wheel.unlink()
    over = threading.Event()
    threads = [
        threading.Thread(target=_pull, args=(hosts.hosts[name], *work, chance.uniform(0, 2), over))
        for name, work in zip(names, WORK, strict=True)
    ]
    for thread in threads:
        thread.start()
    code, recap = _play(hosts, tmp_path, bundle, "--limit", ",".join(["localhost", *names]))
    over.set()
    for thread in threads:
        thread.join()
    assert code != 0
    assert {name: row["failed"] + row["unreachable"] > 0 for name, row in recap.items()} == dict.fromkeys(names, True)
    print({name: _leftovers(hosts.hosts[name]) for name in names})
    assert any(_leftovers(hosts.hosts[name]) for name in names)


def _pull(host: Host, when: str, at_work: Callable[[Path], bool], later: float, over: threading.Event) -> None:
    """Wait until a host is at some work, and a little longer; then end every process there."""
    while not over.is_set():
        with suppress(OSError):  # what is looked at comes and goes
            if at_work(host.folder / "root"):
                time.sleep(later)
                host.kill()
                print(f"{host.name} was killed {later:.1f} s into: {when}")
                return
        time.sleep(0.02)


def _leftovers(host: Host) -> list[str]:
    """Name what an interrupted run has left on a host."""
    home = host.folder / "root"
    patterns = ("bundle/.incoming/*", ".local/share/pytorch-setup-assistant/bundle/part.*", ".assistant-install-*")
    return [str(path.relative_to(home)) for pattern in patterns for path in home.glob(pattern)]


@contextmanager
def _each_large_file_once(folder: Path) -> Iterator[None]:
    """Let equal large files of the hosts be one file on this machine's disk, once each host has received its own.

    What a host is just writing is left alone. This saves disk, and nothing of what is carried, unpacked or checked.
    """
    over, first = threading.Event(), {}

    def share() -> None:
        while not over.wait(3):
            for path in _large_files(folder):
                with suppress(OSError):  # a host has removed it meanwhile
                    _share(path, first)

    thread = threading.Thread(target=share)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _large_files(folder: Path) -> Iterator[Path]:
    busy = (".incoming", ".assistant-install", ".tmp", "part.", ".ansible")
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(busy)]
        for name in names:
            path = Path(place, name)
            with suppress(OSError):
                if not path.is_symlink() and path.stat().st_size >= LARGE:
                    yield path


def _share(path: Path, first: dict[tuple[str, int], Path]) -> None:
    key = (path.name, path.stat().st_size)
    kept = first.setdefault(key, path)
    if not kept.exists():
        first[key] = path
    elif not kept.samefile(path) and filecmp.cmp(kept, path, shallow=False):
        other = path.with_name(f"{path.name}.one")
        os.link(kept, other)
        other.replace(path)


def _print_figures(what: str, needed: dict[str, int], carried: dict[str, int], share: float) -> None:
    print(f"{what}; {min(needed.values()) / 1e6:.1f} to {max(needed.values()) / 1e6:.1f} MB needed by a host, ", end="")
    print(f"{min(carried.values()) / 1e6:.1f} to {max(carried.values()) / 1e6:.1f} MB received, at most {share:.4f}")


def _said(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(words)}\n{done.stderr}", pytrace=False)
    return done.stdout
