"""From a candidate to the lines that an installer takes: torch, its family, a bundle, and what packages need beside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, JETSON_INDEX, Catalog, number, python_range
from assistant.catalog.catalog import (
    bundle_packages,
    find_bundle,
    has_wheel,
    is_build,
    is_recipe,
    maker_by_name,
    provider_catalogs,
    runtime_builds,
    runtime_plugins,
)
from assistant.catalog.companions import bounds_beside
from assistant.catalog.tables import FAMILY, Row
from assistant.i18n import Message, _
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Request, name_of, requirement
from assistant.plan import cuda, other_backends, rocm
from assistant.plan.candidates import Candidate, Context, applicable_requirements, best_companion, companions, sentence
from assistant.plan.rocm import family_line, with_device_code
from assistant.plan.target import Target, find_target

# Built against NumPy 1: torch up to this minor (NumPy 2 is supported from 2.3 on:
# https://github.com/pytorch/pytorch/issues/132179), the onnxruntime-gpu releases for CUDA 11, and NVIDIA's wheels for
# JetPack 6 (https://github.com/FastCrest/tether/pull/138).
_NUMPY_1 = (2, 2)
_EXTRAS_MB = 80  # numpy, onnx, onnxruntime, sympy and networkx together; an estimate
# Indexes that are not the catalogue's builds of a release: what they hold beside torch, their own tables say.
_ELSEWHERE = {AMD_INDEX, AMD_NIGHTLY, JETSON_INDEX, "directml", "pypi"}


def plan_requirements(candidate: Candidate, context: Context) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    """Return a candidate's PEP 508 lines, those of the request's bundle included, and at most one warning.

    The lines are torch, its family, further ones, NumPy, ONNX and ONNX Runtime; the user's pins replace ours for the
    same package, and go last. A recipe, whose requirements are among the pins, brings its own ONNX and ONNX Runtime, if
    any. The warning names the bundle's packages that have no wheel here. Raises `NothingFits` if a pinned companion has
    no release for the candidate's torch.
    """
    pins, bundle, version = context.pins, find_bundle(context.request.bundle), candidate.version
    lines = [f"torch=={version}"]
    release = context.catalog.release(version)
    for pin in pins.family:
        fitting = companion_with_build(pin, candidate, context) or (release and best_companion(pin, release))
        if fitting is None:
            raise NothingFits(_("{pin} has no release for torch {torch}.", pin=pin, torch=version))
        lines.append(f"{canonicalize_name(pin.name)}=={fitting}")
    pinned = {pin.name.lower() for pin in (*pins.family, *pins.others)}
    old = number(version)[:2] <= _NUMPY_1 or candidate.variant.startswith(("cu11", JETSON_INDEX))
    libraries = [context.published_line("numpy") and ("numpy<2" if old else "numpy")]
    if is_recipe(bundle.key):
        beside = {line: line for line in bundle.also.get(candidate.backend, ())}
    else:
        beside = {name: _bundle_line(name, candidate, context) for name in bundle.requirements if name not in pinned}
        libraries += [context.published_line("onnx"), *onnxruntime_lines(candidate, context)]
    family = [line for name, line in beside.items() if name in FAMILY]
    others = [line for name, line in beside.items() if name not in FAMILY]
    ours = filter(None, (*lines, *candidate.also, *family, *libraries, *others))
    named = [with_device_code(family_line(line, candidate.variant), candidate.targets) for line in dict.fromkeys(ours)]
    own = {canonicalize_name(pin.name) for pin in pins.others}
    whole = dict.fromkeys((*(line for line in named if name_of(line) not in own), *map(str, pins.others)))
    lacking = ", ".join(name for name, line in beside.items() if not line)
    values = {"bundle": bundle.name, "torch": version, "python": context.target.python}
    return tuple(whole), (sentence("bundle-incomplete", packages=lacking, **values),) if lacking else ()


def download_mb(candidate: Candidate, context: Context) -> int | None:
    """Estimate a download in MB, a bundle's packages included; None if the tables do not know a size.

    That is the size of the build, or of the request's bundle.
    """
    os, catalog, backend, variant = context.target.os, context.catalog, candidate.backend, candidate.variant

    def listed(build: str) -> int | None:
        """Return the MB that a build draws in beside or instead of PyPI's wheel; None if the table lists none."""
        rows = catalog.rows("torch.downloads")
        return next((row.mb for row in rows if build.startswith(row.variant) and row.platform == os), None)

    parts: list[int | None] = [_EXTRAS_MB, find_bundle(context.request.bundle).mb]
    if backend in {Backend.ROCM, Backend.XPU} or (backend is Backend.CUDA and os == "windows"):
        parts.append(listed(variant))
    else:
        release = catalog.release(candidate.version)
        sizes = release.mb if release else {}
        on_pypi = os != "linux" or backend is Backend.CUDA  # for the CPU, Linux has another wheel than PyPI's
        parts.append(sizes.get(context.target.platform) if on_pypi else listed("cpu"))
        if os == "linux" and variant not in ("cpu", "directml"):
            parts.append(listed(catalog.releases[0].pypi["linux_x86_64"] if variant == "pypi" else variant))
    figures = [part for part in parts if part is not None]
    return sum(figures) if len(figures) == len(parts) else None


def _bundle_line(name: str, candidate: Candidate, context: Context) -> str:
    """Return the requirement line of a package of a bundle; "" if it has no wheel for this torch or Python.

    For a free-threaded Python, wheels of other packages than torch's family are assumed to be there.
    """
    if name in FAMILY:
        version = companion_with_build(Requirement(name), candidate, context)
        return f"{name}=={version}" if version else ""
    row = next((row for row in bundle_packages() if row.package == name), None)
    if row is None:
        return name
    tag, pythons = context.target.tag, row.pythons.get(context.target.platform, row.pythons["any"])
    if tag and tag.isdigit() and tag not in pythons:  # a free-threaded Python is tried all the same
        return ""
    return f"{name}{bounds_beside(name, candidate.version)}"


def companion_with_build(pin: Requirement, candidate: Candidate, context: Context) -> str:
    """Return the newest torchvision or torchaudio for a pin and a candidate's torch; "" for none.

    Except on AMD's and the Jetson's indexes, and for DirectML, it must have the candidate's build, too.
    """
    catalog, name, target = context.catalog, canonicalize_name(pin.name), context.target
    release = catalog.release(candidate.version)
    fitting = companions(pin, release) if release else []
    build = (candidate.variant, target.platform, target.tag)
    if candidate.variant not in _ELSEWHERE - {"pypi"}:  # these indexes are not torch's, and have what they have
        fitting = [version for version in fitting if catalog.has_companion(name, version, candidate.version, build)]
    return next(iter(fitting), "")


def requested_packages(machine: Machine, catalog: Catalog, request: Request) -> list[Requirement]:
    """Return the request's pins that apply to a machine, without markers; [] if no wheel of torch fits the machine.

    Raises `BadInput` for a pin or a Python version that cannot be read.
    """
    target = find_target(machine, request, catalog)
    return applicable_requirements(request.pins, target.markers) if isinstance(target, Target) else []


_PLAIN = "onnxruntime"
_FOR_WINDOWS = ("onnxruntime-windowsml", "onnxruntime-directml")
_CURRENT = {Vendor.NVIDIA: cuda.offers, Vendor.AMD: rocm.offers, Vendor.INTEL: other_backends.xpu}


def onnxruntime_lines(candidate: Candidate, context: Context) -> tuple[str, ...]:
    """Return the lines for the best ONNX Runtime published for a candidate's device, and its plug-in, if it takes one.

    If none is for the device, it is that for the CPU. Returns () if none is published, and if the user pins a build,
    since two would write one folder.
    """
    asked = _asked_packages(context)
    if any(is_build(name, need.specifier) for name, need in asked.items()):
        return ()
    for lines in _runtimes(candidate, context, asked):
        if all(lines):
            return tuple(line for line in lines if line)
    return ()


def _asked_packages(context: Context) -> dict[str, Requirement]:
    """Return the user's pins on packages other than torch's family, by name in PyPI's spelling."""
    return {canonicalize_name(pin.name): pin for pin in context.pins.others}


def _runtimes(candidate: Candidate, context: Context, asked: Collection[str]) -> Iterator[tuple[str | None, ...]]:
    """Yield the sets of lines for ONNX Runtime, best first, the CPU's last; None in a set: it is not published here.

    `asked` are the names of the packages that the user pins.
    """
    if any(runtime_plugins()[name].plain for name in asked if name in runtime_plugins()):
        yield (context.published_line(_PLAIN),)
    for row in _provider_catalogs(context):
        yield (_published_build(row.runtime, context),)
    if candidate.backend is Backend.CUDA and candidate.variant != JETSON_INDEX:
        yield (context.published_line("onnxruntime-gpu", int(candidate.variant[2:4])),)
    elif candidate.backend is Backend.XPU:
        plugin = "onnxruntime-ep-openvino"
        here = has_wheel(runtime_plugins()[plugin], context.target.platform, context.target.python)
        yield context.published_line(_PLAIN), plugin if here else None
        yield (context.published_line("onnxruntime-openvino"),)
    elif context.target.os == "windows" and candidate.backend in (Backend.ROCM, Backend.DIRECTML):
        yield from ((_published_build(name, context),) for name in _FOR_WINDOWS)
    elif candidate.backend is Backend.ROCM and context.machine.rocm_tools:
        # MIGraphX itself is part of a ROCm installation, not of the wheels.
        yield (context.published_line("onnxruntime-migraphx"),)
    yield (context.published_line(_PLAIN),)


def _published_build(name: str, context: Context) -> str | None:
    row, build = runtime_builds()[name], context.target.windows_build
    return context.published_line(name) if build is None or build >= row.windows_build else None


def onnxruntime_notes(candidate: Candidate, context: Context, lines: Iterable[str]) -> list[Message]:
    """Return warnings about ONNX Runtimes and plug-ins among a plan's requirement `lines`, and hints at better ones.

    A DirectML plan's card is hinted at a backend with current torch, or else at Windows ML, if the plan holds its
    ONNX Runtime.
    """
    every, plugins = runtime_builds(), runtime_plugins()
    held = {name: line for line in lines if (name := name_of(line)) in every or name in plugins}
    builds = {name: every[name] for name, line in held.items() if is_build(name, requirement(line).specifier)}
    found: list[Message] = []
    if candidate.backend is Backend.DIRECTML:
        card = candidate.cards[0]
        offered = (one for one in _CURRENT[card.vendor](context) if isinstance(one, Candidate) and card in one.cards)
        if better := next(offered, None):
            values = {"backend": better.backend.title, "option": f"--backend {better.backend.value}"}
            found.append(sentence("current-torch-for-card", name=card.name, torch=better.version, **values))
        elif _FOR_WINDOWS[0] in held:
            found.append(sentence("ort-for-card", package=_FOR_WINDOWS[0], name=card.name))
    found += (_successor_note(name, row, context) for name, row in builds.items() if row.ended)
    build = context.target.windows_build
    found += (
        sentence("ort-catalog-needs-windows", package=row.requirement, windows=row.windows_name)
        for row in _provider_catalogs(context)
        if build is not None and build < row.windows_build
    )
    plugged = [name for name in held if name not in builds]
    found += (sentence("ort-plugin-registers", package=name) for name in plugged)
    if not plugged:
        found += _plug_in_hint(context, plain={*builds} == {_PLAIN})
    return found


def _provider_catalogs(context: Context) -> list[Row]:
    """Return the rows of `provider_catalogs` whose distribution the user pins."""
    asked = _asked_packages(context)
    return [row for row in provider_catalogs() if row.requirement in asked] if asked else []


def _successor_note(package: str, row: Row, context: Context) -> Message:
    """Return the sentence that a build has ended, and what follows it, if anything: here, or under which condition."""
    if not row.successor:
        return sentence("ort-ended", package=package, version=row.ended)
    successor = requirement(row.successor).name
    next_build = runtime_builds().get(successor)
    values = {"package": package, "version": row.ended, "successor": successor}
    wheels = context.catalog.by("torch.basics", "package", "cuda").get((successor, None))
    if wheels and not context.published_line(successor) and (tags := wheels.pythons.get(context.target.platform)):
        return sentence("ort-ended-for-python", pythons=python_range(tags), **values)
    if next_build and not _published_build(successor, context) and next_build.windows_name:
        return sentence("ort-ended-on-windows", windows=next_build.windows_name, **values)
    return sentence("ort-succeeded", **values)


def _plug_in_hint(context: Context, *, plain: bool) -> Iterator[Message]:
    """Yield at most one hint: a plug-in of ONNX Runtime that computes on one of the machine's GPUs or NPUs.

    Hardware that torch does not drive always gets it, other hardware only if the user pins an ONNX Runtime. `plain`
    says that the plan has the build called onnxruntime, which some plug-ins need.
    """
    about_runtime = bool(_provider_catalogs(context)) or not runtime_builds().keys().isdisjoint(
        _asked_packages(context)
    )
    for card in context.cards:
        own = maker_by_name(card.name)
        if not (own or about_runtime):
            continue
        key = "ort-plugin-for-npu" if own else "ort-plugin-for-card"
        for package, row in runtime_plugins().items():
            here = has_wheel(row, context.target.platform, context.target.python) and plain >= row.plain
            named = (own or card.vendor.value) in row.makers and re.search(row.names, card.name.lower())
            if here and named and card.capability >= number(row.capability):
                yield sentence(key, package=package, name=card.name, option=f"--pin {package}")
                return
