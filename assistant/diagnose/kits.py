"""What a build needs on this machine: CUDA's toolkit, a compiler that its nvcc takes, headers, the package's source."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from assistant.catalog import load_catalog
from assistant.diagnose.missing import pairs
from assistant.diagnose.rules import table
from assistant.diagnose.surroundings import Surroundings
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


def kits() -> _File:
    """Read the shipped tables, once; raise `BadInput` naming what is wrong in them."""
    return table("kits.toml", _File)


def supposed_cuda(*, new_card: bool = False) -> str:
    """Return the newest CUDA that an NVIDIA driver is taken to run of which nobody tells."""
    return kits().driver["new_card" if new_card else "usual"]


def cuda_wanted(case: Surroundings) -> str:
    """Return the CUDA that a build must be made with: what the message says of PyTorch, or PyTorch's own; "" else."""
    told = next((one.wanted for one in pairs(case.text) if one.subject == "nvcc" and re.match(r"\d", one.wanted)), "")
    found = _BUILD.search(case.text)
    return told or case.torch_cuda or (f"{found[1]}.{found[2]}" if found else "")


def kit_names(case: Surroundings) -> dict[str, str]:
    """Name the packages that hold CUDA's compiler for this machine: conda's, the distribution's, Windows' installer."""
    cuda, system = cuda_wanted(case), case.machine.os
    shell = system != "windows"
    version = cuda or (f"$({_OWN})" if shell else "")
    names = {"cuda": cuda}
    if CONDA.search(case.text) and version:
        names["conda_kit"] = f'"nvidia/label/cuda-{version}.0::cuda-toolkit"'
    name = (case.machine.os_version or "").lower()
    folder = next((one for start, one in kits().repositories.items() if name.startswith(start)), "")
    if folder and system == "linux" and _has(folder, cuda):
        dashed = cuda.replace(".", "-") or f"$({_OWN} | tr . -)"
        kind = "rpm_kit" if folder.startswith("rhel") else "deb_kit"
        names |= {kind: f"cuda-toolkit-{dashed}", "repository": folder, "kit_home": f"/usr/local/cuda-{version}"}
    if system == "windows" and cuda:
        names["windows_kit"] = cuda
    return {name: value for name, value in names.items() if value}


def _has(folder: str, cuda: str) -> bool:
    """Return whether a folder of NVIDIA's repository has a CUDA; True where the shell asks PyTorch for its version."""
    least, most = kits().oldest.get(folder, "0"), kits().newest.get(folder, "99")
    return not cuda or Version(least) <= Version(cuda) <= Version(most)


def nvcc_there(case: Surroundings) -> Toolkit | None:
    """Return what is known of the nvcc that a build calls; None where the log does not tell it."""
    found = _NVCC.search(case.text)
    version = next(filter(None, found.groups()), "") if found else ""
    version = version or cuda_wanted(case)
    return next((one for one in kits().toolkit if one.cuda == version), None)


def compiler_names(case: Surroundings) -> dict[str, str]:
    """Name the newest g++ and the toolset of Visual C++ that nvcc takes, and the oldest g++ that PyTorch takes."""
    kit = nvcc_there(case)
    torch = case.torch.partition("+")[0] or load_catalog().releases[0].version
    fitting = (row.gcc for row in kits().torch_headers if SpecifierSet(row.torch).contains(torch, prereleases=True))
    names = {"least_gcc": str(max(fitting, default=9))}
    if kit is None:
        return names
    names |= {"nvcc": kit.cuda, "most_gcc": str(kit.gcc)}
    sets = [one for one in kits().toolset if Version(one.below) <= Version(kit.cl)]
    best = max(sets, key=lambda one: Version(one.below), default=None)
    if best is None:
        return names
    names |= {"toolset": best.version, "component": best.component}
    return {**names, **({"older_component": best.component} if best.below != kits().toolset[-1].below else {})}


def compiler_command(machine: Machine) -> str:
    """Return the command that installs a C++ compiler on a machine's system, "" where none is known."""
    name = (machine.os_version or "").lower()
    rows = (
        row for row in kits().compiler if row.system == machine.os and (not row.names or name.startswith(row.names))
    )
    return next((row.command for row in rows), "")


def header_names(case: Surroundings) -> dict[str, str]:
    """Return the placeholders `headers_url`, `headers_file` and `portable` for a portable Python on Windows.

    Such a Python lacks the folders with its C headers and libraries: the first two name the archive that holds them,
    the last one the folder of that Python. {} where no archive is known for its version.
    """
    python = ".".join((case.machine.python or "").split(".")[:2])
    tag = re.search(r"cp3(\d{1,2})-win", case.text)
    archive = kits().headers.get(f"3.{tag[1]}" if tag else python)
    if not archive:
        return {}
    lines = (line for _number, line in case.log.lines)
    folder = next((found[1] for line in lines if (found := _PORTABLE.search(line.replace("\\\\", "\\")))), "")
    prompt = next(
        (one[1] for one in re.finditer(r"(?:^|\n)(?:ps )?([a-z]:\\[\w .()+\\-]{2,120}?python\w{0,12})>", case.text)), ""
    )
    portable = folder or prompt or "python_embeded"
    return {"headers_url": f"{kits().headers_at}{archive}", "headers_file": archive, "portable": portable}


def source_of(package: str) -> str:
    """Return what pip builds a package from: its address where PyPI does not have its source, else its name."""
    return kits().sources.get(package, package)
