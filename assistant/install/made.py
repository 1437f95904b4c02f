"""The environments that the assistant made: which they are, how large, whether they still work; and their removal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from assistant.host.base import Host
from assistant.host.lock import Lock
from assistant.host.process import uninterrupted
from assistant.i18n import _
from assistant.install.kernel import environments_with_kernels as _with_kernels
from assistant.install.kernel import remove_kernel
from assistant.install.make import Marker, read_marker
from assistant.install.protect import guards, replaced
from assistant.install.site import interpreter, look_at
from assistant.install.target import MARKER, environments
from assistant.install.transaction import remove
from assistant.install.wheels import cache_folder
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.record import Record

Health = Literal["good", "changed", "broken"]


class Made(Record, frozen=True, omit_defaults=False):
    """One environment: its size in bytes, and whether it holds what it was made with.

    "changed" lists packages of other versions in `differs`; "broken" has a Python that does not answer.
    """

    name: str
    path: str
    backend: str
    torch: str
    python: str
    size: int
    health: Health
    differs: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()


def made_environments(host: Host) -> tuple[Made, ...]:
    """List what was made, found in the assistant's own folder and behind Jupyter's kernels."""
    return tuple(_made(folder, marker, host) for folder, marker in marked_environments())


def replaced_builds(host: Host) -> tuple[Finding, ...]:
    """Find environments whose builds were replaced since: those that the assistant made, and those that it changed."""
    here = Path(str(host.facts("platform").get("prefix", "")))
    found = []
    for folder in dict.fromkeys([here, *(folder for folder, _marker in marked_environments()), *_with_kernels()]):
        pins = host.read(str(guards(folder)[0]))
        with suppress(BadInput):  # a Python that does not answer is another matter
            found.append(replaced(folder, pins.text, look_at(folder, host).versions) if pins else None)
    return tuple(filter(None, found))


def remove_environment(name: str) -> Path:
    """Remove an environment by its name, its path or its kernel's name, with all of its kernels.

    Raises `BadInput` for one that is not ours, and for a name that several have.
    """
    kernels, path = _with_kernels(), Path(name).expanduser().absolute()
    ours = dict(marked_environments())
    named = [folder for folder in ours if name in {folder.name, *kernels.get(folder, ())}]
    found = [path] if read_marker(path) else named
    if len(found) != 1:
        text = (
            _("{count} environments are called '{name}'.") if found else _("'{name}' is none that the assistant made.")
        )
        raise BadInput(
            text.format(name=name, count=len(found)), hint=_("Name it by its folder; `assistant envs` lists them.")
        )
    with uninterrupted():
        remove(found[0])
        for kernel in kernels.get(found[0], ()):
            remove_kernel(kernel, interpreter(found[0]))
    return found[0]


def marked_environments() -> Iterator[tuple[Path, Marker]]:
    """Give the folder and the marker of each environment that was made."""
    folders = sorted(path.parent for path in environments().glob(f"*/{MARKER}"))
    for folder in dict.fromkeys([*folders, *_with_kernels()]):
        if marker := read_marker(folder):
            yield folder, marker


def _made(folder: Path, marker: Marker, host: Host) -> Made:
    differs: tuple[str, ...] = ()
    try:
        now = look_at(folder, host).versions
        told = marker.environment.packages
        differs = tuple(
            f"{name} {now.get(name, '')}".strip() for name, version in told.items() if now.get(name) != version
        )
        health: Health = "changed" if differs else "good"
    except BadInput:
        health = "broken"
    return Made(
        name=folder.name,
        path=str(folder),
        backend=marker.plan.backend.value,
        torch=marker.plan.torch,
        python=marker.plan.python,
        size=size_of(folder),
        health=health,
        differs=differs,
        kernels=tuple(_with_kernels().get(folder, ())),
    )


def size_of(folder: Path) -> int:
    """Sum the files; one with several names below the folder counts once."""
    seen: dict[int, int] = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            told = (Path(root) / name).lstat()
            seen[told.st_ino] = told.st_size
    return sum(seen.values())


def prune() -> int:
    """Delete the downloaded files that are kept for another time; answer how many bytes they took."""
    folder, lock = cache_folder(), Lock(cache_folder() / "lock")
    if lock.take():
        raise WorkFailed(_("A download is under way."), hint=_("Wait until it has ended, and start again."))
    try:
        size = sum(map(size_of, folder.iterdir()))
        for entry in folder.iterdir():
            shutil.rmtree(entry, ignore_errors=True)  # all but the lock, which is a file
    finally:
        lock.release()
    return size
