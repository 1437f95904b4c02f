"""`assistant export --machine`: a setup package for each kind of PC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assistant.cli.options import request_of
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo
from assistant.cli.wanted import case_of
from assistant.export import write_all
from assistant.i18n import Message
from assistant.install import Tools
from assistant.model.plan import Request
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

    def tell(text: Message) -> None:
        if not quiet:
            echo(text, err=True)

    return write_all(folder, packages_for(pcs, tools, tell), lambda _foreign: force)


def _pc(name: str, request: Request, tools: Tools) -> Pc:
    """Plan for a shipped machine, or for one that a file describes."""
    label, case = case_of(name, request)
    return pc(label, case.machine, decided(case, tools, look=False))
