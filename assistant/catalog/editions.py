"""Editions of the tables: shipped with the assistant, refreshed by the user, installed as a distribution of data.

Of every data file the newest is in force, wherever it comes from. An edition beside the shipped one is a folder of data
files with a manifest; it is read whole and held to its checksums before any of it counts. None of its code is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import msgspec

from assistant.host.files import read_plain
from assistant.host.folders import installed_folders, user_data
from assistant.i18n import Message, Text, _, sentences
from assistant.model.errors import BadInput
from assistant.model.record import Record, decoder, from_json

DISTRIBUTION, PACKAGE = "torch-setup-catalogue", "torch_setup_catalogue"
MANIFEST = "manifest.json"
SCHEMA = 1  # of the manifest and of the tables' fields: one more wherever an older assistant could not read them
LIMIT = 16 << 20  # bytes, chosen: the largest file has 60 kB
_SHIPPED = Path(__file__).with_name("data")


class Origin(IntEnum):
    """Where an edition is from; of two that are as new, the later one here counts."""

    SHIPPED = 0
    INSTALLED = 1
    REFRESHED = 2


class Held(Record, frozen=True):
    """A data file of an edition; its name has no folder in it."""

    file: Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_-]+\.json\Z")]
    sha256: str


class Manifest(Record, frozen=True):
    """What an edition holds: its data files by name, such as "torch", and the newest day of their tables.

    `version` is that of the distribution, such as "2026.11.23".
    """

    schema: int
    as_of: date
    files: dict[str, Held]
    version: str = ""


class _Schema(msgspec.Struct):
    schema: int


class _Dated(msgspec.Struct):
    as_of: date


class _Version(msgspec.Struct):
    version: str


class _Rows(msgspec.Struct):
    rows: list[_Version]


class _Releases(msgspec.Struct):
    releases: _Rows


@dataclass(frozen=True, eq=False)
class Edition:
    """Data files from one place, by name; `texts` is empty for the shipped ones, which are read when asked for."""

    origin: Origin
    folder: Path
    texts: Mapping[str, bytes]
    version: str = ""

    @property
    def names(self) -> Iterable[str]:
        """Name the data files that it has."""
        return self.texts or data_files()

    def text(self, name: str) -> bytes:
        """Return a data file."""
        return self.texts[name] if self.texts else shipped_text(name)

    def day(self, name: str) -> date:
        """Return the newest day of a data file's tables."""
        return day_of(self.text(name), f"{name}.json")

    @cached_property
    def as_of(self) -> date:
        """The newest day of all its tables."""
        return max(map(self.day, self.names))


@dataclass(frozen=True, eq=False)
class Editions:
    """The editions that can be used, and why others cannot, by their folders."""

    whole: tuple[Edition, ...]
    aside: Mapping[Path, Message]

    @property
    def remark(self) -> Text:
        """Say which editions had to be passed over and why, "" for none."""
        return sentences(self.aside.values()) if self.aside else ""

    def of(self, name: str) -> Edition:
        """Return the edition whose data file of that name is in force."""
        holders = [edition for edition in self.whole if name in edition.names]
        if len(holders) == 1:
            return holders[0]
        return max(holders, key=lambda edition: (edition.day(name), edition.as_of, edition.origin))


class _Current:
    """What this process has found; `None` until it is asked for."""

    editions: Editions | None = None


def editions() -> Editions:
    """Return what there is; it is looked for and checked once per process."""
    if _Current.editions is None:
        _Current.editions = _found()
    return _Current.editions


def look_again() -> None:
    """Look for editions anew when they are next asked for."""
    _Current.editions = None


def pass_over(edition: Edition, reason: Text) -> None:
    """Use an edition no longer, since a table in it cannot be read."""
    now = editions()
    whole = tuple(one for one in now.whole if one is not edition)
    _Current.editions = Editions(
        whole, {**now.aside, edition.folder: _passed_over(edition.origin, edition.folder, reason)}
    )


def refreshed_folder() -> Path:
    """Name the folder of the tables that this user refreshed."""
    return user_data() / "catalog"


@cache
def data_files() -> tuple[str, ...]:
    """Name the shipped data files, without their suffix."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))


@cache
def shipped_text(name: str) -> bytes:
    """Read one shipped data file by its name without the suffix."""
    return (_SHIPPED / f"{name}.json").read_bytes()


def day_of(text: bytes, what: str) -> date:
    """Return the newest day of the tables in a data file; raise `BadInput` that names `what` where it is none."""
    try:
        return max(table.as_of for table in decoder(dict[str, _Dated]).decode(text).values())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadInput(_("{what} cannot be read: {reason}.", what=what, reason=str(error))) from error


def digest(text: bytes) -> str:
    """Return the SHA-256 of a data file, as manifests have it."""
    import hashlib  # noqa: PLC0415 - 3 ms of OpenSSL that who has the shipped tables alone need not pay

    return hashlib.sha256(text).hexdigest()


def _found() -> Editions:
    """Read what is installed and what was refreshed; what cannot be used is named."""
    whole, aside = [Edition(Origin.SHIPPED, _SHIPPED, {})], {}
    places = [(Origin.INSTALLED, folder) for folder in installed_folders(DISTRIBUTION, PACKAGE)]
    for origin, folder in (*places, (Origin.REFRESHED, refreshed_folder())):
        try:
            whole.append(_read(origin, folder))
        except FileNotFoundError as error:
            if error.filename != str(folder / MANIFEST) or origin is Origin.INSTALLED:
                aside[folder] = _passed_over(origin, folder, str(error))
        except OSError as error:
            aside[folder] = _passed_over(origin, folder, str(error))
        except BadInput as error:
            aside[folder] = _passed_over(origin, folder, error.message)
        except _NewerError:
            aside[folder] = _for_a_newer(origin, folder)
    return Editions(tuple(whole), aside)


class _NewerError(Exception):
    """The edition is for a newer assistant."""


def _read(origin: Origin, folder: Path) -> Edition:
    """Read an edition and hold it to its checksums; files that the assistant does not know are left alone.

    What is installed may be linked to, as uv's `--link-mode symlink` does; what the assistant wrote itself may not.
    """
    follow, place = origin is Origin.INSTALLED, str(folder / MANIFEST)
    text = read_plain(folder / MANIFEST, LIMIT, follow=follow)
    schema = from_json(text, _Schema, place).schema
    if schema > SCHEMA:
        raise _NewerError
    if schema < SCHEMA:
        raise BadInput(_("it was made for an older assistant."))
    manifest = from_json(text, Manifest, place)
    held = manifest.files
    texts = {}
    for name in data_files():
        if name in held:
            texts[name] = read_plain(folder / held[name].file, LIMIT, follow=follow)
            if digest(texts[name]) != held[name].sha256:
                raise BadInput(_("{file} differs from its checksum.", file=held[name].file))
            day_of(texts[name], held[name].file)
    if not texts:
        raise BadInput(_("{what} names no table.", what=MANIFEST))
    edition, shipped = Edition(origin, folder, texts, manifest.version), Edition(Origin.SHIPPED, _SHIPPED, {})
    if (
        "torch" in texts
        and edition.day("torch") >= shipped.day("torch")
        and (lost := _releases(shipped) - _releases(edition))
    ):
        raise BadInput(_("torch {version} is missing.", version=min(lost)))
    return edition


def _releases(edition: Edition) -> set[str]:
    return {row.version for row in from_json(edition.text("torch"), _Releases, "torch.json").releases.rows}


def _passed_over(origin: Origin, path: Path, reason: Text) -> Message:
    if origin is Origin.REFRESHED:
        return _(
            "The refreshed tables in {path} are passed over for the next newest, `assistant catalog refresh` makes new "
            "ones: {reason}",
            path=path,
            reason=reason,
        )
    return _(
        "The installed catalogue in {path} is passed over for the next newest, install {distribution} again: {reason}",
        path=path,
        distribution=DISTRIBUTION,
        reason=reason,
    )


def _for_a_newer(origin: Origin, path: Path) -> Message:
    if origin is Origin.REFRESHED:
        return _(
            "The refreshed tables in {path} are for a newer assistant: update the assistant to use them.", path=path
        )
    return _("The installed catalogue in {path} is for a newer assistant: update the assistant to use it.", path=path)


def manifest_of(texts: Mapping[str, bytes], files: Mapping[str, str], version: str = "") -> Manifest:
    """Describe data files by name, which lie under the file names given."""
    held = {name: Held(file=files[name], sha256=digest(text)) for name, text in texts.items()}
    as_of = max(day_of(text, name) for name, text in texts.items())
    return Manifest(schema=SCHEMA, as_of=as_of, files=held, version=version)
