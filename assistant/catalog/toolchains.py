"""What extensions of PyTorch are compiled with: nvcc of each CUDA, the compilers that it takes, how to get one."""

from __future__ import annotations

from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record


class Toolkit(Record, frozen=True):
    """CUDA's compiler in one release: the newest GCC and Clang that it takes, and what Visual C++ is too new.

    `requirement` names the wheels of PyPI that hold a whole nvcc, "" where there are none; `systems` are the platforms
    of these wheels. `cl` is the first version of Visual C++'s compiler that is refused ("19.50"), "" for unknown.
    """

    cuda: str
    gcc: int
    clang: int
    cl: str = ""
    requirement: str = ""
    systems: tuple[str, ...] = ()


class CompilerSource(Record, frozen=True):
    """The command that installs a C++ compiler; `names` are the beginnings of a distribution's name, () for any."""

    system: str
    command: str
    names: tuple[str, ...] = ()


class ToolchainTables(Record, frozen=True):
    """The file of toolchains."""

    toolkits: Table[Toolkit]
    compilers: Table[CompilerSource]


def toolkits() -> dict[str, Toolkit]:
    """Return what is known of nvcc, by CUDA's version ("13.0")."""
    return {row.cuda: row for row in read_tables("toolchains", ToolchainTables).toolkits.rows}


def compiler_command(system: str | None, name: str | None) -> str:
    """Return the command that installs a C++ compiler on a system ("linux") with a name ("Ubuntu 24.04"), else ""."""
    rows = read_tables("toolchains", ToolchainTables).compilers.rows
    fitting = (row for row in rows if row.system == system and (not row.names or _begins(name, row.names)))
    return next((row.command for row in fitting), "")


def _begins(name: str | None, beginnings: tuple[str, ...]) -> bool:
    return (name or "").lower().startswith(beginnings)
