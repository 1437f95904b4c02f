"""What a build needs on this machine: CUDA's toolkit, a compiler that its nvcc takes, headers, the package's source."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from assistant.catalog import load_catalog
from assistant.diagnose.facts import LogContext
from assistant.diagnose.missing import pairs
from assistant.diagnose.rules import table
from assistant.model.machine import Machine
from assistant.model.record import Record

# What shows that the program runs in an environment of conda: its folders, its commands.
CONDA = re.compile(
    r"(?:mini|ana)conda|mini(?:forge|mamba)|micromamba|\.conda[\\/]|\bconda |[\\/]envs[\\/]|installer_files[\\/]env"
)
# nvcc: release 11.5, V11.5.119     …\CUDA\v11.8\bin\nvcc     /usr/local/cuda-12.4/bin/nvcc     nvcc V12.6.20
_NVCC = re.compile(
    r"compilation tools, release (1\d\.\d)|cuda[\\/]v(1\d\.\d)[\\/](?:bin|include)|cuda-(1\d\.\d)[\\/](?:bin|include)"
    r"|nvcc v?(1\d\.\d)"
)
_BUILD = re.compile(r"\+?\bcu(1\d)(\d)\b")
_PORTABLE = re.compile(r"([a-z]:\\[\w .()+\\-]{0,200}?)\\(?:lib\\site-packages|python\.exe)", re.IGNORECASE)
_OWN = 'python -c "import torch; print(torch.version.cuda)"'  # read by the shell, where nobody told the version


class Toolkit(Record, frozen=True):
    """CUDA's compiler in one release: the newest GCC that it takes, and the first Visual C++ (`cl`) that it refuses."""

    cuda: str
    gcc: int
    cl: str


class _Headers(Record, frozen=True):
    """The oldest GCC that the C++ headers of some releases of torch take."""

    torch: str
    gcc: int


class _Compiler(Record, frozen=True):
    """The command that installs a C++ compiler; `names` are beginnings of a distribution's name, () for any."""

    system: str
    command: str
    names: tuple[str, ...] = ()


class Toolset(Record, frozen=True):
    """A toolset of Visual C++ whose compiler stands `below` a version, and its installer's component."""

    below: str
    version: str
    component: str


class _File(Record, frozen=True):
    as_of: str
    source: str
    headers_at: str
    onnxruntime_for_cudnn_8: str
    driver: dict[str, str]
    toolkit: tuple[Toolkit, ...]
    torch_headers: tuple[_Headers, ...]
    compiler: tuple[_Compiler, ...]
    toolset: tuple[Toolset, ...]
    headers: dict[str, str]
    repositories: dict[str, str]
    oldest: dict[str, str]
    newest: dict[str, str]
    sources: dict[str, str]
    steady: dict[str, str]
    ffmpeg: dict[str, str]
    images: dict[str, str]


def kit_tables() -> _File:
    """Return the shipped tables of kits.toml, read once; raise `BadInput` naming what is wrong in them."""
    return table("kits.toml", _File)


def supposed_cuda(*, new_card: bool = False) -> str:
    """Return the newest CUDA, such as "13.0", that an NVIDIA driver of unknown version is assumed to run."""
    return kit_tables().driver["new_card" if new_card else "usual"]


def cuda_for_build(context: LogContext) -> str:
    """Return the CUDA that a build must be made with, such as "12.8"; "" if neither a message nor torch tells it."""
    told_cuda = next(
        (pair.wanted for pair in pairs(context.text) if pair.subject == "nvcc" and re.match(r"\d", pair.wanted)), ""
    )
    build_tag = _BUILD.search(context.text)
    return told_cuda or context.torch_cuda or (f"{build_tag[1]}.{build_tag[2]}" if build_tag else "")


def kit_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders of the packages that hold CUDA's compiler for this machine, without those unknown.

    They are `cuda` (its version), `conda_kit`, `deb_kit` or `rpm_kit` with NVIDIA's `repository` and the folder
    `kit_home`, and `windows_kit`. If the version is unknown, the shell asks torch for it, but not on Windows.
    """
    cuda, system = cuda_for_build(context), context.machine.os
    shell = system != "windows"
    version = cuda or (f"$({_OWN})" if shell else "")
    names = {"cuda": cuda}
    if CONDA.search(context.text) and version:
        names["conda_kit"] = f'"nvidia/label/cuda-{version}.0::cuda-toolkit"'
    distribution = (context.machine.os_version or "").lower()
    repository = next(
        (folder for prefix, folder in kit_tables().repositories.items() if distribution.startswith(prefix)),
        "",
    )
    if repository and system == "linux" and _has_release(repository, cuda):
        dashed = cuda.replace(".", "-") or f"$({_OWN} | tr . -)"
        kind = "rpm_kit" if repository.startswith("rhel") else "deb_kit"
        names |= {kind: f"cuda-toolkit-{dashed}", "repository": repository, "kit_home": f"/usr/local/cuda-{version}"}
    if system == "windows" and cuda:
        names["windows_kit"] = cuda
    return {name: value for name, value in names.items() if value}


def _has_release(folder: str, cuda: str) -> bool:
    """Return whether a folder of NVIDIA's repository has a CUDA; True if that is "", since the shell asks for it."""
    oldest, newest = kit_tables().oldest.get(folder, "0"), kit_tables().newest.get(folder, "99")
    return not cuda or Version(oldest) <= Version(cuda) <= Version(newest)


def find_nvcc(context: LogContext) -> Toolkit | None:
    """Return the row of the nvcc that a build calls, or of the CUDA it needs if that is not told; None if unknown."""
    match = _NVCC.search(context.text)
    version = next(filter(None, match.groups()), "") if match else ""
    version = version or cuda_for_build(context)
    return next((toolkit for toolkit in kit_tables().toolkit if toolkit.cuda == version), None)


def compiler_names(context: LogContext) -> dict[str, str]:
    """Return placeholders of compilers for a build: `least_gcc` that torch takes, and those that the nvcc takes.

    These are `nvcc` (its version), `most_gcc`, `toolset` and `component` of Visual C++, and `older_component` if the
    newest toolset is not accepted; they are missing if the nvcc is unknown.
    """
    toolkit = find_nvcc(context)
    torch = context.torch.partition("+")[0] or load_catalog().releases[0].version
    fitting = (
        row.gcc for row in kit_tables().torch_headers if SpecifierSet(row.torch).contains(torch, prereleases=True)
    )
    names = {"least_gcc": str(max(fitting, default=9))}
    if toolkit is None:
        return names
    names |= {"nvcc": toolkit.cuda, "most_gcc": str(toolkit.gcc)}
    accepted_toolsets = [toolset for toolset in kit_tables().toolset if Version(toolset.below) <= Version(toolkit.cl)]
    newest_toolset = max(accepted_toolsets, key=lambda toolset: Version(toolset.below), default=None)
    if newest_toolset is None:
        return names
    names |= {"toolset": newest_toolset.version, "component": newest_toolset.component}
    return {
        **names,
        **(
            {"older_component": newest_toolset.component}
            if newest_toolset.below != kit_tables().toolset[-1].below
            else {}
        ),
    }


def compiler_command(machine: Machine) -> str:
    """Return the command that installs a C++ compiler on a machine's system; "" if none is known."""
    distribution = (machine.os_version or "").lower()
    rows = (
        row
        for row in kit_tables().compiler
        if row.system == machine.os and (not row.names or distribution.startswith(row.names))
    )
    return next((row.command for row in rows), "")


def header_names(context: LogContext) -> dict[str, str]:
    """Return values for the placeholders `headers_url`, `headers_file` and `portable` for a portable Python on Windows.

    Such a Python lacks the folders with its C headers and libraries: the first two name the archive that holds them,
    the last one the folder of that Python. {} if no archive is known for its version.
    """
    python = ".".join((context.machine.python or "").split(".")[:2])
    tag = re.search(r"cp3(\d{1,2})-win", context.text)
    archive = kit_tables().headers.get(f"3.{tag[1]}" if tag else python)
    if not archive:
        return {}
    lines = (line for _number, line in context.log.lines)
    folder = next((match[1] for line in lines if (match := _PORTABLE.search(line.replace("\\\\", "\\")))), "")
    prompt = next(
        (
            prompt_line[1]
            for prompt_line in re.finditer(
                r"(?:^|\n)(?:ps )?([a-z]:\\[\w .()+\\-]{2,120}?python\w{0,12})>", context.text
            )
        ),
        "",
    )
    portable = folder or prompt or "python_embeded"
    return {"headers_url": f"{kit_tables().headers_at}{archive}", "headers_file": archive, "portable": portable}


def source_of(package: str) -> str:
    """Return what pip builds a package from: the address of its source if PyPI does not have it, else its name."""
    return kit_tables().sources.get(package, package)
