"""The report that a machine leaves when it was set up from a bundle."""

from __future__ import annotations

from pathlib import Path

from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo
from assistant.fleet import own_name, take_record, write_record
from assistant.host.folders import user_data
from assistant.host.identity import known_here
from assistant.host.live import LiveHost
from assistant.i18n import _, say
from assistant.model.record import replace
from assistant.privacy import redact
from assistant.session.state import State


def write_report(state: State, folder: Path) -> Path | None:
    """Write what was found, made and verified into a folder, else beside the environment; return the file.

    A report that can be written nowhere is told, and is no failure: what was installed stays.
    """
    host = LiveHost()
    environment = state.environment
    target = environment.path if environment else ""
    taken = take_record(host, own_name(host) or "machine", plan_tools({}), target=target, verify=False)
    taken = replace(taken, report=redact(state.report, known=known_here()))
    beside = Path(target).parent if target else user_data()
    for place in (folder, beside):
        try:
            written = write_record(taken, place)
        except OSError:
            continue
        echo(say("The machine's report: {file}", file=written), err=True)
        return written
    echo(
        _("The machine's report can be written neither to {folder} nor to {beside}.", folder=folder, beside=beside),
        err=True,
    )
    return None
