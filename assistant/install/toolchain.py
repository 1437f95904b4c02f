"""Chooses what an extension of PyTorch is built with: the plan's torch, nvcc of its CUDA, a compiler of this machine.

Nothing of a CUDA that the machine has is used: an extension fits torch only if nvcc has torch's own CUDA.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.catalog import load_catalog
from assistant.catalog.companions import BuildNeeds
from assistant.catalog.toolchains import Toolkit, compiler_command, toolkits
from assistant.host.base import Host
from assistant.host.compilers import compiler_version, find_compilers
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Plan

GB_PER_JOB = 4.0  # chosen: what one nvcc of a large kernel takes, where the tables do not say
OLDEST_GCC = 9  # chosen: PyTorch's headers want C++17 since 2.1, which GCC 9 is the first to have by heart
TOOLS = ("ninja", "setuptools", "wheel")


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """What one package is built with.

    `torch` is the requirement of the torch beside which it will stand, `variant` that torch's build. `cuda` is nvcc's
    ("13.0", "" for no nvcc), `cards` are the compute capabilities to build for, () for all that torch is built for.
    """

    name: str
    plan: Plan
    torch: str
    variant: str
    cuda: str = ""
    cards: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    gb_per_job: float = GB_PER_JOB

    @property
    def key(self) -> str:
        """A short text that differs between builds that may not stand in for one another."""
        facts = (self.torch, self.variant, self.plan.python, self.cuda, *self.cards)
        return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:8]

    @property
    def requirements(self) -> tuple[str, ...]:
        """The lines that its environment is made of."""
        own = [line for line in self.requires if canonicalize_name(Requirement(line).name) != "torch"]
        nvcc = [toolkits()[self.cuda].requirement] if self.cuda else []
        return tuple(dict.fromkeys((self.torch, *own, *TOOLS, *nvcc)))


def toolchain(
    name: str, needs: BuildNeeds, plan: Plan, keep: Mapping[str, str], machine: Machine | None, *, insists: bool
) -> Toolchain:
    """Choose what a package is built with beside the plan's torch, or the one that is kept there.

    Raises `WorkFailed` for a build that could not work: beside a torch that its source does not fit, for CUDA where
    torch does not compute with it, with an nvcc that PyPI does not have, and, unless the user `insists`, for a card
    that this machine does not have.
    """
    torch, variant = _torch_of(plan, keep)
    version = plan.torch or keep.get("torch", "")
    if needs.torch_below and version and Version(version) >= Version(needs.torch_below):
        raise WorkFailed(
            _(
                "{name} cannot be built beside PyTorch {torch}: its source fits older ones.",
                name=name,
                torch=version,
            ),
            hint=_(
                "Choose PyTorch older than {version}.",
                version=needs.torch_below,
                option=f"--pin 'torch<{needs.torch_below}'",
            ),
        )
    cuda = _cuda_of(variant, version, machine)
    if needs.nvcc == "always" and not cuda:
        raise WorkFailed(
            _("{name} computes on NVIDIA GPUs alone, and this plan's PyTorch is not built for them.", name=name),
            hint=_("Leave {name} out: nothing was built.", name=name),
        )
    cuda = cuda if needs.nvcc else ""
    if cuda:
        _check_nvcc(name, cuda)
    cards = _capabilities(machine)
    if cuda and machine is not None and not insists and not _may_have_card(machine):
        raise WorkFailed(
            _("{name} would be built for an NVIDIA GPU, and this machine shows none.", name=name),
            hint=_("Leave {name} out, or insist on the build.", name=name, option=f"--build-from-source {name}"),
        )
    return Toolchain(
        name=name,
        plan=plan,
        torch=torch,
        variant=variant,
        cuda=cuda,
        cards=cards if cuda else (),
        requires=needs.requires,
        gb_per_job=needs.gb_per_job or GB_PER_JOB,
    )


def _torch_of(plan: Plan, keep: Mapping[str, str]) -> tuple[str, str]:
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


def _cuda_of(variant: str, torch: str, machine: Machine | None) -> str:
    """Return the CUDA that a build of torch is for ("13.0"), "" for none; PyPI's own build has its release's."""
    tag = variant.removeprefix("nightly/")
    if tag == "pypi" and machine and machine.os and machine.arch:
        release = load_catalog().release(torch)
        arch = "amd64" if machine.os == "windows" and machine.arch == "x86_64" else machine.arch
        tag = release.pypi.get(f"{machine.os}_{arch}", "") if release else ""
    digits = tag.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}" if tag.startswith("cu") and digits.isdigit() else ""


def _check_nvcc(name: str, cuda: str) -> None:
    known = toolkits()
    if cuda not in known or not known[cuda].requirement:
        offered = ", ".join(one for one, row in known.items() if row.requirement)
        raise WorkFailed(
            _("Building {name} needs nvcc of CUDA {cuda}, and PyPI has no whole nvcc of it.", name=name, cuda=cuda),
            hint=_(
                "Choose a build of PyTorch for one of CUDA {versions}, or leave {name} out.",
                versions=offered,
                name=name,
            ),
        )


def _may_have_card(machine: Machine) -> bool:
    return any(gpu.vendor in {Vendor.NVIDIA, Vendor.UNKNOWN} for gpu in machine.gpus)


def _capabilities(machine: Machine | None) -> tuple[str, ...]:
    found = {gpu.compute_capability for gpu in (machine.gpus if machine else ()) if gpu.vendor is Vendor.NVIDIA}
    return tuple(sorted(filter(None, found), key=Version))


class Compiler(NamedTuple):
    """The programs that compile: paths of a C and a C++ compiler, "" for those that a build finds by itself."""

    c: str = ""
    cxx: str = ""


def check_compiler(chain: Toolchain, host: Host, machine: Machine | None) -> Compiler:
    """Return the compiler to build with, a GCC that nvcc takes; one that cannot be asked about counts as there.

    Raises `WorkFailed` where there is none, or only one that nvcc refuses.
    """
    found, system = find_compilers(host), host.facts("platform").get("system")
    kit = toolkits().get(chain.cuda)
    wanted = {"Windows": "cl", "Darwin": "clang"}.get(str(system), "g++")
    if found is None:
        return Compiler()
    if wanted not in found:
        command = compiler_command(machine.os if machine else None, machine.os_version if machine else None)
        raise WorkFailed(
            _("Building {name} needs a C++ compiler, and this machine has none.", name=chain.name),
            hint=_("Install one, then start again: {command}", command=command)
            if command
            else _("Install one, then start again."),
        )
    if wanted == "g++":
        return _gcc(chain.name, found["g++"], kit, host)
    if kit and kit.cl and found.get("cl") and Version(found["cl"]) >= Version(kit.cl):
        raise _too_new(chain.name, f"Visual C++ {found['cl']}", kit, _("Visual Studio 2022's build tools"))
    return Compiler()


def _gcc(name: str, version: str, kit: Toolkit | None, host: Host) -> Compiler:
    """Return the machine's GCC, or an older one beside it where nvcc does not take that."""
    if kit is None or not version or int(version.partition(".")[0]) <= kit.gcc:
        return Compiler(host.which("gcc").text, host.which("g++").text)
    for major in range(kit.gcc, OLDEST_GCC - 1, -1):
        older = host.which(f"g++-{major}"), host.which(f"gcc-{major}")
        if all(older) and compiler_version(host, f"g++-{major}"):
            return Compiler(older[1].text, older[0].text)
    raise _too_new(name, f"GCC {version}", kit, f"g++-{kit.gcc}")


def _too_new(name: str, compiler: str, kit: Toolkit, older: object) -> WorkFailed:
    return WorkFailed(
        _(
            "{compiler} is too new for nvcc of CUDA {cuda}, which builds {name}.",
            compiler=compiler,
            cuda=kit.cuda,
            name=name,
        ),
        hint=_("Install an older one beside it, such as {older}.", older=older),
    )
