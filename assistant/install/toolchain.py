"""Chooses what an extension of PyTorch is built with: the plan's torch, nvcc of its CUDA, a compiler of this machine.

Nothing of a CUDA that the machine has is used: an extension fits torch only if nvcc has torch's own CUDA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.catalog import load_catalog
from assistant.catalog.companions import BuildNeeds
from assistant.catalog.toolchains import Toolkit, compiler_command, cuda_of, major, oldest_gcc, toolkits
from assistant.host.base import Host
from assistant.host.compilers import compiler_version, find_compilers
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Plan
from assistant.model.record import replace

GB_PER_JOB = 4.0  # chosen: what one nvcc of a large kernel takes, where the tables do not say
TOOLS = ("ninja", "setuptools", "wheel")


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """What one package is built with.

    `torch` is the requirement of the torch that it is built for, which comes from the plan's index; `oldest_gcc` is
    what its headers take. `cuda` is nvcc's ("13.0", "" for no nvcc), `cards` are the compute capabilities to build for,
    () for all that torch is built for.
    """

    name: str
    plan: Plan
    torch: str
    oldest_gcc: int = 0
    cuda: str = ""
    cards: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    gb_per_job: float = GB_PER_JOB

    @property
    def requirements(self) -> tuple[str, ...]:
        """The lines that its environment is made of."""
        own = [line for line in self.requires if canonicalize_name(Requirement(line).name) != "torch"]
        nvcc = [toolkits()[self.cuda].requirement] if self.cuda else []
        return tuple(dict.fromkeys((self.torch, *own, *TOOLS, *nvcc)))


def choose_toolchain(
    name: str, needs: BuildNeeds, plan: Plan, keep: Mapping[str, str], machine: Machine | None, *, insists: bool
) -> Toolchain:
    """Choose what a package is built with for the plan's torch, or for the one that is kept there.

    Raises `WorkFailed` for a build that could not work: for a torch that its source does not fit, for CUDA where torch
    does not compute with it, with an nvcc that PyPI does not have, and, unless the user `insists`, for a card that this
    machine does not have.
    """
    torch, variant = torch_of(plan, keep)
    version = plan.torch or keep.get("torch", "")
    cuda = _cuda(name, needs, variant, version, machine) if needs.nvcc else ""
    if needs.torch_below and version and Version(version) >= Version(needs.torch_below):
        raise WorkFailed(
            _(
                "{name} cannot be built for PyTorch {torch}: its source fits only older versions.",
                name=name,
                torch=version,
            ),
            hint=_(
                "Choose a PyTorch older than {version}.",
                version=needs.torch_below,
                option=f"--pin 'torch<{needs.torch_below}'",
            ),
        )
    if cuda and machine is not None and not insists and not _may_have_card(machine):
        raise WorkFailed(
            _("{name} would be built for an NVIDIA GPU, and none was found on this machine.", name=name),
            hint=_("Leave {name} out, or have it built all the same.", name=name, option=f"--build-from-source {name}"),
        )
    if not plan.torch:
        plan = replace(plan, index_url=plan.index_url or load_catalog().index_url(variant))
    return Toolchain(
        name=name,
        plan=plan,
        torch=torch,
        oldest_gcc=oldest_gcc(version),
        cuda=cuda,
        cards=capabilities(machine) if cuda else (),
        requires=needs.requires,
        gb_per_job=needs.gb_per_job or GB_PER_JOB,
    )


def torch_of(plan: Plan, keep: Mapping[str, str]) -> tuple[str, str]:
    """Return the requirement of the torch that a build is for, and the tag of its build ("cu130", "pypi").

    It is the plan's very release, with the extras that the plan takes of it (AMD's index splits torch by GPU).
    """
    if not plan.torch and "torch" in keep:
        return f"torch=={keep['torch']}", plan.variant or keep["torch"].partition("+")[2] or "pypi"
    named = [need for line in plan.requirements if canonicalize_name((need := Requirement(line)).name) == "torch"]
    extras = ",".join(sorted(extra for need in named for extra in need.extras))
    chosen = f"[{extras}]" if extras else ""
    exact = [str(one) for need in named for one in need.specifier if one.operator == "==" and "*" not in one.version]
    release = exact[0] if exact else f"=={plan.torch}" if plan.torch else ""  # "==2.13.0+cpu" says more than 2.13.0
    return f"torch{chosen}{release}", plan.variant


def _cuda(name: str, needs: BuildNeeds, variant: str, torch: str, machine: Machine | None) -> str:
    """Return the CUDA to build with nvcc for, that of torch; "" where torch has none and the build goes on without."""
    cuda = cuda_of(variant, torch, machine.os if machine else None, machine.arch if machine else None)
    if cuda is None:
        raise WorkFailed(
            _("Building {name} needs nvcc of PyTorch's CUDA version, which is not known here.", name=name),
            hint=_("Choose a PyTorch whose CUDA version is known, or leave {name} out.", name=name),
        )
    if needs.nvcc == "always" and not cuda:
        raise WorkFailed(
            _("Building {name} needs nvcc, and this plan's PyTorch is not for CUDA.", name=name),
            hint=_("Leave {name} out.", name=name),
        )
    known = toolkits()
    if cuda and not (cuda in known and known[cuda].requirement):
        built = {cuda_of(tag) for row in load_catalog().releases for tags in row.variants.values() for tag in tags}
        raise WorkFailed(
            _(
                "Building {name} needs nvcc of CUDA {cuda}, and PyPI has no complete nvcc of that version.",
                name=name,
                cuda=cuda,
            ),
            hint=_(
                "Leave {name} out, or choose a build of PyTorch for one of these CUDA versions: {versions}.",
                versions=", ".join(one for one, row in known.items() if row.requirement and one in built),
                name=name,
            ),
        )
    return cuda


def _may_have_card(machine: Machine) -> bool:
    return any(gpu.vendor in {Vendor.NVIDIA, Vendor.UNKNOWN} for gpu in machine.gpus)


def capabilities(machine: Machine | None) -> tuple[str, ...]:
    """Return the compute capabilities of a machine's NVIDIA GPUs, () where one of them is not known."""
    found = {gpu.compute_capability for gpu in (machine.gpus if machine else ()) if gpu.vendor is Vendor.NVIDIA}
    return () if None in found else tuple(sorted(filter(None, found), key=Version))


class Compiler(NamedTuple):
    """The programs that compile: paths of a C and a C++ compiler, "" for those that a build finds by itself."""

    c: str = ""
    cxx: str = ""


_WANTED = {"Windows": ("cl", "Visual C++"), "Darwin": ("clang", "Clang")}  # elsewhere g++


def check_compiler(toolchain: Toolchain, host: Host, machine: Machine | None) -> Compiler:
    """Return the compiler to build with, a GCC that nvcc and torch take; what cannot be asked about counts as there.

    Raises `WorkFailed` where there is none, or only one that nvcc or torch refuses.
    """
    found, system = find_compilers(host), host.facts("platform").get("system")
    kit = toolkits().get(toolchain.cuda)
    wanted, title = _WANTED.get(str(system), ("g++", "g++"))
    if found is None:
        return Compiler()
    if wanted not in found:
        command = compiler_command(machine.os if machine else None, machine.os_version if machine else None)
        raise WorkFailed(
            _("Building {name} needs {compiler}, and this machine has none.", name=toolchain.name, compiler=title),
            hint=_("Install it, then start again: {command}", command=command)
            if command
            else _("Install it, then start again."),
        )
    if wanted == "g++":
        return _gcc(toolchain, found["g++"], kit, host)
    if kit and kit.cl and found.get("cl") and Version(found["cl"]) >= Version(kit.cl):
        raise _too_new(toolchain, f"Visual C++ {found['cl']}", _("the Visual Studio 2022 Build Tools"))
    return Compiler()


def _gcc(toolchain: Toolchain, version: str, kit: Toolkit | None, host: Host) -> Compiler:
    """Return the machine's GCC, or another one beside it where torch or nvcc does not take that."""
    too_old = bool(version) and major(version) < toolchain.oldest_gcc
    if not too_old and not (kit and kit.takes_gcc(version) is False):
        return Compiler(host.which("gcc").text, host.which("g++").text)
    newest = max(one.gcc for one in ([kit] if kit else toolkits().values()))
    for number in range(newest, max(toolchain.oldest_gcc - 1, 0), -1):
        beside = host.which(f"g++-{number}"), host.which(f"gcc-{number}")
        if all(beside) and compiler_version(host, f"g++-{number}"):
            return Compiler(beside[1].text, beside[0].text)
    if too_old:
        raise WorkFailed(
            _(
                "{name} is built for {torch}, and GCC {version} is too old for that.",
                name=toolchain.name,
                torch=toolchain.torch,
                version=version,
            ),
            hint=_("Install a newer one as well, such as {newer}.", newer=f"g++-{toolchain.oldest_gcc}"),
        )
    raise _too_new(toolchain, f"GCC {version}", f"g++-{newest}")


def _too_new(toolchain: Toolchain, compiler: str, older: object) -> WorkFailed:
    return WorkFailed(
        _(
            "{name} is built with nvcc of CUDA {cuda}, and {compiler} is too new for that.",
            compiler=compiler,
            cuda=toolchain.cuda,
            name=toolchain.name,
        ),
        hint=_("Install an older one as well, such as {older}.", older=older),
    )
