"""Which parts of an installation are done, which one is at work, and how far that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from assistant.i18n import Message, Text, _
from assistant.model.event import Part
from assistant.session.state import State, Task

TITLES: Mapping[Part, Message] = {
    Part.RESOLVE: _("Resolve the packages"),
    Part.DOWNLOAD: _("Download"),
    Part.UNPACK: _("Unpack"),
    Part.CHECK: _("Check that it computes"),
    Part.REGISTER: _("Add the kernel to Jupyter"),
}


class Row(NamedTuple):
    """One part of an installation, and what it says of itself while it runs."""

    title: Message
    status: Literal["waiting", "running", "done"]
    figures: Text = ""


def rows(state: State) -> tuple[Row, ...]:
    """List the parts of the installation that runs, in order; none while another task runs."""
    if state.running is not Task.INSTALL:
        return ()
    progress = state.doing.progress
    running = (progress and progress.part) or Part.DOWNLOAD
    parts = tuple(Part)
    at = parts.index(running)
    return (
        *(Row(TITLES[part], "done") for part in parts[:at]),
        Row(TITLES[running], "running", progress.figures if progress else ""),
        *(Row(TITLES[part], "waiting") for part in parts[at + 1 :]),
    )
