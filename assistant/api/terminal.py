"""What commands of an add-on share with the core's: options, and how answers are printed."""

from __future__ import annotations

from assistant.cli.console import console, draw_rows
from assistant.cli.draw import draw_findings, draw_preview
from assistant.cli.journey import Journey, refuse_failed
from assistant.cli.options import (
    dry_run_option,
    each,
    host_of,
    only_one,
    read_text,
    replay_option,
    request_of,
    request_options,
    source_options,
    target_option,
)
from assistant.cli.plan import Brief, plan, plan_tools, read_brief
from assistant.cli.terminal import Option, ask, echo, echo_json, json_option, yes_option

__all__ = [
    "Brief",
    "Journey",
    "Option",
    "ask",
    "console",
    "draw_findings",
    "draw_preview",
    "draw_rows",
    "dry_run_option",
    "each",
    "echo",
    "echo_json",
    "host_of",
    "json_option",
    "only_one",
    "plan",
    "plan_tools",
    "read_brief",
    "read_text",
    "refuse_failed",
    "replay_option",
    "request_of",
    "request_options",
    "source_options",
    "target_option",
    "yes_option",
]
