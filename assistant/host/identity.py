"""Names and secrets that only this machine knows, so that they can be removed from what leaves it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from assistant.host.live import LiveHost
from assistant.privacy import Known, secret_values


def known_here() -> Known:
    """Return those of the machine at hand."""
    return known_of(LiveHost().facts("identity"))


def known_of(identity: Mapping[str, object]) -> Known:
    """Return the `users` and `hosts` of a host's `identity`, and the secrets of this process's own environment."""
    users, hosts = (value if isinstance(value := identity.get(key), list) else [] for key in ("users", "hosts"))
    return Known(users=tuple(users), hosts=tuple(hosts), secrets=secret_values(os.environ))
