"""From a candidate to the lines that an installer takes: torch, its family, a bundle, and what packages need beside."""

from __future__ import annotations

from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, Catalog, number
from assistant.catalog.bundles import bundle_of, bundle_packages, is_recipe
from assistant.catalog.companions import bounds_beside
from assistant.catalog.rows import FAMILY
from assistant.i18n import Message, _
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.model.requirement import name_of
from assistant.plan.candidates import Candidate, Context
from assistant.plan.onnxruntimes import onnxruntimes
from assistant.plan.pins import Pins, companion, companions, needed
from assistant.plan.rocm import family_line, with_device_code
from assistant.plan.sentences import sentence
from assistant.plan.target import Target, target_of

# Built against NumPy 1: torch up to this minor (NumPy 2 is supported from 2.3 on:
# https://github.com/pytorch/pytorch/issues/132179), and the onnxruntime-gpu releases for CUDA 11.
_NUMPY_1 = (2, 2)
_EXTRAS_MB = 80  # numpy, onnx, onnxruntime, sympy and networkx together; an estimate
# Indexes that are not the catalogue's builds of a release: what they hold beside torch, their own tables say.
_ELSEWHERE = {AMD_INDEX, AMD_NIGHTLY, "directml", "pypi"}


def requirements(candidate: Candidate, context: Context, bundle: BundleRequirements) -> tuple[str, ...]:
    """List PEP 508 lines, those of a bundle included; the user's own pins stand in for ours of the same package.

    Raises `NothingFits` where a pinned companion has no release for the candidate's torch.
    """
    lines = [f"torch=={candidate.version}"]
    release = context.catalog.release(candidate.version)
    for pin in context.pins.family:
        version = built_companion(pin, candidate, context) or (release and companion(pin, release))
        if version is None:
            raise NothingFits(_("{pin} has no release for torch {torch}.", pin=pin, torch=candidate.version))
        lines.append(f"{canonicalize_name(pin.name)}=={version}")
    old = number(candidate.version)[:2] <= _NUMPY_1 or candidate.variant.startswith("cu11")
    libraries = [
        context.published("numpy") and ("numpy<2" if old else "numpy"),
        context.published("onnx"),
        *onnxruntimes(candidate, context),
    ]
    if bundle.alone:
        del libraries[1:]
    lines = list(dict.fromkeys((*lines, *candidate.also, *bundle.family, *filter(None, libraries), *bundle.others)))
    lines = [with_device_code(family_line(line, candidate.variant), candidate.targets) for line in lines]
    if not context.pins.others:
        return tuple(lines)
    own = {canonicalize_name(pin.name) for pin in context.pins.others}
    others = [line for line in lines if name_of(line) not in own]
    return tuple(dict.fromkeys((*others, *map(str, context.pins.others))))


def with_asked(plan: Plan, pins: Pins, request: Request) -> Plan:
    """Write down what the user asked for by name, and what a project says beside its requirements."""
    if not (
        request.pins or request.bundle or request.constraints or request.overrides or request.indexes or request.links
    ):
        return plan
    named: set[str] = {canonicalize_name(pin.name) for pin in (*pins.family, *pins.others)}
    named |= {name_of(line) for line in bundle_of(request.bundle).requirements}
    held = map(name_of, plan.requirements)
    return replace(
        plan,
        asked=tuple(name for name in dict.fromkeys(held) if name in named),
        constraints=request.constraints,
        overrides=request.overrides,
        indexes=request.indexes,
        links=request.links,
    )


def download_mb(candidate: Candidate, context: Context) -> int | None:
    """Estimate what an install fetches, in MB; None where no figure is known."""
    bare, more = _bare_mb(candidate, context), bundle_of(context.bundle).mb
    return None if bare is None or more is None else bare + more


def _bare_mb(candidate: Candidate, context: Context) -> int | None:
    """Estimate what an install without a bundle fetches, in MB."""
    os, catalog, cuda = context.target.os, context.catalog, candidate.backend is Backend.CUDA
    if candidate.backend is Backend.ROCM:
        whole = _listed_mb(candidate.variant, os, catalog)
        return whole and whole + _EXTRAS_MB
    release = catalog.release(candidate.version)
    if os == "linux" and not cuda:  # the wheel for the CPU is another than PyPI's
        wheel = _listed_mb("cpu", os, catalog)
    elif os == "windows" and cuda:
        return None
    else:
        wheel = release.mb.get(context.target.platform) if release else None
    beside = _beside_mb(candidate.backend, candidate.variant, os, catalog)
    return wheel + beside if wheel and beside else None


def _beside_mb(backend: Backend, variant: str, os: str, catalog: Catalog) -> int | None:
    """Estimate what an install fetches beside torch's own wheel, in MB; None where no figure is known."""
    if backend in (Backend.ROCM, Backend.XPU):
        return None
    if os != "linux" or variant in ("cpu", "directml"):
        return _EXTRAS_MB
    build = catalog.releases[0].pypi["linux_x86_64"] if variant == "pypi" else variant
    libraries = _listed_mb(build, os, catalog)
    return libraries and libraries + _EXTRAS_MB


def _listed_mb(variant: str, os: str, catalog: Catalog) -> int | None:
    """Return what a variant draws in beside or instead of PyPI's wheel, in MB; a row may name how it begins."""
    rows = catalog.rows("torch.downloads")
    return next((row.mb for row in rows if variant.startswith(row.variant) and row.platform == os), None)


class BundleRequirements(NamedTuple):
    """Requirements of a bundle: torch's `family`, from torch's own index, and `others`; `warnings` name what lacks.

    A bundle that stands `alone` brings its own ONNX and ONNX Runtime, or has no use for any: ours could only be in
    the way of what it pins.
    """

    family: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    warnings: tuple[Message, ...] = ()
    alone: bool = False


def bundle_requirements(candidate: Candidate, context: Context) -> BundleRequirements:
    """Choose the packages of the bundle that was asked for; what no index holds for this machine is left out."""
    bundle = bundle_of(context.bundle)
    if is_recipe(bundle.key):  # its requirements are among the pins
        return BundleRequirements(others=bundle.also.get(candidate.backend, ()), alone=True)
    pinned = {pin.name.lower() for pin in (*context.pins.family, *context.pins.others)}
    found = {name: _line(name, candidate, context) for name in bundle.requirements if name not in pinned}
    lacking = ", ".join(name for name, line in found.items() if not line)
    values = {"bundle": bundle.name, "torch": candidate.version, "python": context.target.python}
    return BundleRequirements(
        family=tuple(line for name, line in found.items() if line and name in FAMILY),
        others=tuple(line for name, line in found.items() if line and name not in FAMILY),
        warnings=(sentence("bundle-incomplete", packages=lacking, **values),) if lacking else (),
    )


def _line(name: str, candidate: Candidate, context: Context) -> str:
    """Return the requirement of a package of a bundle; "" where it has no wheel."""
    if name in FAMILY:
        version = built_companion(Requirement(name), candidate, context)
        return f"{name}=={version}" if version else ""
    row = next((row for row in bundle_packages() if row.package == name), None)
    if row is None:
        return name
    tag, pythons = context.target.tag, row.pythons.get(context.target.platform, row.pythons["any"])
    if tag and tag.isdigit() and tag not in pythons:  # a free-threaded Python is tried all the same
        return ""
    return f"{name}{bounds_beside(name, candidate.version)}"


def built_companion(pin: Requirement, candidate: Candidate, context: Context) -> str:
    """Return the newest torchvision or torchaudio for a torch that satisfies a pin and has its build; "" for none."""
    release = context.catalog.release(candidate.version)
    fitting = companions(pin, release) if release else []
    name, target = canonicalize_name(pin.name), context.target
    build = (candidate.variant, target.platform, target.tag)
    own_index = candidate.variant in _ELSEWHERE - {"pypi"}  # which is not torch's, and has what it has
    return next(
        (one for one in fitting if own_index or context.catalog.has_companion(name, one, candidate.version, build)), ""
    )


def requested(machine: Machine, catalog: Catalog, request: Request) -> list[Requirement]:
    """Return what the user asks for on this machine, line by line: without markers, and without what they leave out."""
    target = target_of(machine, request, catalog)
    return needed(request.pins, target.markers) if isinstance(target, Target) else []
