"""Time the quick and the full verification of an environment on its CPU: `python verify_time.py PYTHON-WITH-TORCH`."""

from __future__ import annotations

import sys
from typing import Literal, get_args

from assistant.i18n import render
from assistant.verify import run_checks
from assistant.views import speed_lines

Level = Literal["quick", "full"]
LIMITS: dict[Level, float] = {"quick": 10.0, "full": 90.0}


def main() -> None:
    """Print seconds and measured speeds; fail when a check does not pass or a limit is missed."""
    failed = False
    for level in get_args(Level):
        report = run_checks(sys.argv[1], "cpu", lambda _: None, level=level)
        print(f"{level}: {report.seconds:.1f} s (limit {LIMITS[level]:.0f} s), passed: {report.passed}")
        failed |= not report.passed or report.seconds > LIMITS[level]
    for line in speed_lines(report):
        print(render(line))
    sys.exit(failed)


if __name__ == "__main__":
    main()
