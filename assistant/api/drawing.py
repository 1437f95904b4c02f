"""Tables, findings and previews in the terminal."""

from __future__ import annotations

from assistant.cli.draw import console, draw_findings, draw_preview, draw_rows
