"""What commands share with the core's: options, a machine's description, a setup's run, tables and findings drawn."""

from __future__ import annotations

from assistant.cli.draw import console, draw_findings, draw_preview, draw_rows
from assistant.cli.options import (
    check_each,
    dry_run_option,
    pop_request,
    refuse_several,
    request_options,
    source_options,
)
from assistant.cli.plan import Brief, plan_tools, read_brief
from assistant.cli.setup import Journey, refuse_failed, target_option
from assistant.cli.terminal import find_host, read_text, replay_option
