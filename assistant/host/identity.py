"""Names and secrets that only this machine knows, so that they can be removed from what leaves it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from assistant.host.files import private_folder, read_plain, write_whole
from assistant.host.folders import user_state
from assistant.host.live import LiveHost
from assistant.privacy import Known, secret_values


def known_here() -> Known:
    """Return those of the machine at hand."""
    return known_of(LiveHost().facts("identity"))


def known_of(identity: Mapping[str, object]) -> Known:
    """Return the `users` and `hosts` of a host's `identity`, and the secrets of this process's own environment."""
    users, hosts = (value if isinstance(value := identity.get(key), list) else [] for key in ("users", "hosts"))
    return Known(users=tuple(users), hosts=tuple(hosts), secrets=secret_values(os.environ))


def mark_of(text: str) -> str:
    """Return a mark by which a text of this user's is known again, and nobody is: its hash under a key.

    The key is drawn at random once and never leaves the machine. Raises `OSError`.
    """
    import hashlib  # noqa: PLC0415 - 3 ms of OpenSSL that other commands need not pay
    import hmac  # noqa: PLC0415 - likewise
    import secrets  # noqa: PLC0415 - likewise

    path = private_folder(user_state()) / "contribution.key"
    try:
        key = read_plain(path)
    except FileNotFoundError:
        key = secrets.token_bytes(32)
        write_whole(path, key, private=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]
