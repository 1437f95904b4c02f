"""Tables, findings and previews in the terminal."""

from __future__ import annotations

from assistant.cli.console import console, draw_rows
from assistant.cli.draw import draw_findings, draw_preview
