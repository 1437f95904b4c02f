"""Where uv is: installed with the assistant (extra `uv`), the one that started it (`uvx`), or the user's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from assistant.host.telemetry import for_child
from assistant.i18n import _
from assistant.model.errors import WorkFailed


@cache  # a search starts it over and over
def find_uv() -> str:
    """Return the path of uv; raise `WorkFailed` if there is none, or none that is new enough."""
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin  # noqa: PLC0415 - comes with an extra

        return str(find_uv_bin())
    # uv names itself in UV to what it starts. A path that is not absolute is what lies in the current folder.
    places = [os.environ.get("UV"), shutil.which("uv")]
    uv_path = next((place for place in places if place and Path(place).is_absolute() and Path(place).is_file()), None)
    if uv_path is None:
        from assistant.host.extras import missing_extra_error  # noqa: PLC0415 - it asks for uv itself

        raise missing_extra_error("uv", "uv")
    from assistant.host.extras import allows  # noqa: PLC0415 - likewise

    printed = subprocess.run(
        [uv_path, "--version"], capture_output=True, text=True, env=for_child(), check=False
    ).stdout
    version = re.match(r"uv (\d+(?:\.\d+)+)", printed)  # uv 0.13.9 (x86_64-unknown-linux-gnu)
    if not version or not allows("uv", version[1]):
        raise WorkFailed(
            _("{path} is not a uv that is new enough for the assistant.", path=uv_path),
            hint=_("Update it with: {command}", command="uv self update"),
        )
    return uv_path


def by_uvx() -> bool:
    """Return whether uvx started this: it runs from uv's cache then, where nothing may be added.

    Such as ~/.cache/uv/archive-v0/M1qoK1yLzf9Hy1Is.
    """
    return Path(sys.prefix).parent.name.startswith("archive-v")
