"""Asks a host what it can compile extensions with: its C++ compilers, and the nvcc that PyTorch would take."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from assistant.host.base import Host

HOMES = ("CUDA_HOME", "CUDA_PATH")  # in this order PyTorch looks, then on PATH: torch/utils/cpp_extension.py
DEFAULT_HOME = "/usr/local/cuda"  # where it looks last
VERSION = ("-dumpfullversion", "-dumpversion")  # a Clang that does not know the first obeys the second
# Where Visual Studio's installer puts the program that knows all of them: https://github.com/microsoft/vswhere
VSWHERE = r"C:\Program Files (x86)\Microsoft Visual Studio\Installer\vswhere.exe"
VISUAL_CPP = ("-latest", "-products", "*", "-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64")
TOOLS_FILE = r"\VC\Auxiliary\Build\Microsoft.VCToolsVersion.default.txt"

# g++ -dumpfullversion -dumpversion prints "12.2.0", and Debian's Clang "14.0.6"
_VERSION = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){0,2})\s*")
# nvcc --version: "Cuda compilation tools, release 13.0, V13.0.88"
_RELEASE = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d{1,2})\b")
# Microsoft.VCToolsVersion.default.txt holds "14.44.35207"; that compiler calls itself 19.44 (_MSC_VER is 1944):
# https://learn.microsoft.com/cpp/overview/compiler-versions
_TOOLS = re.compile(r"\s*14\.(\d{2})\.\d{1,6}\s*")


class Nvcc(NamedTuple):
    """The nvcc that PyTorch would take: its CUDA ("13.0", "" for no nvcc, None for unknown) and who said so.

    `home` tells where CUDA_HOME or CUDA_PATH leads; None where neither is set, or that is unknown.
    """

    cuda: str | None = None
    source: str = ""
    home: Literal["ready", "missing", "no-nvcc"] | None = None


def find_compilers(host: Host) -> dict[str, str] | None:
    """Return the version of the C++ compiler that builds take, by its name: g++, on a Mac clang, on Windows cl.

    None where the host does not tell, {} where there is none; one that is there and does not tell its version has "".
    """
    system = host.facts("platform").get("system")
    if system == "Windows":
        return _visual_cpp(host)
    if system == "Darwin":
        tools = host.run("xcode-select", "-p")  # without them /usr/bin/clang is a stub that opens a dialog
        if not tools:
            return {} if tools.status in {"missing", "failed"} else None
    name = "clang" if system == "Darwin" else "g++"
    found = host.which(name)
    if found:
        return {name: compiler_version(host, name)}
    return {} if found.status == "missing" else None


def compiler_version(host: Host, program: str) -> str:
    """Return the version that GCC or Clang tells, "" where it does not."""
    found = _VERSION.fullmatch(host.run(program, *VERSION).text)
    return found[1] if found else ""


def _visual_cpp(host: Host) -> dict[str, str] | None:
    answer = host.run(VSWHERE, *VISUAL_CPP, "-property", "installationPath")
    if not answer:
        return {} if answer.status == "missing" else None
    place = answer.text.strip()
    if not place:
        return {}
    found = _TOOLS.fullmatch(host.read(place + TOOLS_FILE).text)
    return {"cl": f"19.{found[1]}" if found else ""}


def find_nvcc(host: Host) -> Nvcc:
    """Find the nvcc that PyTorch would take, and which CUDA it is of."""
    ending = ".exe" if host.facts("platform").get("system") == "Windows" else ""
    for name in HOMES:
        if folder := host.variable(name).text:
            return _in_home(host, folder, f"{folder}/bin/nvcc{ending}", name)
    if host.which("nvcc"):
        return Nvcc(_cuda(host, "nvcc"), "PATH")
    program = f"{DEFAULT_HOME}/bin/nvcc"
    found = host.link(program)
    if found:
        return Nvcc(_cuda(host, program), DEFAULT_HOME)
    return Nvcc("" if {found.status, host.which("nvcc").status} == {"missing"} else None, "PATH")


def _in_home(host: Host, folder: str, program: str, name: str) -> Nvcc:
    home, nvcc = host.link(folder), host.link(program)
    if nvcc:
        return Nvcc(_cuda(host, program), name, "ready")
    if "missing" not in {home.status, nvcc.status}:
        return Nvcc(source=name)
    return Nvcc("", name, "missing" if home.status == "missing" else "no-nvcc")


def _cuda(host: Host, program: str) -> str | None:
    found = _RELEASE.search(host.run(program, "--version").text)
    return found[1] if found else None
