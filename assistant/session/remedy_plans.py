"""The plans that remedies ask for, made for a machine, and the commands that carry them out where torch stands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.catalog.companions import carried_by_torch_index
from assistant.catalog.launchers import launchers, written
from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose import Log, PlanRequest, RuleRemedy, corrected_launches, supposed_cuda
from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput
from assistant.model.finding import Interpreter, Launch, Remedy
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import from_json, replace, to_json
from assistant.plan import make_plans

# What shows that a plan has helped, where its remedy has no check of its own.
CHECKS = {
    Backend.CUDA: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.ROCM: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.XPU: 'python -c "import torch; assert torch.xpu.is_available()"',
    Backend.MPS: 'python -c "import torch; assert torch.backends.mps.is_available()"',
    Backend.DIRECTML: 'python -c "import torch, torch_directml as d; torch.ones(2, device=d.device()).sum()"',
    Backend.CPU: 'python -c "import torch; torch.ones(2).sum()"',
}
_WHICH_GPU = Remedy(text=_("First find out which GPU is in the computer."), commands=("assistant detect",))


def with_plans(
    remedies: Iterable[tuple[Remedy, RuleRemedy | None]],
    machine: Machine,
    log: Log | None = None,
    where: Interpreter | None = None,
) -> tuple[Remedy, ...]:
    """Fill in plans, their checks and launch arguments; leave out a remedy whose plan this machine cannot have.

    `where` is the Python that the log's program runs in: a plan that fits it comes with the commands that put it there.
    """
    filled: list[tuple[Remedy, RuleRemedy | None]] = []
    for remedy, origin in remedies:
        by_maker = origin and origin.plan and (origin.plan.backend is None or "vendor" in origin.facts)
        if by_maker and not gpus_known(machine):
            asked = {each.text for each, _origin in filled}
            both = (remedy, _WHICH_GPU) if remedy.commands else (_WHICH_GPU, remedy)
            filled += [(each, None) for each in both if each.text not in asked]
            continue
        wanted = origin.plan if origin else None
        plan = planned(machine, wanted, where) if wanted else None
        check = remedy.check or ((CHECKS[plan.backend],) if plan else ())
        commands = (*remedy.commands, *(_into(plan, machine, wanted, where) if plan and wanted else ()))
        text = _for_this(remedy.text, plan)
        filled.append((replace(remedy, plan=plan, check=check, text=text, commands=commands), origin))
    first = next((remedy.plan for remedy, _origin in filled if remedy.plan), None)
    possible = tuple(
        replace(remedy, launch=tuple(map(whole, corrected_launches(log, first.backend, machine.os or ""))))
        if origin and origin.launch and first and log and log.text
        else remedy
        for remedy, origin in filled
        if origin is None or origin.plan is None or remedy.plan or remedy.commands or remedy.env
    )
    return possible or tuple(remedy for remedy, _origin in filled)


def any_nvidia(machine: Machine, cuda: str) -> Machine:
    """Return a machine with an NVIDIA card of which no more is known, and the newest CUDA that its driver surely takes.

    A driver takes all minor releases of its CUDA: https://docs.nvidia.com/deploy/cuda-compatibility/. The system
    matters little: CUDA's indexes serve Linux and Windows alike.
    """
    told = machine.cuda_driver_api or machine.nvidia_driver
    driver = None if told else cuda
    cards = machine.gpus or (Gpu(vendor=Vendor.NVIDIA),)
    return replace(machine, os=machine.os or "linux", gpus=cards, cuda_driver_api=machine.cuda_driver_api or driver)


def gpus_known(machine: Machine) -> bool:
    """Return whether GPUs were told, or looked for: a machine that was not detected may have one that nobody named."""
    return bool(machine.gpus or machine.evidence)


def planned(machine: Machine, wanted: PlanRequest, where: Interpreter | None = None) -> Plan | None:
    """Return the plan for a request; in an environment that stands, the one that changes least of it.

    Where CUDA is to be had and nothing is known of machine or card, any NVIDIA card is meant.
    """
    if wanted.backend is Backend.CUDA and not gpus_known(machine):
        machine = any_nvidia(machine, supposed_cuda(new_card=True))
    if not machine.os:
        return None
    facts = to_json(replace(machine, evidence=()))  # of what was looked at the planner asks nothing
    stands = _stands(wanted, where)
    family = stands or "torch" in machine.packages
    plan = _plan(facts, wanted, family=family)
    if plan is None or not stands:
        return plan
    there = replace(wanted, python=_minor(machine) or None)
    same = replace(there, pins=(f"torch=={_torch(machine)}", *wanted.pins))
    narrower = [*([same] if wanted.changes == "build" and _torch(machine) else []), *([there] if there.python else [])]
    plans = (_plan(facts, each, family=family) for each in narrower)
    return next((one for one in plans if one and one.backend is plan.backend), plan)


def _stands(wanted: PlanRequest, where: Interpreter | None) -> bool:
    """Return whether a log comes from an environment in which the request can be met."""
    return where is not None and wanted.changes != "environment" and wanted.python is None


def _minor(machine: Machine) -> str:
    return ".".join((machine.python or "").split(".")[:2])


def _torch(machine: Machine) -> str:
    return machine.packages.get("torch", "").partition("+")[0]


def _into(plan: Plan, machine: Machine, wanted: PlanRequest, where: Interpreter | None) -> Iterator[str]:
    """Yield the commands that put a plan into the environment that a log comes from; none where it needs another."""
    if not _stands(wanted, where) or _minor(machine) not in {"", plan.python}:
        return
    sure = _minor(machine) or plan.torch == _torch(machine)  # that these releases are there for its Python
    stays = machine.packages.get("torch") == f"{plan.torch}+{plan.variant}"
    named = {canonicalize_name(Requirement(line).name): line for line in plan.requirements}
    asked = {"torch-directml", *(canonicalize_name(Requirement(pin).name) for pin in wanted.pins)}
    changed = [name for name in named if name in CORE | asked and not (stays and name == "torch")]
    lines: dict[str, str] = {name: named[name] if sure else _bare(named[name]) for name in changed}
    if here := _from_torchs_index(plan, lines):
        yield f"python -m pip uninstall -y {' '.join(here)}"
    yield from _pip_install(plan, lines)


def pip_commands(plan: Plan) -> Iterator[str]:
    """Yield the commands of plain pip that install what a plan requires, torch and what shares its index first."""
    return _pip_install(plan, {canonicalize_name(Requirement(line).name): line for line in plan.requirements})


def _pip_install(plan: Plan, lines: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that install requirements, by name: first those from torch's index, then the rest."""
    here = _from_torchs_index(plan, lines)
    if here:
        index = f" --index-url {plan.index_url}" if plan.index_url else ""
        yield f"python -m pip install {' '.join(_quoted(lines[name]) for name in here)}{index}"
    if rest := [name for name in lines if name not in here]:
        yield f"python -m pip install {' '.join(_quoted(lines[name]) for name in rest)}"


def _from_torchs_index(plan: Plan, names: Iterable[str]) -> list[str]:
    """Return what comes from the index that the plan's torch comes from."""
    if plan.index_url is None:
        return [*names]
    return [
        name
        for name in names
        if name in CORE or (name not in plan.apart and carried_by_torch_index(name, plan.variant))
    ]


def _bare(line: str) -> str:
    """Return a requirement without its versions: `torch[device-gfx1151]` of `torch[device-gfx1151]==2.14.0`."""
    wanted = Requirement(line)
    return f"{wanted.name}[{','.join(sorted(wanted.extras))}]" if wanted.extras else wanted.name


def _quoted(line: str) -> str:
    return f'"{line}"' if set(line) & set("<>;[ !~") else line


def _for_this(text: Text, plan: Plan | None) -> Text:
    """Name the one build that was planned, where a rule's sentence lists those of every maker."""
    listed = text.id if isinstance(text, Message) else text
    if plan is None or sum(backend.title in listed for backend in Backend) <= 2:  # noqa: PLR2004 - a pair is a contrast
        return text
    return _("Install PyTorch for {backend}, the build that fits this computer.", backend=plan.backend.title)


def whole(launch: Launch) -> Launch:
    """Write out the line of a file of settings, such as `device: auto`, in which a bare argument would be an error."""
    settings = next((each for each in launchers() if each.name == launch.app), None)
    if launch.line or settings is None or any(word.startswith("-") for word in settings.choosing):
        return launch
    line = written(settings, launch.add, next(iter(settings.lines))) if launch.add else None
    return replace(launch, line=line, add=()) if line else launch


@cache  # many remedies ask for the same plan; the machine as JSON, since a record with dicts has no hash
def _plan(facts: str, wanted: PlanRequest, *, family: bool) -> Plan | None:
    """Plan for a machine; of the `family` torchvision and torchaudio, which may be there, change with torch."""
    machine = from_json(facts, Machine, "machine")
    beside = FAMILY if family and not {*wanted.pins} & {*FAMILY} else ()
    for pins in dict.fromkeys(((*wanted.pins, *beside), wanted.pins)):
        request = Request(backend=wanted.backend, python=wanted.python, pins=pins)
        with contextlib.suppress(BadInput):
            if choice := make_plans(machine, load_catalog(), request).choice:
                return choice
    return None
