"""A notebook's cell that failed: what it printed, and the environment of its kernel, whoever asks about them."""

from __future__ import annotations

import re
from pathlib import Path

from assistant.diagnose import Log, PlanRequest
from assistant.host.folders import is_own_environment
from assistant.i18n import _
from assistant.install import Tools, interpreter, is_environment, look_at, read_marker
from assistant.model.errors import BadInput
from assistant.model.event import FindingRaised, Step
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.parsers.decode import tidied
from assistant.session.environments import unanswered
from assistant.session.judgement import judged_site
from assistant.session.pasted import WHOLE
from assistant.session.remedy_plans import CHECKS, planned
from assistant.session.state import Page, Pasted, State

# Python's own words, in lower case, as logs are searched; not those for torchvision or torch_directml.
_NO_TORCH = re.compile(r"no module named '?torch(?![\w.-])")


def beginning_at(printed: str, python: str) -> State:
    """Return where a guided setup begins: at what is wrong with a cell and with the environment of its kernel's Python.

    A Python that is not on this machine, as one behind a gateway is not, belongs to no environment here.
    """
    path = Path(python)
    pasted = Pasted(text=tidied(printed)[-WHOLE:])
    begins = State(page=Page.WRONG, pasted=pasted, failed_cell=True)
    if not (path.is_absolute() and path.is_file()):
        return begins
    above = (path.parent, path.parent.parent)  # conda on Windows keeps python.exe in the environment's own folder
    folder = next(filter(is_environment, above), None)
    if folder is None:
        return replace(begins, environment=Environment(path=str(path.parent.parent), python=str(path)))
    if marker := read_marker(folder):
        planning = Planning(choice=marker.plan, plans=(marker.plan,))
        return replace(begins, environment=marker.environment, planning=planning)
    return replace(begins, environment=Environment(path=str(folder), python=str(interpreter(folder))))


def as_kernel_has_it(found: Detection, kernel: Environment, tools: Tools) -> Detection:
    """Return what was detected with the packages that another kernel has, and tell what is wrong with those."""
    try:
        site = look_at(Path(kernel.python), tools.host)
    except BadInput as error:
        tools.sink(FindingRaised(step=Step.DETECT, finding=unanswered(error)))
        return found
    machine = replace(found.machine, packages=site.versions, python=site.version)
    for finding in () if is_own_environment(kernel.path) else judged_site(site, tools.host, machine):
        tools.sink(FindingRaised(step=Step.DETECT, finding=finding))
    return replace(found, machine=machine)


def with_torch(causes: tuple[Diagnosis, ...], log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Add the plan for torch in the kernel's own environment to a cause of its that it lacks torch.

    Other remedies lead to an environment that has it, if there is one.
    """
    lacks = "torch" not in machine.packages and _NO_TORCH.search(log.text)
    plan = planned(machine, PlanRequest()) if lacks else None
    if plan is None:
        return causes
    text = _("Install PyTorch into the environment of this kernel.")
    remedy = Remedy(text=text, plan=plan, check=(CHECKS[plan.backend],))
    return tuple(
        replace(cause, remedies=(*cause.remedies, remedy)) if cause.key == "kernel-env-mismatch" else cause
        for cause in causes
    )
