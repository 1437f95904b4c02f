"""How a table of the catalogue is stored and read, and the tables that the user refreshed.

A data file holds tables by name. A table is rows of one kind with their source and date, and `defaults` for the keys
that only some rows have. Rows that code reads by field are decoded strictly into their own record, all others into
`Row`. What a refresh brought is one file in the user's data folder, used as a whole or, with any fault, not at all; of
each table the newer one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from assistant.host.files import read_regular, user_data, write_atomically
from assistant.i18n import Text, _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import Record, from_json, to_json

FAMILY = ("torchvision", "torchaudio")  # whose pairs with torch stand in the rows of its releases
CORE = frozenset({"torch", *FAMILY})


class DatedRow(Record, frozen=True):
    """A row that a refresh can bring up to date; `as_of` is the day it was read, where that is not its table's."""

    as_of: str = ""


class Macos(Record, frozen=True):
    """The oldest macOS that loads a wheel, and the oldest on which its MPS backend works."""

    wheel: str
    mps: str


class TorchRelease(DatedRow, frozen=True, kw_only=True):
    """One release: per platform its Python tags ("312", "313t") and its variants, best first where all else is equal.

    `pythons["any"]` holds for platforms that are not named; `unconfirmed` are variants that no index has been seen
    to hold; `pypi` is the variant that plain PyPI serves; `glibc` keys are "linux", a platform, or platform/variant;
    `mb` is the size of the PyPI wheel in MB.
    """

    version: str
    date: str
    pythons: dict[str, tuple[str, ...]]
    variants: dict[str, tuple[str, ...]]
    pypi: dict[str, str]
    glibc: dict[str, str]
    macos: Macos
    unconfirmed: dict[str, tuple[str, ...]] = {}
    torchvision: tuple[str, ...] = ()
    torchaudio: tuple[str, ...] = ()
    mb: dict[str, int] = {}


class AmdRelease(DatedRow, frozen=True, kw_only=True):
    """A torch release for ROCm `rocm` on one of AMD's indexes; `adrenalin` is the Windows driver that AMD advises."""

    torch: str
    rocm: str
    index: str
    systems: tuple[Literal["linux", "windows"], ...]
    pythons: tuple[str, ...]
    glibc: str
    adrenalin: str = ""


class Driver(Record, frozen=True):
    """The oldest NVIDIA driver on which a variant runs, and the one that came with its toolkit (`full_*`)."""

    variant: str
    linux: str
    windows: str
    full_linux: str | None = None
    full_windows: str | None = None


class BuildCode(Record, frozen=True):
    """The code in a variant's wheels from torch `first` to `last` (minor versions).

    `sm` is the machine code of a CUDA build for a platform and `ptx` what a driver can compile on, `gfx` the targets
    that work with a ROCm build for Linux.
    """

    variant: str
    first: str
    last: str
    platform: str = ""
    sm: tuple[int, ...] = ()
    ptx: int | None = None
    gfx: tuple[str, ...] = ()


class SystemNeed(Record, frozen=True):
    """Something that must be on the system, by its key in needs.json; `what` is its version."""

    key: str
    what: str = ""


class Trial(Record, frozen=True):
    """Lines of Python that show that something works; `on_cpu` says whether they run without a GPU, None is unknown."""

    call: str
    on_cpu: bool | None = None


_DATA = Path(__file__).with_name("data")
R = TypeVar("R")


class Row(dict[str, Any]):
    """A row that is only looked up: its keys are attributes; one that the table does not have is an error."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the table decides
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this table has no {name!r}, only {', '.join(self)}") from None


class Table(Record, Generic[R], frozen=True):
    """Rows of one kind; `source` names where they were read, `as_of` the day (YYYY-MM-DD)."""

    source: str
    as_of: str
    rows: tuple[R, ...]
    defaults: dict[str, Any] = {}


@cache
def _read_data_file(file: str) -> dict[str, msgspec.Raw]:
    """Return the tables of a data file of the package, which is named without its suffix, by name, not decoded yet."""
    return from_json((_DATA / f"{file}.json").read_bytes(), dict[str, msgspec.Raw], file)


@cache
def load_table(name: str, kind: type[R]) -> Table[R]:
    """Return a table of the package, such as "torch.releases", decoded into rows of `kind`.

    A fault in it raises `BadInput` with the names of the table and of the key.
    """
    file, _dot, title = name.partition(".")
    return from_json(bytes(_read_data_file(file)[title]), Table[kind], name)  # type: ignore[valid-type]


@cache
def rows(name: str) -> tuple[Row, ...]:
    """Return the rows of a table of the package that is only looked up, such as "rocm.families".

    Defaults are filled in. All must have the same keys then, so that a slip of the pen in one row is never a silent
    default: `BadInput` is raised for it.
    """
    table = load_table(name, dict[str, Any])
    found = tuple(Row({**table.defaults, **row}) for row in table.rows)
    odd = next((row for row in found if row.keys() != found[0].keys()), None)
    if odd:
        raise BadInput(f"{name}: a row has other keys than the first one: {', '.join(odd)}")
    return found


class _File(Record, frozen=True, rename={"releases": "torch.releases", "amd_releases": "rocm.amd_releases"}):
    """The user's file: the tables that a refresh brings up to date."""

    releases: Table[TorchRelease] | None = None
    amd_releases: Table[AmdRelease] | None = None


@dataclass(frozen=True, eq=False)
class UserTables:
    """The user's tables that are no older than the package's, by name; `remark` says why none can be used."""

    tables: Mapping[str, Table[Any]]
    remark: Text = ""


def refreshed_path() -> Path:
    """Return the path of the file of tables that this user refreshed."""
    return user_data() / "catalog.json"


@cache
def user_tables() -> UserTables:
    """Return the tables that this user refreshed, but those older than the package's; read once per process.

    If the file cannot be used there are none, and the remark says why.
    """
    path = refreshed_path()
    try:
        read = from_json(read_regular(path), _File, path.name)
    except FileNotFoundError:
        return UserTables({})
    except (OSError, BadInput) as error:
        remark = _(
            "The refreshed tables in {path} are not used, `assistant catalog refresh` makes new ones: {reason}",
            "refreshed-tables-not-used",
            path=path,
            reason=error.message if isinstance(error, BadInput) else str(error),
        )
        return UserTables({}, remark)
    tables = (("torch.releases", TorchRelease, read.releases), ("rocm.amd_releases", AmdRelease, read.amd_releases))
    return UserTables({name: new for name, kind, new in tables if new and new.as_of >= load_table(name, kind).as_of})


def write_tables(tables: Mapping[str, Table[Any]]) -> Path:
    """Write refreshed tables by their names, such as "torch.releases", and return the path of the file.

    What was refreshed before stays beside them. Raises `WorkFailed` where the file cannot be written.
    """
    user_tables.cache_clear()  # another process may have refreshed since this one began
    path = refreshed_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, to_json({**user_tables().tables, **tables}, indent=1))
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be written: {reason}.", path=error.filename or path, reason=error.strerror),
            hint=_("The tables stay as they are; make that folder writable and try again."),
        ) from error
    finally:
        user_tables.cache_clear()
    return path
