"""The page of one project in a package index, read as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from assistant.model.plan import Wheel
from assistant.model.record import decoder
from assistant.privacy import without_credentials

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient


# PEP 691: {"files": [{"filename": "six-1.17.0-py2.py3-none-any.whl", "url": "https://…/six-1.17.0-….whl",
#   "hashes": {"sha256": "4721f391…"}, "yanked": false, "size": 11050, …}, …], …}
class File(msgspec.Struct):
    """A file that a project's page lists; `url` may be relative to the page until `_files_of_page` gives it out."""

    filename: str
    url: str
    hashes: dict[str, str] = {}
    yanked: bool | str = False
    size: object = None  # bytes (PEP 700); a page with another value there is a page all the same


class _Page(msgspec.Struct):
    files: list[File]


def _files_of_page(index_url: str, project: str, client: PyPIClient) -> tuple[File, ...]:
    """Return all files of a project that an index on a server holds, except yanked ones, in its own order."""
    from unearth import Link  # noqa: PLC0415 - a third of a second that only a look needs
    from unearth.collector import LinkCollectError, fetch_page, parse_html_page  # noqa: PLC0415 - likewise

    name = canonicalize_name(project)
    try:
        page = fetch_page(client, Link(f"{index_url.rstrip('/')}/{name}/"))  # type: ignore[arg-type] # as in index.py
    except LinkCollectError:  # no such project
        return ()
    if page.content_type.lower().startswith("application/vnd.pypi.simple.v1+json"):
        files = decoder(_Page).decode(page.content).files
    else:
        files = [
            File(
                link.filename,
                link.url_without_fragment,
                {kind: digests[0] for kind, digests in (link.hash_option or {}).items() if digests},
                link.is_yanked,
            )
            for link in parse_html_page(page)
        ]
    base = page.link.url_without_fragment
    return tuple(
        File(
            file.filename,
            without_credentials(file.url if "://" in file.url else urljoin(base, file.url)),
            file.hashes,
            size=file.size,
        )
        for file in files
        if not file.yanked
    )


def wheels_of_page(index_url: str, project: str, client: PyPIClient, where: str) -> tuple[Wheel, ...]:
    """Return all wheels of a project that an index on a server holds, except yanked ones, in its own order.

    unearth weighs each file, at 0.1 ms: a second for the ten thousand files of an environment's packages.
    """
    name = canonicalize_name(project)
    return tuple(
        Wheel(
            filename=file.filename,
            url=file.url,
            where=where,
            size=file.size if isinstance(file.size, int) else None,
            sha256=file.hashes.get("sha256"),
        )
        for file in _files_of_page(index_url, project, client)
        if _is_wheel_of(file.filename, name)
    )


def folders_of_page(url: str, client: PyPIClient) -> tuple[str, ...]:
    """Return the names of the folders that a page links to, such as "cu130", in its order."""
    from unearth import Link  # noqa: PLC0415 - as above
    from unearth.collector import fetch_page, parse_html_page  # noqa: PLC0415 - likewise

    page = fetch_page(client, Link(f"{url.rstrip('/')}/"))  # type: ignore[arg-type] # as in index.py
    links = (link.url_without_fragment.rstrip("/") for link in parse_html_page(page))
    return tuple(dict.fromkeys(link.rpartition("/")[2] for link in links))


def _is_wheel_of(filename: str, name: str) -> bool:
    try:
        return filename.endswith(".whl") and parse_wheel_filename(filename)[0] == name
    except (InvalidWheelFilename, InvalidVersion):
        return False
