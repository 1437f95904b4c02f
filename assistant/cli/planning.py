"""What planning in the terminal works with: this user's package sources, a line for what takes seconds, batches."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from assistant.catalog import Catalog
from assistant.cli.brief import read_brief
from assistant.cli.inputs import print_answers, read_lines
from assistant.cli.terminal import echo
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import render, say
from assistant.install import Sources, Tools
from assistant.model.event import Event, Progress
from assistant.model.machine import Machine
from assistant.model.plan import Planning, Request
from assistant.model.record import to_json
from assistant.plan import PlanInputs, explain, kind_of
from assistant.session.joint import decided

_KINDS = 1024  # chosen: kinds of machines whose plans are kept, some 20 kB each


def plan_tools(options: Mapping[str, Any]) -> Tools:
    """Return what planning works with: this machine's package sources, as the options and the user's settings say.

    What takes seconds is told on a terminal's standard error.
    """
    host = LiveHost()

    def tell(event: Event) -> None:
        if isinstance(event, Progress) and sys.stderr.isatty():
            echo(render(event.text), err=True)

    return Tools(host, Sources(host, **options), tell, CancelToken())


def plan_each(file: str, catalog: Catalog, request: Request, tools: Tools) -> None:
    """Print a plan for each line of a file; machines of one kind are planned once."""

    @lru_cache(maxsize=_KINDS)
    def of_kind(text: str) -> Planning:
        brief = read_brief(text, say("This line"))
        return decided(PlanInputs(brief, catalog, brief.asked(request)), tools, look=False)

    print_answers(read_lines(file), lambda line: of_kind(to_json(kind_of(read_brief(line, say("This line"))))))


def show_planning(planning: Planning, machine: Machine, *, why: bool) -> None:
    """Print the plans for a machine; with `why` also the reasoning."""
    from assistant.cli.draw import draw_planning  # noqa: PLC0415 - --json need not load the drawing library

    draw_planning(planning, brief=why)
    if why:
        echo("\n".join(map(render, explain(planning, machine))))
