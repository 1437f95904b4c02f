"""What commands print and ask with; it loads neither the drawing library nor anything of a setup."""

from __future__ import annotations

from assistant.cli.terminal import Option, ask, echo, echo_json, json_option, yes_option
