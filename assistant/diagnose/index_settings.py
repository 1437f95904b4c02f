"""Which index has a package, and why one that is named was not asked: it stood where the tool does not look."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.rows import CORE
from assistant.diagnose.attempts import Attempt
from assistant.diagnose.causes import Cause
from assistant.diagnose.index_addresses import PYPI
from assistant.diagnose.offers import meeting, serve, variant_near

# hint: `numpy` was found on https://T, but not at the requested version (numpy==2.0). A compatible version may be
# available on a subsequent index (e.g., https://P).
_FIRST_INDEX = re.compile(
    r"`([a-z0-9][\w.-]{0,60})` was found on (\S{4,200}?),\s{1,9}but not at the requested version[^)]{1,90}\)"
    r"(?:[^()]{1,160}\(e\.g\.,\s{1,9}(\S{4,200}?)\))?"
)
_TORCH_BUILD = re.compile(r"\btorch(?:\{[^{}]{0,200}\})?==\d[\w.]{0,20}\+(cu\d{2,3}|rocm[\d.]{1,6}|xpu)\b")
# Settings of an index, and the tools that do not read them:
#   extra-index-url below [tool.uv.pip]: only `uv pip` reads it
#   export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu130: only pip reads it
# https://docs.astral.sh/uv/reference/settings/#pip, https://docs.astral.sh/uv/pip/compatibility/, 2026-11-26
_UV_PIP_TABLE = re.compile(r"^\s*\[tool\.uv\.pip\]\s*\n(?:[^\[\n][^\n]*\n){0,8}?[^\[\n]*index", re.MULTILINE)
_BY_PROJECT = re.compile(r"\buv (?:sync|lock|run|add|export)\b")
_PIP_SETTINGS = re.compile(
    r"\bpip_(?:extra_)?index_url ?=|pip config (?:set|list)[^\n]{0,40}(?:\n[^\n]{0,40})?index|pip\.(?:conf|ini)\b"
)
_BY_UV = re.compile(r"no solution found when resolving|\buv pip install\b|\buv (?:sync|lock|add)\b")


def unasked(attempt: Attempt) -> Iterator[Cause]:
    """Yield that an index was named and not asked for a package."""
    yield from _first_index(attempt)
    yield from _unread(attempt)


def _first_index(attempt: Attempt) -> Iterator[Cause]:
    """Judge what uv says itself: it stops at the first index that knows a name."""
    found = _FIRST_INDEX.search(attempt.text)
    if found and found[1] == attempt.package:
        yield attempt.cause("index-not-applied", index=found[2], right=found[3] or "")


def _unread(attempt: Attempt) -> Iterator[Cause]:
    """Judge an index that stands where this tool does not look: pip's settings, or those of `uv pip` alone."""
    text, right = attempt.text, right_index(attempt) if attempt.package in CORE else ""
    of_pip = _BY_UV.search(text) and _PIP_SETTINGS.search(text)
    if right not in {"", PYPI} and (of_pip or (_BY_PROJECT.search(text) and _UV_PIP_TABLE.search(text))):
        yield attempt.cause("index-not-applied", right=right)


def right_index(attempt: Attempt) -> str:
    """Return the index that has the release for this machine, of the build nearest to the one that was asked for."""
    if attempt.package not in CORE:
        if carried_by_torch_index(attempt.package) and attempt.failure.by in CORE and attempt.variant:
            return load_catalog().index_url(_of_index(attempt.variant)) or ""
        if carried_by_torch_index(attempt.package) and (build := _TORCH_BUILD.search(attempt.text)):
            return load_catalog().index_url(build[1]) or ""
        return PYPI
    rows = meeting(attempt.rows, attempt.failure.wanted)
    fitting = {row.variant for row in rows if row.platform in attempt.platforms} - {"pypi"}
    if attempt.python:
        fitting &= {row.variant for row in rows if serve([row], attempt.python)}
    chosen = variant_near(attempt.variant, fitting)
    return load_catalog().index_url(chosen) or "" if chosen else PYPI if rows else ""


def _of_index(local: str) -> str:
    """Return the tag of the index for a local version: AMD's `rocm7.2.0.gita272dfa8` is of rocm7.2."""
    found = re.match(r"rocm\d{1,2}\.\d{1,2}", local)
    return found[0] if found else local
