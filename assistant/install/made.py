"""The environments that the assistant made: which they are, how large, whether they still work; and their removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import platformdirs

from assistant.host.base import Host
from assistant.i18n import _
from assistant.install.journal import remove
from assistant.install.kernel import environments_with_kernels, remove_kernel
from assistant.install.make import Marker, read_marker
from assistant.install.site import look_at
from assistant.install.target import MARKER
from assistant.model.errors import BadInput
from assistant.model.record import Record

__all__ = ["Made", "made_environments", "marked_environments", "remove_environment"]

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


def remove_environment(name: str) -> Path:
    """Remove an environment by name or path, with its kernels; raise `BadInput` for one that is not ours."""
    for folder, _marker in marked_environments():
        if name in {folder.name, str(folder)}:
            kernels = environments_with_kernels().get(folder, [])
            remove(folder)
            for kernel in kernels:
                remove_kernel(kernel)
            return folder
    raise BadInput(
        _("'{name}' is no environment that the assistant made.").format(name=name),
        hint=_("`assistant envs` lists them."),
    )


def marked_environments() -> Iterator[tuple[Path, Marker]]:
    """Give the folder and the marker of each environment that was made."""
    root = platformdirs.user_data_path("pytorch-setup-assistant", appauthor=False) / "envs"
    folders = sorted(path.parent for path in root.glob(f"*/{MARKER}"))
    for folder in dict.fromkeys([*folders, *environments_with_kernels()]):
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
        size=_size(folder),
        health=health,
        differs=differs,
        kernels=tuple(environments_with_kernels().get(folder, ())),
    )


def _size(folder: Path) -> int:
    """Sum the files; one with several names below the folder counts once."""
    seen: dict[int, int] = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            told = (Path(root) / name).lstat()
            seen[told.st_ino] = told.st_size
    return sum(seen.values())
