"""What only this machine knows of itself and its user, so that it can be taken out of what leaves it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from assistant.host.live import LiveHost
from assistant.privacy import Known, secret_values


def known_here() -> Known:
    """Ask the machine at hand."""
    return known_of(LiveHost().facts("identity"))


def known_of(identity: Mapping[str, object]) -> Known:
    """Put the `users` and `hosts` of a host's `identity` beside the secrets of this process's own environment."""
    users, hosts = (value if isinstance(value := identity.get(key), list) else [] for key in ("users", "hosts"))
    return Known(users=tuple(users), hosts=tuple(hosts), secrets=secret_values(os.environ))
