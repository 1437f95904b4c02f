"""Where the labs were before they became an add-on; the name works until the next release, with a warning."""

from __future__ import annotations

from assistant.addons import moved

__getattr__ = moved(__name__)
