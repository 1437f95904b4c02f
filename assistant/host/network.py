"""How the user's pip reaches its indexes, apart from `web`, whose libraries take 40 ms that few commands need."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from assistant.model.record import Record


class Network(Record, frozen=True):
    """The user's proxy, certificates and trusted hosts; "" and () leave it to the environment variables."""

    proxy: str = ""
    cert: str = ""
    client_cert: str = ""
    trusted_hosts: tuple[str, ...] = ()


DIRECT = Network()


def local_path(url: str) -> Path | None:
    """Return the path of a `file:` URL, or a plain path as it is; None for a URL on a server."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return Path(url2pathname(parts.path))
    return None if "://" in url else Path(url)
