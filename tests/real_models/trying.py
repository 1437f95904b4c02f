"""Tries one converted model against its source as `assistant onnx try` does: `trying.py MODEL SOURCE`."""

from __future__ import annotations

import sys

from children import tell

from assistant.i18n import render
from assistant.onnx.compare import try_model


def main(model: str, source: str) -> None:
    """Tell whether the inputs that the assistant makes up run, and what it says of the result."""
    done = try_model(model, source, "cpu", limit=120)
    tell(tried=not done.reference_run.error, try_passed=done.passed, try_says=render(done.verdict))


if __name__ == "__main__":
    main(*sys.argv[1:])
