"""What happens first in a child that opens a stranger's model: it limits itself, calls one function, leaves the answer.

Only the standard library is imported here: the child may be another Python than the assistant's own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from pathlib import Path

ANSWER, REFUSAL = "answer.json", "refusal.json"  # files in the child's folder
PR_SET_PDEATHSIG = 1  # linux/prctl.h: the signal that this process gets when its parent ends


def main() -> None:
    """Do the job on standard input; what it did not foresee ends in a traceback, for the parent to report.

    The parent's working folder is that of the process from then on.
    """
    folder, job = Path.cwd(), json.loads(sys.stdin.read())
    _keep_to(job["memory"])
    os.chdir(job["here"])
    module, _colon, name = job["function"].partition(":")
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer, file = getattr(importlib.import_module(module), name)(**job["arguments"]), ANSWER
        except Exception as error:
            from assistant_addons.onnx.child import refusal  # noqa: PLC0415 - see above

            if (answer := refusal(error, job["model"])) is None:
                raise
            file = REFUSAL
    if not isinstance(answer, str):
        from assistant.api.records import to_json  # noqa: PLC0415 - see above

        answer = to_json(answer)
    (folder / file).write_text(answer, encoding="utf-8")


def _keep_to(memory: int) -> None:
    """Reserve no more bytes than these, and end with the parent, as far as the system knows how: Windows does not."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # macOS refuses it
        import resource  # noqa: PLC0415 - not on Windows

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only here

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
