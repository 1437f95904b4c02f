"""What planning in the terminal works with: this user's package sources, and a line for what takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from assistant.cli.terminal import echo, echo_json
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import render
from assistant.install import Sources, Tools
from assistant.model.event import Event, Progress
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.project import Project
from assistant.session.answers import of_planning


def plan_tools(options: Mapping[str, Any]) -> Tools:
    """Return what planning works with: this machine's package sources, as the options and the user's settings say.

    What takes seconds is told on a terminal's standard error.
    """
    host = LiveHost()

    def tell(event: Event) -> None:
        if isinstance(event, Progress) and sys.stderr.isatty():
            echo(render(event.text), err=True)

    return Tools(host, Sources(host, **options), tell, CancelToken())


def print_planning(planning: Planning, project: Project | None, machine: Machine | None) -> None:
    """Print plans as JSON, with `machine` also why, and what another driver would bring."""
    echo_json(of_planning(planning, project, machine))
