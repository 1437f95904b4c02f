"""`assistant export --machine`: a setup package, or a JupyterHub profile, for each kind of PC."""

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
from assistant.i18n import Message
from assistant.install import Tools
from assistant.machines import label, load, shipped
from assistant.model.plan import Request
from assistant.plan import PlanInputs
from assistant.session.joint import decided
from assistant.session.kits import Pc, packages_for, pc, profiles_for


def write_packages(
    machines: tuple[str, ...], folder: Path, options: dict[str, Any], *, profiles: bool, force: bool, quiet: bool
) -> tuple[Path, ...]:
    """Plan for each machine, resolve its packages, write them, and return the paths, the page's first.

    With `profiles` a JupyterHub profile is written for each kind of GPU instead, and nothing is resolved. `options` are
    those of `request_options` and `source_options`.
    """
    request = request_of(options)
    tools = plan_tools(options)
    pcs = [_pc(name, request, tools) for name in machines]

    def tell(text: Message) -> None:
        if not quiet:
            echo(text, err=True)

    if profiles:
        return write_all(folder, profiles_for(pcs, tell), lambda _foreign: force)
    return write_all(folder, packages_for(pcs, tools, tell), lambda _foreign: force)


def _pc(name: str, request: Request, tools: Tools) -> Pc:
    """Plan for a shipped machine, or for one that a file describes."""
    if name in shipped() or not Path(name).exists():
        machine = detect(ReplayHost(load(name))).machine
        return pc(label(name), machine, decided(PlanInputs(machine, load_catalog(), request), tools, look=False))
    brief = read_brief(read_text(name), name)
    case = PlanInputs(brief, load_catalog(), brief.asked(request))
    return pc(Path(name).stem, brief, decided(case, tools, look=False))
