"""A notebook's cell that failed: what it printed, and the environment of its kernel, whoever asks about them."""

from __future__ import annotations

from pathlib import Path

from assistant.host.folders import is_own_environment
from assistant.install import Tools, interpreter, is_environment, look_at, read_marker
from assistant.model.errors import BadInput
from assistant.model.event import FindingRaised, Step
from assistant.model.machine import Detection
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.parsers.decode import tidied
from assistant.session.environments import unanswered
from assistant.session.judgement import judged_site
from assistant.session.pasted import WHOLE
from assistant.session.state import Page, Pasted, State


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
