"""Which package indexes are known: torch's own and its mirrors, and mirrors of PyPI."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.catalog.catalog import Catalog

_PYPI = re.compile(r"https?://pypi\.org/simple/?")


def known_index(url: str, catalog: Catalog, own: Iterable[str] = ()) -> bool:
    """Return whether an index of torch is in the catalogue, or named by the user's own pip or command line (`own`)."""
    if url.rstrip("/") in {address.rstrip("/") for address in own if address}:
        return True
    listed = [catalog.index_url(variant) or "" for variant in ("cpu", "nightly/cpu")]
    listed += catalog.amd_indexes.values()
    listed += [mirror.url.replace("{variant}", "cpu") for mirror in catalog.mirrors if mirror.serves != "pypi"]
    # The folder above a variant's own, with scheme and server: https://download.pytorch.org/whl/
    folders = (index.rstrip("/").removesuffix("/cpu").removesuffix("/nightly") + "/" for index in listed)
    return f"{url}/".startswith(tuple(folders)) and ".." not in url and "%" not in url


def is_pypi(url: str) -> bool:
    """Return whether an address is that of PyPI's own index."""
    return _PYPI.fullmatch(url) is not None


def mirrors_pypi(url: str, catalog: Catalog) -> bool:
    """Return whether an index is a mirror of PyPI that the catalogue lists."""
    return url.rstrip("/") in {mirror.url.rstrip("/") for mirror in catalog.mirrors if mirror.serves == "pypi"}
