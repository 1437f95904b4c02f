"""`pylock.toml`: every package with its version, address and hash (PEP 751), for `uv pip sync` and `pip install -r`."""

from __future__ import annotations

from assistant.export.bundle import MARKER, Bundle, Unsuited
from assistant.i18n import _

__all__ = ["lock_text"]


def lock_text(bundle: Bundle) -> str:
    """Give the lock as the installation was made from it; raise `Unsuited` where there was none."""
    if not bundle.lock:
        raise Unsuited(
            _("The addresses and hashes of this environment's packages are not known, so there is no pylock.toml."),
            hint=_("Install with `assistant install` or `assistant apply`, then export."),
        )
    return f"# {MARKER}\n{bundle.lock}"
