"""What a confined child does first: it limits itself, before it reads what a stranger made.

Only the standard library is needed, as the child may be another Python than the assistant's own.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

PR_SET_PDEATHSIG = 1  # linux/prctl.h: the signal that this process gets when its parent ends


def keep_to(limits: Mapping[str, int]) -> None:
    """Limit this process and all that it starts, by the names of `resource` ("AS", "CPU", …); no child outlives us.

    Windows knows none of these limits; there the parent alone watches.
    """
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            value = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with suppress(ValueError, OSError):  # macOS refuses some of them
                resource.setrlimit(number, (value, value))
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only here

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
