"""Makes the environment in which an extension of PyTorch is built, and says what the build sees of this machine."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from assistant.host.base import Host
from assistant.host.files import link
from assistant.host.lock import Lock
from assistant.host.sandbox import clean_environment, share_of_memory
from assistant.i18n import _
from assistant.install.inspect_env import interpreter
from assistant.install.installer import Installer
from assistant.install.resolution import Unsolved, resolve
from assistant.install.target import check_disk
from assistant.install.toolchain import Compiler, Toolchain
from assistant.install.wheels import fetch, requirement_lines
from assistant.model.errors import WorkFailed
from assistant.model.record import replace

SYSTEM_PATH = ("/usr/bin", "/bin")


def set_up(
    toolchain: Toolchain, compiler: Compiler, installer: Installer, host: Host, work: Path, lock: Lock
) -> tuple[Path, dict[str, str]]:
    """Make the environment of a build in a folder; return its Python, and all variables that the build may see.

    Raises `WorkFailed` where what the build needs does not fit together, is nowhere to be had, or finds no room.
    """
    installer = dataclasses.replace(installer, also=(), lock=lock)
    installer.progress(_("Resolving what the build of {name} needs", name=toolchain.name))
    try:
        resolution = resolve(replace(toolchain.plan, requirements=toolchain.requirements), installer)
    except Unsolved as error:
        raise WorkFailed(
            _(
                "What the build of {name} needs does not go together with {torch}: {reason}",
                name=toolchain.name,
                torch=toolchain.torch,
                reason=error.reason,
            ),
            hint=error.hint
            if error.unreachable
            else _("Nothing was built. Leave {name} out, or choose another version of it.", name=toolchain.name),
        ) from error
    check_disk(host, work, sum(package.size or 0 for package in resolution.packages))
    wheels = fetch(resolution.packages, installer, toolchain.plan.index_url)
    folder = work / "environment"
    installer.make_venv(folder, lock, work)
    python = interpreter(folder)
    lines = requirement_lines(resolution.packages, wheels)
    installer.install(lines, python, lock, work, total=len(resolution.packages))
    return python, variables(toolchain, compiler, folder, work)


def variables(toolchain: Toolchain, compiler: Compiler, environment: Path, work: Path) -> dict[str, str]:
    """Return all variables that a build sees: those of the system and of language, no CUDA or compiler of the user's.

    What each means: https://docs.pytorch.org/docs/stable/cpp_extension.html, and `FORCE_CUDA` to the set-up programs of
    torchvision, mmcv, pytorch3d and others, which else look for a card.
    """
    scripts = interpreter(environment).parent
    places = [scripts, *(Path(one).parent for one in (compiler.cxx, compiler.c) if one)]
    settings = {"FORCE_CUDA": "0", "MAX_JOBS": str(_jobs(toolchain.gb_per_job)), "VIRTUAL_ENV": str(environment)}
    settings |= {name: value for name, value in (("CC", compiler.c), ("CXX", compiler.cxx)) if value}
    if toolchain.cuda:
        home = _cuda_home(environment, toolchain.cuda)
        places.insert(0, home / "bin")
        settings |= {
            "CUDA_HOME": str(home),
            "CUDA_PATH": str(home),
            "CUDACXX": str(home / "bin" / "nvcc"),
            "FORCE_CUDA": "1",
        }
        settings |= {"TORCH_CUDA_ARCH_LIST": ";".join(toolchain.cards)} if toolchain.cards else {}
        settings |= {"CUDAHOSTCXX": compiler.cxx} if compiler.cxx else {}  # CMake's; PyTorch hands CC to nvcc
    seen = clean_environment(work)
    own = () if os.name != "nt" else (seen.get("PATH", ""),)  # Windows keeps its programs in many places
    seen["PATH"] = os.pathsep.join(dict.fromkeys((*map(str, places), *(own or SYSTEM_PATH))))
    seen.pop("LD_LIBRARY_PATH", None)  # it may lead to another CUDA
    return {**seen, **settings}


def _jobs(gb: float) -> int:
    """Return how many compilers may run at once: by the memory that each takes, and one for each core."""
    return max(1, min(os.cpu_count() or 1, int(share_of_memory(0.8, 0) / 2**30 / gb)))


def _cuda_home(environment: Path, cuda: str) -> Path:
    """Return the folder of nvcc's wheels, laid out as builds know a toolkit: `lib64`, and libraries without a number.

    The wheels name libraries as programs load them (libcudart.so.13), and a linker wants libcudart.so.
    """
    sites = (*environment.glob("lib/python*/site-packages"), environment / "Lib" / "site-packages")
    found = [nvcc for site in sites for nvcc in site.glob("nvidia/cu*/bin/nvcc*") if nvcc.suffix in {"", ".exe"}]
    if not found:
        raise WorkFailed(
            _("The wheels of CUDA {cuda} contain no nvcc.", cuda=cuda), hint=_("Nothing was built. Please report this.")
        )
    home = found[0].parents[1]
    if os.name != "nt":
        link(home / "lib64", "lib")
        for library in sorted((home / "lib").glob("lib*.so.*")):
            link(library.with_name(f"{library.name.partition('.so.')[0]}.so"), library.name)
    return home
