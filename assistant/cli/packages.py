"""`assistant export --machine`: a setup package for each kind of PC, and a page that shows which PC gets which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assistant.catalog import load_catalog
from assistant.cli.brief import read_brief
from assistant.cli.inputs import read_text
from assistant.cli.options import request_of
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo
from assistant.detect import detect
from assistant.export import write_all
from assistant.host.recording import ReplayHost
from assistant.install import Tools
from assistant.machines import label, load, shipped
from assistant.model.plan import Request
from assistant.plan import PlanInputs
from assistant.session.joint import decided
from assistant.session.kits import Pc, packages_for, pc


def write_packages(
    machines: tuple[str, ...], folder: Path, options: dict[str, Any], *, force: bool, quiet: bool
) -> tuple[Path, ...]:
    """Plan for each machine, resolve its packages, write them, and return the paths, the page's first.

    `options` are those of `request_options` and `source_options`.
    """
    request = request_of(options)
    tools = plan_tools(options)
    pcs = [_pc(name, request, tools) for name in machines]
    files = packages_for(pcs, tools, (lambda _text: None) if quiet else (lambda text: echo(text, err=True)))
    return write_all(folder, files, lambda _foreign: force)


def _pc(name: str, request: Request, tools: Tools) -> Pc:
    """Plan for a shipped machine, or for one that a file describes."""
    if name in shipped() or not Path(name).exists():
        machine = detect(ReplayHost(load(name))).machine
        return pc(label(name), machine, decided(PlanInputs(machine, load_catalog(), request), tools, look=False))
    brief = read_brief(read_text(name), name)
    case = PlanInputs(brief, load_catalog(), brief.asked(request))
    return pc(Path(name).stem, brief, decided(case, tools, look=False))
