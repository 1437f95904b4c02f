"""Checks a bundle: every byte of every file, and what lies beside them."""

from __future__ import annotations

from pathlib import Path

from assistant.bundle.folder import digests
from assistant.bundle.manifest import MANIFEST, REPORTS, Bundle
from assistant.host.process import CancelToken
from assistant.model.record import Record


class Checked(Record, frozen=True, omit_defaults=False):
    """What is wrong with a bundle: files that are missing, changed or foreign; `files` counts the right ones."""

    files: int
    bytes: int
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    finished: bool = True

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.finished and not (self.missing or self.changed or self.foreign)


def check(folder: Path, bundle: Bundle, cancel: CancelToken) -> Checked:
    """Compare a folder with what its `bundle.json` says, byte by byte; the machines' reports are nobody's concern."""
    found = digests(folder, (file.path for file in bundle.files), cancel)
    wrong = [file.path for file in bundle.files if found[file.path] != file.sha256]
    missing = tuple(path for path in wrong if not (folder / path).is_file())
    return Checked(
        files=len(bundle.files) - len(wrong),
        bytes=bundle.size,
        missing=missing,
        changed=tuple(path for path in wrong if path not in missing),
        foreign=tuple(sorted(_there(folder) - {file.path for file in bundle.files})),
        finished=bool(bundle.made),
    )


def _there(folder: Path) -> set[str]:
    """Name all files of a folder but the bundle's own list and the machines' reports."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.as_posix() for path in paths if path.parts[0] not in {MANIFEST, REPORTS}}
