"""What planning in the terminal works with: this user's package sources, and a line for what takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from assistant.cli.terminal import echo
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import render
from assistant.install import Sources, Tools
from assistant.model.event import Event, Progress


def plan_tools(options: Mapping[str, Any]) -> Tools:
    """Return what planning works with: this machine's package sources, as the options and the user's settings say.

    What takes seconds is told on a terminal's standard error.
    """
    host = LiveHost()

    def tell(event: Event) -> None:
        if isinstance(event, Progress) and sys.stderr.isatty():
            echo(render(event.text), err=True)

    return Tools(host, Sources(host, **options), tell, CancelToken())
