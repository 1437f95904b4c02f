"""Does an environment really compute? Checks that its own Python runs in a child process, each within a time limit."""

from __future__ import annotations

from assistant.verify.runner import Picture, draw_picture, missing_system_parts, report_findings, run, run_checks
