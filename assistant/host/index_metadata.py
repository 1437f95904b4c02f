"""Reads the metadata of wheels that package indexes serve as files of their own (PEP 658): no wheel is downloaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.host.index import DIRECT, Network, reason_of, web_client
from assistant.host.parallel import each_within
from assistant.i18n import Message, Text, _

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient

LIMIT = 1 << 20  # bytes; chosen: the metadata of torch with its description take 30 kB
SECONDS = 20.0  # chosen: the most that one file may take


def read_metadata_of(
    wheels: Sequence[str], *, index_urls: Iterable[str], timeout: float, network: Network = DIRECT
) -> dict[str, bytes | Text]:
    """Return the metadata of wheels by their addresses, or why they cannot be had, `timeout` seconds for all."""
    late = _("it did not answer within {seconds:g} s", seconds=timeout)
    with web_client(network, SECONDS, [url for url in index_urls if "://" in url]) as client:
        found = each_within(lambda url: _read(f"{url}.metadata", client), wheels, timeout)
    return {url: found.get(url, late) for url in wheels}


def _read(url: str, client: PyPIClient) -> bytes | str | Message:
    content = b""
    try:
        with client.stream("GET", url) as answer:
            if not answer.is_success:
                return f"HTTP {answer.status_code}"
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LIMIT:
                    return _("its metadata are larger than {limit} MB", limit=LIMIT >> 20)
    except Exception as error:  # noqa: BLE001 - metadata that cannot be had are unknown, and the reason is told
        return reason_of(error)
    return content
