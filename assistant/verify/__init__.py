"""Does an environment really compute? Checks that its own Python runs in a child process, each within a time limit."""

from __future__ import annotations

from assistant.verify.results import lacking_in_system, raised
from assistant.verify.runner import run, run_checks
