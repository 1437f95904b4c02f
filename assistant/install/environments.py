"""The environments that the assistant made: which they are, how large, whether they still work; and their removal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from assistant.host.base import Host
from assistant.host.files import discard_folder
from assistant.host.interrupts import uninterrupted
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.constraints import guards, replaced
from assistant.install.inspect_env import interpreter, is_environment, look_at, python_of
from assistant.install.kernel import environments_with_kernels, remove_kernel
from assistant.install.place import environments_folder
from assistant.install.target import MARKER, Marker, full_path, named_target, read_marker
from assistant.install.transaction import remove
from assistant.install.undo import forget
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
    """List what the assistant made, found in its own folder and behind Jupyter's kernels."""
    kernels = environments_with_kernels()
    return tuple(_made(folder, marker, kernels.get(folder, ()), host) for folder, marker in marked_environments())


def replaced_builds(host: Host) -> tuple[Finding, ...]:
    """Find environments that the assistant made or changed, and whose builds were replaced since."""
    here = Path(str(host.facts("platform").get("prefix", "")))
    made = [folder for folder, _marker in marked_environments()]
    found = []
    for folder in dict.fromkeys([here, *made, *environments_with_kernels()]):
        pins = host.read(str(guards(folder)[0]))
        with suppress(BadInput):  # a Python that does not answer is another finding
            found.append(replaced(folder, pins.text, look_at(folder, host).versions) if pins else None)
    return tuple(filter(None, found))


def remove_environment(name: str) -> Path:
    """Remove an environment by its name, its path or its kernel's name, with all of its kernels.

    Raises `BadInput` for one that is not ours, and for a name that several have.
    """
    kernels, path = environments_with_kernels(), full_path(name)
    ours = dict(marked_environments())
    named = [folder for folder in ours if name in {folder.name, *kernels.get(folder, ())}]
    found = [path] if read_marker(path) else named
    if len(found) != 1:
        text = (
            _("{count} environments are called '{name}'.")
            if found
            else _("'{name}' is not an environment that the assistant made.")
        )
        raise BadInput(
            text.format(name=name, count=len(found)), hint=_("Name it by its folder; `assistant envs` lists them all.")
        )
    with uninterrupted():
        remove(found[0])
        forget(found[0])
        for kernel in kernels.get(found[0], ()):
            remove_kernel(kernel, interpreter(found[0]))
    return found[0]


def marked_environments() -> Iterator[tuple[Path, Marker]]:
    """Yield the folder and the marker of each environment that the assistant made."""
    folders = sorted(path.parent for path in environments_folder().glob(f"*/{MARKER}"))
    for folder in dict.fromkeys([*folders, *environments_with_kernels()]):
        if marker := read_marker(folder):
            yield folder, marker


def foreign_target(text: str, host: Host) -> Path | None:
    """Return the environment or the Python that a target names where looking at it starts a program of somebody else's.

    None where nothing would be started, and for the environment that this Python runs in and those that the assistant
    made: the folder of its own environments and the user's kernels say which these are, and no file in the target.
    """
    target = named_target(text, host)
    if not is_environment(target):
        return None
    python = python_of(target)
    folder = python.parent.parent if target.is_file() else target
    own = Path(str(host.facts("platform").get("executable", ""))).parent.parent
    is_ours = folder in {own, *dict(marked_environments())} and python.parent == interpreter(folder).parent
    return None if is_ours else target


def _made(folder: Path, marker: Marker, kernels: Sequence[str], host: Host) -> Made:
    differs: tuple[str, ...] = ()
    try:
        now = look_at(folder, host).versions
        before = marker.environment.packages
        differs = tuple(
            f"{name} {now.get(name, '')}".strip() for name, version in before.items() if now.get(name) != version
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
        kernels=tuple(kernels),
    )


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; one with several names (hard links) counts once."""
    sizes: dict[int, int] = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # somebody may work there meanwhile
                found = (Path(root) / name).lstat()
                sizes[found.st_ino] = found.st_size
    return sum(sizes.values())


def prune() -> int:
    """Delete the cached downloads, and return how many bytes they took."""
    folder, lock = cache_folder(), Lock(cache_folder() / "lock")
    if lock.take():
        raise WorkFailed(_("A download is running."), hint=_("Wait until it has finished, and start again."))
    try:
        size = sum(map(size_of, folder.iterdir()))
        for entry in [entry for entry in folder.iterdir() if entry.is_dir()]:  # all but the lock
            with suppress(OSError):
                discard_folder(entry)
    finally:
        lock.release()
    return size
