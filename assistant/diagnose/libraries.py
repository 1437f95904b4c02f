"""The table of who owns what a loader misses: libraries, symbols, modules; and of who asks for it."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from assistant.catalog.companions import companion
from assistant.diagnose.tables import table
from assistant.model.record import Record

# The parts of a library's file name: what it is called, and its version.
#   libcublas.so.12   libavutil.58.dylib   cublas64_12.dll   nvinfer_10.dll   avutil-58.dll   cudart64_110.dll
_UNIX = re.compile(
    r"(?:lib)?(.{1,80}?)(?:\.cpython-[\w-]{1,60}|\.abi3)?\.(?:so(?:\.([\d.]{1,12}))?|(?:([\d.]{1,12})\.)?dylib)"
)
_WINDOWS = re.compile(
    r"(?:lib)?(.{1,80}?)(?:(?:64)?[_-](\d{1,4})(?:[_.]\d{1,4}){0,3})?(?:\.cp3\d{1,2}-\w{3,20})?\.(?:dll|pyd)"
)
_THREE_DIGITS = 100  # cudart64_110.dll is of CUDA 11.0


class Library(Record, frozen=True):
    """A row of libraries: `names` is a pattern of what their files are called, `owner` is for people.

    `kind` groups those that are judged alike; `had` is how one gets them. `wheels` and `folders` are by CUDA's major,
    `cuda` tells the CUDA majors of the library's own where the numbers differ. `packages` have it in distributions, by
    the manager: "deb", "rpm" and "arch".
    """

    names: str
    owner: str
    kind: str
    had: Literal["wheel", "system", "driver", "toolkit"]
    wheels: dict[str, str] = {}
    folders: dict[str, str] = {}
    cuda: dict[str, tuple[int, ...]] = {}
    packages: dict[str, str] = {}

    def cuda_majors(self, major: int | None) -> tuple[int, ...]:
        """Return the CUDA majors that a version of this library belongs to; () where none is told."""
        return () if major is None else self.cuda.get(str(major), () if self.cuda else (major,))


class Symbol(Record, frozen=True):
    """A row of symbols: `names` is a pattern of their beginnings."""

    names: str
    owner: str
    kind: str


class Requester(Record, frozen=True):
    """A row of those who ask: `words` is a pattern of how files, frames and people call them."""

    words: str
    package: str
    kind: str


class _File(Record, frozen=True):
    as_of: str
    source: str
    library: tuple[Library, ...]
    symbol: tuple[Symbol, ...]
    requester: tuple[Requester, ...]
    generations: tuple[str, ...]
    modules: dict[str, str]


class Named(NamedTuple):
    """A library's file name, taken apart, and the row that owns it; None for a library that the table lacks."""

    file: str
    stem: str
    major: int | None
    row: Library | None


def _file() -> _File:
    return table("libraries.toml", _File)


@cache
def library(file: str) -> Named:
    """Look up a library by its file name in lower case, such as "libcublas.so.12"."""
    found = _UNIX.fullmatch(file) or _WINDOWS.fullmatch(file)
    stem, version = (found[1], next(filter(None, found.groups()[1:]), "")) if found else (file, "")
    number = int(version.partition(".")[0]) if version[:1].isdigit() else None
    major = number // 10 if number and number >= _THREE_DIGITS and stem in {"cudart", "nvrtc"} else number
    row = next((row for row in _file().library if re.fullmatch(row.names, stem)), None)
    return Named(file, stem, major, row)


@cache
def symbol_kind(name: str) -> str:
    """Return whose kind an undefined symbol is, in lower case; "" for nobody's that is known."""
    return next((row.kind for row in _file().symbol if re.match(row.names, name)), "")


def requester_in(text: str) -> Requester | None:
    """Return who is named in a text; the last one where there are several, as the nearest to what follows."""
    found = [(match.end(), row) for row in _file().requester for match in re.finditer(row.words, text)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def requester_of(packages: frozenset[str]) -> Requester | None:
    """Return who asks for CUDA's libraries among installed packages, where just one of them can."""
    rows = {row.package: row for row in _file().requester if row.kind in {"onnxruntime", "cuda-user"}}
    there = list(
        {row.package: row for row in rows.values() for name in packages if re.search(row.words, name)}.values()
    )
    return there[0] if len(there) == 1 else None


def distributions() -> frozenset[str]:
    """Return the distributions that the table names: of libraries, of those who ask, of modules."""
    wheels = (name for row in _file().library for name in row.wheels.values())
    asking = (row.package for row in _file().requester)
    return frozenset((*wheels, *asking, *_file().modules.values(), *_file().generations))


def moves(package: str) -> bool:
    """Return whether a distribution is a companion whose names others miss in another release of it."""
    return package in _file().generations or companion(package) is not None


def package_of(module: str) -> str:
    """Return the distribution of a module, by its first part: "flash_attn.bert" is of flash-attn."""
    first = module.partition(".")[0]
    return _file().modules.get(first, first.replace("_", "-"))
