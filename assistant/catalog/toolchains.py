"""What extensions of PyTorch are compiled with: nvcc of each CUDA, the compilers that it takes, how to get one."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from assistant.catalog.catalog import load_catalog
from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record


class Toolkit(Record, frozen=True):
    """CUDA's compiler in one release: the newest GCC that it takes, and what Visual C++ is too new.

    `requirement` names the wheels of PyPI that hold a whole nvcc, "" where there are none. `cl` is the first version of
    Visual C++'s compiler that is refused ("19.50"), "" for unknown.
    """

    cuda: str
    gcc: int
    cl: str = ""
    requirement: str = ""

    def takes_gcc(self, version: str) -> bool | None:
        """Return whether nvcc takes a GCC ("12.2.0"); None for a version that is not known ("")."""
        return major(version) <= self.gcc if version else None


class Headers(Record, frozen=True):
    """The oldest GCC that the C++ headers of some releases of torch take."""

    torch: str
    gcc: int


class CompilerSource(Record, frozen=True):
    """The command that installs a C++ compiler; `names` are the beginnings of a distribution's name, () for any."""

    system: str
    command: str
    names: tuple[str, ...] = ()


class ToolchainTables(Record, frozen=True):
    """The file of toolchains."""

    toolkits: Table[Toolkit]
    headers: Table[Headers]
    compilers: Table[CompilerSource]


def major(version: str) -> int:
    """Return the first number of a compiler's version."""
    return int(version.partition(".")[0])


_NO_CUDA = ("cpu", "rocm", "xpu", "directml", "amd-index")


def cuda_of(variant: str, torch: str = "", os: str | None = None, arch: str | None = None) -> str | None:
    """Return the CUDA that a build of torch is for ("13.0"), "" for none, None for unknown.

    `variant` is a tag such as "cu130", "nightly/cu130" or "pypi"; that one has the CUDA of its release and system.
    """
    platform = f"{os}_{'amd64' if (os, arch) == ('windows', 'x86_64') else arch}"
    tag = load_catalog().build_of(torch, variant, platform) if variant != "pypi" or (torch and os and arch) else ""
    digits = tag.removeprefix("cu")
    if tag.startswith("cu") and digits.isdigit():
        return f"{digits[:-1]}.{digits[-1]}"
    return "" if tag.startswith(_NO_CUDA) else None


def oldest_gcc(torch: str) -> int:
    """Return the oldest GCC that can compile against a release of torch, 0 where none is known to be too old."""
    rows = read_tables("toolchains", ToolchainTables).headers.rows
    return max(
        (row.gcc for row in rows if torch and SpecifierSet(row.torch).contains(torch, prereleases=True)), default=0
    )


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
