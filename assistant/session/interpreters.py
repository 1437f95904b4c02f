"""The Pythons of a setup: this kernel's, its server's, that of a cell that failed, and one with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.folders import is_own_environment
from assistant.host.recording import ReplayHost
from assistant.install import Tools, interpreter, is_environment, look_at, read_marker
from assistant.machines import load
from assistant.model.errors import BadInput
from assistant.model.event import FindingRaised, Step
from assistant.model.finding import Severity
from assistant.model.machine import Detection
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.parsers.decode import tidied
from assistant.session.doctor import judged
from assistant.session.environments import judged_site, unanswered
from assistant.session.pasted import WHOLE
from assistant.session.state import Detected, Installed, Page, Pasted, Planned, State


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
        environment = Environment(path=str(path.parent.parent), python=str(path))
    elif marker := read_marker(folder):
        planned = Planned(planning=Planning(choice=marker.plan, plans=(marker.plan,)))
        return replace(begins, installed=Installed(environment=marker.environment), planned=planned)
    else:
        environment = Environment(path=str(folder), python=str(interpreter(folder)))
    return replace(begins, installed=Installed(environment=environment))


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


def detected(state: State, tools: Tools) -> Detected:
    """Detect and judge a machine; find its interpreters too, where it is the one at hand."""
    if not state.machine:
        tools.sources.warm_up()
    found = detect(ReplayHost(load(state.machine)) if state.machine else tools.host, overrides=state.choices.overrides)
    if state.failed_cell and state.environment:
        found = as_kernel_has_it(found, state.environment, tools)
    found = replace(found, findings=tuple(each for each in judged(found) if each.severity is not Severity.OK))
    return Detected(detection=found, pythons={} if state.machine else interpreters(tools.host))


def interpreters(host: Host) -> dict[str, str]:
    """Return the interpreters of this kernel and of its Jupyter server; "" where none was found.

    `ours` is not empty where the kernel runs in the environment that start.py made for the assistant itself.
    """
    own, server = host.facts("platform"), host.facts("server")
    return {
        "kernel": str(own.get("executable", "")),
        "version": str(own.get("python", "")),
        "server": str(server.get("executable", "")),
        "ours": "yes" if is_own_environment(str(own.get("prefix", ""))) else "",
    }


def kernel_is_ours(state: State) -> bool:
    """Return whether this kernel runs in the assistant's own environment, which is no place for anything else."""
    return state.detected is not None and bool(state.detected.pythons.get("ours"))
