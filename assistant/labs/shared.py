"""What all learners of a machine share: one environment with torch and one folder of wheels, both read-only.

A learner's labs have environments of their own, but hardly a byte in them. uv takes packages out of a cache that was
filled beforehand, and links to its files. It also writes into its cache, so each learner has one, in which the folder
of unpacked wheels leads to the shared one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from assistant.host.files import read_plain, write_whole
from assistant.host.folders import user_cache
from assistant.host.live import LiveHost
from assistant.i18n import _
from assistant.install import interpreter
from assistant.model.errors import BadInput

VARIABLE = "ASSISTANT_LABS_SHARED"
TORCH, WHEELS, INDEX, CACHE, SHORT, STAMP = "torch", "wheels", "simple", "uv", "d", "stamp"
UNPACKED = "archive-v"  # begins the name of uv's folder of unpacked wheels, such as `archive-v0`
# uv's words where a wheel is not among the shared ones, and it may not write there: without the right, or in a sandbox.
_NOT_UNPACKED = ("distribution cache", f"/{UNPACKED}")
APART = {"UV_LINK_MODE": "copy"}  # how such a wheel is installed, in another cache


class Ended(Protocol):
    """How a command ended."""

    @property
    def status(self) -> int:
        """The exit status."""

    @property
    def text(self) -> str:
        """All that it printed."""


_E = TypeVar("_E", bound=Ended)
_Run = Callable[[list[str], Mapping[str, str], Path, float], _E]


@dataclass(frozen=True)
class Shared:
    """A folder that `labs prepare` has made."""

    folder: Path

    @property
    def torch(self) -> str:
        """The Python of the environment with torch."""
        return str(interpreter(self.folder / TORCH))

    @property
    def setting(self) -> str:
        """The variable that makes labs use the folder, with its value."""
        return f"{VARIABLE}={self.folder}"

    @property
    def index(self) -> str:
        """The address of the folder of wheels."""
        return (self.folder / INDEX).as_uri()

    @property
    def variables(self) -> dict[str, str]:
        """What makes uv and pip take packages from here, and Python leave no compiled files beside links."""
        return {
            "UV_LINK_MODE": "symlink",
            "UV_INDEX": self.index,  # the user's own indexes are asked only for what this one does not hold
            "UV_INDEX_STRATEGY": "first-index",
            "PIP_INDEX_URL": self.index,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def lead(self, cache: Path) -> Path:
        """Make a cache of uv that leads to the shared one, and return it."""
        cache.mkdir(parents=True)
        for place in (self.folder / CACHE).iterdir():
            if place.name.startswith(UNPACKED):
                (cache / place.name).symlink_to(place)
            elif place.is_dir():
                shutil.copytree(place, cache / place.name, symlinks=True)
            else:
                write_whole(cache / place.name, read_plain(place))
        return cache

    def sparing(self, run: _Run[_E]) -> _Run[_E]:
        """Return how a learner's commands run: as by `run`, but what is installed takes hardly any room."""
        cache = self._cache_of_user()

        def linked(argv: list[str], variables: Mapping[str, str], folder: Path, limit: float) -> _E:
            done = run(argv, {**variables, "UV_CACHE_DIR": str(cache)}, folder, limit)
            if is_not_shared(done):
                return run(argv, {**variables, **APART}, folder, limit)
            if "pip" in argv:
                self._shorten(folder, cache)
            return done

        return linked

    def _cache_of_user(self) -> Path:
        """Return this user's own cache of uv, made when the shared folder is new to them."""
        place = user_cache() / "labs-uv" / (self.folder / STAMP).read_text(encoding="ascii").strip()
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=place.parent, prefix=".") as part, suppress(OSError):
                self.lead(Path(part, "uv")).rename(place)  # fails where another lab of this user was faster
        return place

    def _shorten(self, folder: Path, cache: Path) -> None:
        """Let the links in a folder lead here by short names, which take no room of their own on the disk.

        ext4 keeps a name of up to 59 bytes with the link itself, and gives a longer one a block of 4 KiB:
        https://www.kernel.org/doc/html/latest/filesystems/ext4/ifork.html
        """
        for inside, _folders, files in os.walk(folder):
            for path in (Path(inside, file) for file in files):
                target = path.readlink() if path.is_symlink() else path
                if target.is_relative_to(cache):
                    short = self.folder / SHORT / short_name(target.parent.relative_to(cache))
                    if short.exists():  # else uv has unpacked something that was not prepared
                        path.unlink()
                        path.symlink_to(short / target.name)


def shared() -> Shared | None:
    """Return the folder that the variable names, None where it is not set; raise `BadInput` for any other folder."""
    named = LiveHost().variable(VARIABLE).text
    if not named:
        return None
    if not Path(named, STAMP).is_file():
        raise BadInput(
            _("{name} names {folder}, which holds nothing for the labs.", name=VARIABLE, folder=named),
            hint=_("Make it with: {command}", command="assistant labs prepare --shared DIR"),
        )
    return Shared(Path(named).resolve())


def is_not_shared(done: Ended) -> bool:
    """Return whether a command of uv failed because it had to unpack a wheel that is not among the shared ones."""
    return bool(done.status) and any(words in done.text for words in _NOT_UNPACKED)


def short_name(folder: Path) -> str:
    """Return the short name of one of the cache's folders."""
    return hashlib.sha256(folder.as_posix().encode()).hexdigest()[:8]
