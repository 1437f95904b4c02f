"""What a bundle holds, as its file `bundle.json` says it: every file, who gets what, and who gets nothing."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Literal

from assistant import __version__
from assistant.host.files import read_plain, write_whole
from assistant.i18n import Text, _, render
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.privacy import Policy, redact

MANIFEST = "bundle.json"
WHEELS, LOCKS, REPORTS, PYTHONS, UVS, OWN = "wheels", "locks", "reports", "python", "uv", "assistant"


class File(Record, frozen=True):
    """One file: its path below the bundle's folder, with slashes, its SHA-256 and its size in bytes."""

    path: str
    sha256: str
    bytes: int


class Kind(Record, frozen=True, omit_defaults=False):
    """Machines that get the same: their names, the plan, the path of its lock, and the Python that it needs.

    `machine` holds what the lock was made for: system, architecture, C library, and the release of macOS. `files` are
    the paths of all that such a machine needs beside its platform's.
    """

    key: str
    title: str
    machines: tuple[str, ...]
    plan: Plan
    lock: str
    python: str
    machine: Machine
    platform: str
    files: tuple[str, ...]


class Without(Record, frozen=True):
    """A machine that gets nothing, and why."""

    machine: str
    why: Text


class Bundle(Record, frozen=True, omit_defaults=False):
    """The content of `bundle.json`; `made` is "" while the bundle is not finished.

    `pythons` are those that it carries, by platform: {"windows-x86_64": ["3.12"]}; `platforms` are the paths of what
    every machine of a platform needs: uv, its Pythons, the assistant's own packages, the start scripts.
    """

    schema: Literal[1] = 1
    made: str = ""
    assistant: str = __version__
    files: tuple[File, ...] = ()
    kinds: tuple[Kind, ...] = ()
    without: tuple[Without, ...] = ()
    pythons: dict[str, tuple[str, ...]] = {}
    platforms: dict[str, tuple[str, ...]] = {}

    @property
    def size(self) -> int:
        """The size of all files together, in bytes."""
        return sum(file.bytes for file in self.files)


_NAME_A_BUNDLE = _("Name the folder that `assistant bundle make` has written.")


def read_bundle(folder: Path, hint: Text = _NAME_A_BUNDLE) -> Bundle:
    """Read the `bundle.json` of a folder.

    Raises `BadInput` for a file that is none, and for a folder without one; `hint` is the next step then.
    """
    try:
        bundle = from_json(read_plain(folder / MANIFEST), Bundle, MANIFEST)
    except OSError as error:
        raise BadInput(
            _("{folder} is not a bundle: it has no {file}.", folder=folder, file=MANIFEST), hint=hint
        ) from error
    for path in (*(file.path for file in bundle.files), *(kind.lock for kind in bundle.kinds)):
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in path or ":" in path:
            raise BadInput(
                _("{file} names a file outside the bundle: {path}", file=MANIFEST, path=path),
                hint=_("Do not use this bundle; make a new one."),
            )
    return bundle


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write `bundle.json`, without passwords and in plain words. Raises `OSError`."""
    plain = replace(bundle, without=tuple(replace(one, why=render(one.why)) for one in bundle.without))
    write_whole(folder / MANIFEST, to_json(redact(plain, Policy.USABLE), indent=1) + "\n")
