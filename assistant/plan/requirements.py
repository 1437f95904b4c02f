"""From an option to the lines that an installer takes: torch, its family, numpy, onnx and one onnxruntime."""

from __future__ import annotations

from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, number
from assistant.catalog.recipes import bundle_of
from assistant.i18n import _
from assistant.model.errors import NothingFits
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.model.requirement import name_of
from assistant.plan.amd_index import family_line, with_device_code
from assistant.plan.bundles import Beside, built_companion, bundle_mb
from assistant.plan.candidates import Candidate, Context
from assistant.plan.onnxruntimes import onnxruntimes
from assistant.plan.pins import Pins, companion
from assistant.plan.surroundings import added

# Built against NumPy 1: torch up to this minor (NumPy 2 is supported from 2.3 on:
# https://github.com/pytorch/pytorch/issues/132179), and the onnxruntime-gpu releases for CUDA 11.
_NUMPY_1 = (2, 2)
_EXTRAS_MB = 80  # numpy, onnx, onnxruntime, sympy and networkx together; an estimate


def requirements(candidate: Candidate, context: Context, bundle: Beside) -> tuple[str, ...]:
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
    beside = [
        context.published("numpy") and ("numpy<2" if old else "numpy"),
        context.published("onnx"),
        *onnxruntimes(candidate, context),
    ]
    if bundle.alone:
        del beside[1:]
    lines = list(dict.fromkeys((*lines, *candidate.also, *bundle.family, *filter(None, beside), *bundle.others)))
    lines = [with_device_code(family_line(line, candidate.variant), candidate.targets) for line in lines]
    if not context.pins.others:
        return tuple(lines)
    own = {canonicalize_name(pin.name) for pin in context.pins.others}
    kept = [line for line in lines if name_of(line) not in own]
    return tuple(dict.fromkeys((*kept, *map(str, context.pins.others), *added(candidate, context))))


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
    bare = _bare_mb(candidate, context)
    more = bundle_mb(context.bundle)
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
    beside = beside_mb(candidate.backend, candidate.variant, os, catalog)
    return wheel + beside if wheel and beside else None


def beside_mb(backend: Backend, variant: str, os: str, catalog: Catalog) -> int | None:
    """Estimate what an install fetches beside torch's own wheel, in MB; None where no figure is known."""
    if backend in (Backend.ROCM, Backend.XPU):
        return None
    if os != "linux" or variant in ("cpu", "directml"):
        return _EXTRAS_MB
    build = catalog.releases[0].pypi["linux_x86_64"] if variant == "pypi" else variant
    libraries = _listed_mb(build, os, catalog)
    return libraries and libraries + _EXTRAS_MB


def _listed_mb(variant: str, os: str, catalog: Catalog) -> int | None:
    rows = catalog.torch.downloads.rows
    return next((row.mb for row in rows if variant.startswith(row.variant) and row.platform == os), None)
