"""What the packages that a user asks for need beside themselves: libraries for another CUDA, things of the system."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from packaging.requirements import Requirement

from assistant.catalog import Catalog
from assistant.catalog.companions import wheel_sources
from assistant.catalog.needs import beside, clashes, needs
from assistant.i18n import Message, _, sentences
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Request
from assistant.model.requirement import name_of
from assistant.plan.candidates import Candidate, Context
from assistant.plan.target import Target, target_of

_OF_TORCH_TOO = "msvc-runtime"  # what torch needs as well is the doctor's to look for


def added(candidate: Candidate, context: Context) -> tuple[str, ...]:
    """Return requirement lines that the asked-for packages need to compute on a candidate's torch."""
    target = context.target
    return beside(context.pins.others, candidate.version, candidate.variant, target.platform).requires


def warnings(candidate: Candidate, context: Context) -> list[Message]:
    """Say what else the asked-for packages need: of the loader, of their CUDA, of the system."""
    target, asked = context.target, context.pins.others
    wanted = (need for pin in asked for need in needs(pin.name, target.os, candidate.backend))
    system = [sentences((need.text, need.help)) for need in wanted if need.key != _OF_TORCH_TOO]
    return [*beside(asked, candidate.version, candidate.variant, target.platform).warnings, *dict.fromkeys(system)]


def wheel_pages(name: str, plan: Plan, machine: Machine, catalog: Catalog) -> list[Message]:
    """Say where wheels of a package lie for a plan's torch, beside PyPI and torch's indexes."""
    target = target_of(machine, Request(python=plan.python), catalog)
    need = next((Requirement(line) for line in plan.requirements if name_of(line) == name), None)
    if not isinstance(target, Target) or need is None:
        return []
    found = []
    for one in wheel_sources(need, plan.torch, plan.variant, target.platform):
        text = _("Others have wheels for torch {torch} at {url}: use them only if you trust them.")
        if one.by == "its makers":
            text = _("Its makers have wheels for torch {torch} at {url}.")
        option = {"option": f"--find-links {one.url}"} if one.find == "links" else {}
        found.append(text.format(torch=plan.torch, url=one.url, **option))
    return found


def without_overwritten(
    lines: Iterable[str], versions: Mapping[str, str], asked: Collection[str]
) -> tuple[tuple[str, ...], list[Message]]:
    """Leave out what nobody asked for and another package of the solved set overwrites; say what clashes all the same.

    faster-whisper brings plain onnxruntime, for example, into whose folder a plan's onnxruntime-gpu would write.
    """
    kept = list(lines)
    ours = {name_of(line) for line in kept}.difference(asked)
    left_out = {name for clash in clashes(versions) for name in clash.names if name in ours}
    there = {name: version for name, version in versions.items() if name not in left_out}
    rest = tuple(line for line in kept if name_of(line) not in left_out)
    return rest, [clash.text for clash in clashes(there)]
