"""Where the labs were before they became an add-on; the name works until the next release, with a warning."""

from __future__ import annotations

from assistant.addons import deprecated_getattr

__getattr__ = deprecated_getattr(__name__)
