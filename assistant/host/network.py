"""How the user's pip reaches its indexes, apart from `web`, whose libraries take 40 ms that few commands need."""

from __future__ import annotations

from assistant.model.record import Record


class Network(Record, frozen=True):
    """The user's proxy, certificates and trusted hosts; "" and () leave it to the environment variables."""

    proxy: str = ""
    cert: str = ""
    client_cert: str = ""
    trusted_hosts: tuple[str, ...] = ()


DIRECT = Network()
