"""Which ONNX Runtime goes beside a candidate's torch, what plugs into it, and what follows what has ended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import number, python_range
from assistant.catalog.onnxruntimes import (
    has_wheel,
    is_build,
    maker_of,
    provider_catalogs,
    runtime_builds,
    runtime_plugins,
)
from assistant.catalog.tables import Row
from assistant.i18n import Message
from assistant.model.machine import Vendor
from assistant.model.plan import Backend
from assistant.model.requirement import name_of, requirement
from assistant.plan import cuda, other_backends, rocm
from assistant.plan.candidates import Candidate, Context
from assistant.plan.gpus import Card
from assistant.plan.sentences import sentence

_PLAIN = "onnxruntime"
_FOR_WINDOWS = ("onnxruntime-windowsml", "onnxruntime-directml")
_CURRENT = {Vendor.NVIDIA: cuda.offers, Vendor.AMD: rocm.offers, Vendor.INTEL: other_backends.xpu}


def onnxruntimes(candidate: Candidate, context: Context) -> tuple[str, ...]:
    """Return the build of ONNX Runtime that drives a candidate's device, and its plug-in; () where none is published.

    A build that the user asks for stands in for ours, since two would write one folder.
    """
    asked = _asked(context)
    if any(is_build(name, need.specifier) for name, need in asked.items()):
        return ()
    for lines in _ways(candidate, context, asked):
        if all(lines):
            return tuple(line for line in lines if line)
    return ()


def _asked(context: Context) -> dict[str, Requirement]:
    """Return what the user asks for, by its name in PyPI's spelling."""
    return {canonicalize_name(pin.name): pin for pin in context.pins.others}


def _ways(candidate: Candidate, context: Context, asked: Collection[str]) -> Iterator[tuple[str | None, ...]]:
    """Yield the sets of requirements that would do, best first; None in one stands for what is not published here."""
    if any(runtime_plugins()[name].plain for name in asked if name in runtime_plugins()):
        yield (context.published(_PLAIN),)
    for row in _catalogs(context):
        yield (_build_here(row.runtime, context),)
    if candidate.backend is Backend.CUDA:
        yield (context.published("onnxruntime-gpu", int(candidate.variant[2:4])),)
    elif candidate.backend is Backend.XPU:
        plugin = "onnxruntime-ep-openvino"
        here = has_wheel(runtime_plugins()[plugin], context.target.platform, context.target.python)
        yield context.published(_PLAIN), plugin if here else None
        yield (context.published("onnxruntime-openvino"),)
    elif context.target.os == "windows" and candidate.backend in (Backend.ROCM, Backend.DIRECTML):
        yield from ((_build_here(name, context),) for name in _FOR_WINDOWS)
    elif candidate.backend is Backend.ROCM and context.machine.rocm_tools:
        # MIGraphX itself is part of a ROCm installation, not of the wheels.
        yield (context.published("onnxruntime-migraphx"),)
    yield (context.published(_PLAIN),)


def _build_here(name: str, context: Context) -> str | None:
    row, build = runtime_builds()[name], context.target.windows_build
    return context.published(name) if build is None or build >= row.windows_build else None


def about_onnxruntime(candidate: Candidate, context: Context, lines: Iterable[str]) -> list[Message]:
    """Say what the ONNX Runtime of a plan (`lines` are its requirements) has to be known for: each in one sentence."""
    every, plugins = runtime_builds(), runtime_plugins()
    held = {name: line for line in lines if (name := name_of(line)) in every or name in plugins}
    builds = {name: every[name] for name, line in held.items() if is_build(name, requirement(line).specifier)}
    found: list[Message] = []
    if candidate.backend is Backend.DIRECTML:
        found += _instead_of_torch_directml(candidate, context, held)
    found += (_ended(name, row, context) for name, row in builds.items() if row.ended)
    build = context.target.windows_build
    found += (
        sentence("ort-catalog-needs-windows", package=row.requirement, windows=row.windows_name)
        for row in _catalogs(context)
        if build is not None and build < row.windows_build
    )
    plugged = [name for name in held if name not in builds]
    found += (sentence("ort-plugin-registers", package=name) for name in plugged)
    if not plugged:
        found += _further(context, plain={*builds} == {_PLAIN})
    return found


def _catalogs(context: Context) -> list[Row]:
    """Return the bindings that the user asks for and that find providers of the system."""
    asked = _asked(context)
    return [row for row in provider_catalogs() if row.requirement in asked] if asked else []


def _ended(package: str, row: Row, context: Context) -> Message:
    """Say that a build goes no further, and what takes its place: here, or under which condition."""
    if not row.successor:
        return sentence("ort-ended", package=package, version=row.ended)
    successor = requirement(row.successor).name
    next_build = runtime_builds().get(successor)
    values = {"package": package, "version": row.ended, "successor": successor}
    wheels = context.catalog.basics.get((successor, None))
    if wheels and not context.published(successor) and (tags := wheels.pythons.get(context.target.platform)):
        return sentence("ort-ended-for-python", pythons=python_range(tags), **values)
    if next_build and not _build_here(successor, context) and next_build.windows_name:
        return sentence("ort-ended-on-windows", windows=next_build.windows_name, **values)
    return sentence("ort-succeeded", **values)


def _instead_of_torch_directml(candidate: Candidate, context: Context, held: Collection[str]) -> Iterator[Message]:
    """Say what serves the card of a plan for DirectML better: a current torch, or ONNX Runtime for ONNX models."""
    card = candidate.cards[0]
    better = next((one for one in _CURRENT[card.vendor](context).candidates if card in one.cards), None)
    if better:
        values = {"backend": better.backend.title, "option": f"--backend {better.backend.value}"}
        yield sentence("current-torch-for-card", name=card.name, torch=better.version, **values)
    elif _FOR_WINDOWS[0] in held:
        yield sentence("ort-for-card", package=_FOR_WINDOWS[0], name=card.name)


def _further(context: Context, *, plain: bool) -> Iterator[Message]:
    """Name the plug-in that drives a machine's hardware where torch does not, or where ONNX Runtime is asked for."""
    about_runtime = bool(_catalogs(context)) or not runtime_builds().keys().isdisjoint(_asked(context))
    for card in context.cards:
        own = maker_of(card.name)
        if not (own or about_runtime):
            continue
        key = "ort-plugin-for-npu" if own else "ort-plugin-for-card"
        for package, row in runtime_plugins().items():
            here = has_wheel(row, context.target.platform, context.target.python) and plain >= row.plain
            if here and _drives(row, card, own or card.vendor.value):
                yield sentence(key, package=package, name=card.name, option=f"--pin {package}")
                return


def _drives(row: Row, card: Card, maker: str) -> bool:
    named = re.search(row.names, card.name.lower()) is not None
    return maker in row.makers and named and card.capability >= number(row.capability)
