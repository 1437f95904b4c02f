"""Hosts on this machine, with addresses, sshd and homes of their own, that look like recorded machines.

Each is a network namespace on a bridge that leads nowhere else, with its own processes, home and `/tmp`. What a
recording read of the kernel and of files stands in the place of those files, so that detection, as it is, finds the
recorded machine; the programs and the disk are this machine's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import system_packages

NETWORK = "10.213.7"
START_SECONDS = 30.0
SSHD = "/usr/sbin/sshd"
CONFIG = """
Port 22
ListenAddress {address}
HostKey /root/.sshd/key
AuthorizedKeysFile /root/.sshd/authorized
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
Subsystem sftp internal-sftp
"""
# Run as the first process of a host: its end is that of all others there.
BOOT = """
set -e
mount --make-rprivate /
hostname {name}
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount --bind /dev/null /etc/pip.conf 2>/dev/null || true
mount -t tmpfs tmpfs /opt
{face}
mount --bind {folder}/root /root
mount --bind {folder}/tmp /tmp
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin {sshd} -D -e -f /root/.sshd/config
"""


class Host:
    """One host; its home is `folder / "root"`."""

    def __init__(self, name: str, address: str, space: str, folder: Path, face: str) -> None:
        self.name, self.address, self.folder = name, address, folder
        self._space = space
        self._script = BOOT.format(name=name, folder=folder, face=face, sshd=SSHD)
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Start it; return when it takes connections."""
        words = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
        with (self.folder / "log").open("ab") as log:
            start = ["ip", "netns", "exec", self._space, *words, self._script]
            self._process = subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while b"Server listening" not in (self.folder / "log").read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{self.name} did not start:\n{(self.folder / 'log').read_text()}", pytrace=False)
            time.sleep(0.05)

    def kill(self) -> None:
        """End every process of the host at once, as when somebody pulls the plug."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
        (self.folder / "log").write_bytes(b"")

    def received(self) -> int:
        """Return the bytes that have come over the host's network so far, every frame counted."""
        shown = _done("ip", "-n", self._space, "-s", "-j", "link", "show", "eth0")
        return int(json.loads(shown)[0]["stats64"]["rx"]["bytes"])


class Room:
    """The hosts, and the place from which they are reached."""

    def __init__(self, hosts: Mapping[str, Host], space: str, folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        self._space = space

    def command(self, *words: str) -> list[str]:
        """Return a command that runs where the hosts can be reached, and nothing else."""
        return ["ip", "netns", "exec", self._space, *words]


@contextmanager
def room(folder: Path, faces: Mapping[str, str], absent: str = "") -> Iterator[Room]:
    """Run a host for each name, with the face of a recording; `absent` is in the inventory and answers nothing.

    The folder gets `inventory.ini` and `ansible.cfg`. Fails where namespaces or sshd cannot be had.
    """
    _need_root_and_sshd()
    prefix = f"room{os.getpid()}"
    spaces = [f"{prefix}-{number}" for number in range(len(faces) + 1)]
    hosts: dict[str, Host] = {}
    try:
        _done("ip", "netns", "add", spaces[0])
        own = f"addr add {NETWORK}.1/24 dev hub"
        for words in ("link set lo up", "link add hub type bridge", own, "link set hub up"):
            _done("ip", "-n", spaces[0], *words.split())
        (folder / "key").unlink(missing_ok=True)
        _done("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
        for number, (name, recording) in enumerate(faces.items(), start=1):
            _done("ip", "netns", "add", spaces[number])
            _cable(spaces[0], spaces[number], number)
            place = folder / name
            _home(place, f"{NETWORK}.{10 + number}", (folder / "key.pub").read_text())
            hosts[name] = Host(name, f"{NETWORK}.{10 + number}", spaces[number], place, _face(place, recording))
        _write_settings(folder, hosts, absent)
        for host in hosts.values():
            host.boot()
        yield Room(hosts, spaces[0], folder)
    finally:
        for host in hosts.values():
            host.kill()
        for space in spaces:
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


@contextmanager
def disk(folder: Path, gigabytes: int) -> Iterator[None]:
    """Let a folder be a disk of its own, in a file: what a million files of many hosts leave is gone at once."""
    image = folder.with_name(f"{folder.name}.img")
    with image.open("wb") as file:
        file.truncate(gigabytes << 30)
    try:
        _done("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", str(image))
        _done("mount", "-o", "loop", str(image), str(folder))
        try:
            yield
        finally:
            _done("umount", "--lazy", str(folder))
    finally:
        image.unlink()


def _need_root_and_sshd() -> None:
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.fail("Hosts on this machine need Linux, root, `ip` and `unshare`: network namespaces.", pytrace=False)
    if not Path(SSHD).exists():
        system_packages.install("openssh-server")
    if not Path(SSHD).exists():
        pytest.fail(f"{SSHD} is missing: install openssh-server.", pytrace=False)


def _cable(hub: str, space: str, number: int) -> None:
    """Lead a cable from the bridge to a host; there is no way out of that network."""
    _done("ip", "-n", hub, "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
    _done("ip", "-n", hub, "link", "set", f"to{number}", "master", "hub", "up")
    _done("ip", "-n", space, "addr", "add", f"{NETWORK}.{10 + number}/24", "dev", "eth0")
    _done("ip", "-n", space, "link", "set", "eth0", "up")


def _home(place: Path, address: str, key: str) -> None:
    """Make an empty home with what sshd needs."""
    (place / "root" / ".sshd").mkdir(parents=True)
    (place / "tmp").mkdir()
    (place / "log").touch()
    settings = place / "root" / ".sshd"
    (settings / "authorized").write_text(key)
    (settings / "config").write_text(CONFIG.format(address=address))
    _done("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(settings / "key"))


def _face(place: Path, recording: str) -> str:
    """Write what a recording read into files, and return the commands that put them in place."""
    path = Path(__file__).parents[1] / "assistant" / "machines" / f"{recording}.json"
    said = {tuple(one["ask"]): one["answer"] for one in json.loads(path.read_text(encoding="utf-8"))["said"]}
    lines = []
    for number, (question, answer) in enumerate(said.items()):
        if question[0] == "read" and answer.get("text"):
            file = place / "face" / str(number)
            file.parent.mkdir(exist_ok=True)
            file.write_text(answer["text"])
            lines.append(f"mount --bind {file} {question[1]}")
    cards = place / "face" / "pci"
    for card in re.split(r"(?<=REVISION=0x..)\n+", said["pci",].get("text", "")):
        if slot := re.search(r"^PCI_SLOT_NAME=(\S+)$", card, re.MULTILINE):
            described, _mark, revision = card.partition("REVISION=")
            (cards / slot[1]).mkdir(parents=True)
            (cards / slot[1] / "uevent").write_text(described)
            (cards / slot[1] / "revision").write_text(f"{revision.strip()}\n")
    return "\n".join([*lines, f"mount --bind {cards} /sys/bus/pci/devices"])


def _write_settings(folder: Path, hosts: Mapping[str, Host], absent: str) -> None:
    known = [f"{host.address} {(host.folder / 'root' / '.sshd' / 'key.pub').read_text()}" for host in hosts.values()]
    (folder / "known_hosts").write_text("".join(known))
    rows = {host.name: host.address for host in hosts.values()} | ({absent: f"{NETWORK}.250"} if absent else {})
    lines = [f"{name} ansible_host={address}" for name, address in rows.items()]
    shared = ["[all:vars]", "ansible_user=root", "ansible_python_interpreter=/usr/bin/python3"]
    (folder / "inventory.ini").write_text("\n".join(["[all]", *lines, "", *shared, ""]))
    options = f"-o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile={folder / 'known_hosts'}"
    (folder / "ansible.cfg").write_text(
        "[defaults]\n"
        f"inventory = {folder / 'inventory.ini'}\n"
        f"private_key_file = {folder / 'key'}\n"
        f"local_tmp = {folder / 'local'}\n"
        "forks = 6\n"
        "timeout = 10\n"
        "[ssh_connection]\n"
        f"ssh_args = {options} -o ServerAliveInterval=5 -o ServerAliveCountMax=3\n"
        f"control_path_dir = {folder / 'cp'}\n"
    )


def _done(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(words)}\n{done.stderr}", pytrace=False)
    return done.stdout
