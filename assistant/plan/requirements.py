"""From an option to the lines that an installer takes: torch, its family, numpy, onnx and one onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, number
from assistant.i18n import _
from assistant.model.errors import NothingFits
from assistant.model.plan import Backend
from assistant.plan.options import Option, Question
from assistant.plan.wishes import companion

# Built against NumPy 1: torch up to this minor, and the onnxruntime-gpu releases for CUDA 11.
_NUMPY_1 = (2, 2)
_EXTRAS_MB = 80  # numpy, onnx, onnxruntime, sympy and networkx together


def requirements(option: Option, question: Question) -> tuple[str, ...]:
    """List PEP 508 lines; the user's own pins stand in for ours of the same package."""
    lines = [option.requirement.format(version=option.version), *_family(option, question), *option.also]
    lines += [line for line in _beside(option, question) if line]
    if not question.wishes.others:
        return tuple(lines)
    own = {canonicalize_name(pin.name): str(pin) for pin in question.wishes.others}
    kept = [line for line in lines if canonicalize_name(Requirement(line).name) not in own]
    return tuple(dict.fromkeys((*kept, *own.values())))


def _family(option: Option, question: Question) -> Iterable[str]:
    release = question.catalog.release(option.version)
    for pin in question.wishes.family:
        name = canonicalize_name(pin.name)
        version = release and companion(pin, release)
        if version is None:
            raise NothingFits(_("{pin} has no release for torch {torch}.", pin=pin, torch=option.version))
        line = f"{name}=={version}"
        if line not in option.also:
            yield line


def _beside(option: Option, question: Question) -> Iterable[str | None]:
    old = number(option.version)[:2] <= _NUMPY_1 or option.variant.startswith("cu11")
    yield _published("numpy", None, question) and ("numpy<2" if old else "numpy")
    yield _published("onnx", None, question)
    yield _runtime(option, question)


def _runtime(option: Option, question: Question) -> str | None:
    """Choose the one flavour of onnxruntime that drives the same device, else the plain one, if there is any."""
    for name, cuda in (*_flavours(option, question), ("onnxruntime", None)):
        line = _published(name, cuda, question)
        if line:
            return line
    return None


def _flavours(option: Option, question: Question) -> Iterable[tuple[str, int | None]]:
    if option.backend is Backend.CUDA:
        yield "onnxruntime-gpu", int(option.variant[2:4])
    elif option.backend is Backend.XPU:
        yield "onnxruntime-openvino", None
    elif question.target.os == "windows" and option.backend in (Backend.ROCM, Backend.DIRECTML):
        yield "onnxruntime-directml", None
    elif option.backend is Backend.ROCM and question.machine.rocm_tools:
        yield "onnxruntime-migraphx", None  # MIGraphX itself is part of a ROCm installation, not of the wheels


def _published(package: str, cuda: int | None, question: Question) -> str | None:
    row = question.catalog.companions.get((package, cuda))
    if row and question.target.tag in row.pythons.get(question.target.platform, ()):
        return row.requirement or row.package
    return None


def download_mb(option: Option, question: Question) -> int | None:
    """Estimate what an install fetches, in MB; None where no figure is known."""
    os, catalog = question.target.os, question.catalog
    if option.backend is Backend.ROCM:
        whole = _listed_mb(option.variant, os, catalog)
        return whole and whole + _EXTRAS_MB
    wheel = _wheel_mb(option, question)
    beside = beside_mb(option.backend, option.variant, os, catalog)
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


def _wheel_mb(option: Option, question: Question) -> int | None:
    """Give the size of torch's wheel: on Linux the one for the CPU is another than PyPI's."""
    release, target = question.catalog.release(option.version), question.target
    if target.os == "linux" and option.backend is not Backend.CUDA:
        return _listed_mb("cpu", target.os, question.catalog)
    if release is None or (target.os == "windows" and option.backend is Backend.CUDA):
        return None
    return release.mb.get(target.platform)


def _listed_mb(variant: str, os: str, catalog: Catalog) -> int | None:
    rows = catalog.torch.downloads.rows
    return next((row.mb for row in rows if variant.startswith(row.variant) and row.platform == os), None)
