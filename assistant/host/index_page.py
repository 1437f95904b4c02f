"""Pages of package indexes: the files or names that one lists (PEP 503, PEP 691), and PyPI's JSON of a release."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from assistant.model.record import decoder

HTML, JSON = "text/html", "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, {HTML};q=0.1, */*;q=0.01"


class Listed(NamedTuple):
    """The name of a file, folder or project that a page lists, and a file's size in bytes; None if unknown."""

    name: str
    size: int | None = None


# {"files": [{"filename": "six-1.17.0-py2.py3-none-any.whl", "url": "https://…", "yanked": false, "size": 11050, …}, …]}
class _Item(msgspec.Struct):
    """A file or a project in a page in JSON; unknown fields are ignored."""

    filename: str = ""
    name: str = ""
    yanked: bool | str = False
    size: object = None  # PEP 700; a page with something else there is a page all the same


class _Page(msgspec.Struct):
    """A page in JSON: of one project with its files, or of all projects."""

    files: list[_Item] = []
    projects: list[_Item] = []


def read_index_page(kind: str, content: bytes) -> tuple[Listed, ...] | None:
    """Return the files or projects that an index's page of a media type (`kind`) lists, without yanked files.

    Returns None if the type or the content is not that of such a page.
    """
    if kind == JSON:
        try:
            page = decoder(_Page).decode(content)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        items = [item for item in (*page.files, *page.projects) if not item.yanked]
        return tuple(Listed(one.filename or one.name, one.size if isinstance(one.size, int) else None) for one in items)
    if kind not in {HTML, "application/vnd.pypi.simple.v1+html"}:
        return None
    links = _Links()
    try:
        links.feed(content.decode(errors="replace"))
    except AssertionError:  # of a declaration that no browser understands: `error` in Lib/_markupbase.py
        return None
    return tuple(links.found)


# <a href="/whl/cu130/torch-2.9.1%2Bcu130-cp312-cp312-win_amd64.whl#sha256=…">torch-2.9.1+cu130-….whl</a>
class _Links(HTMLParser):
    """Collects the last part of the address of each link, except of yanked files."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Listed] = []

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        """Add the target of a link; ignore other tags."""
        attributes = dict(attrs)
        if tag == "a" and (href := attributes.get("href")) and "data-yanked" not in attributes:
            self.found.append(Listed(unquote(urlsplit(href).path.rstrip("/").rpartition("/")[2])))


class _Info(msgspec.Struct):
    """The version and the requirements of a release."""

    version: str
    requires_dist: list[str] | None = None


class _Release(msgspec.Struct):
    """PyPI's JSON of a release."""

    info: _Info


# {"info": {"name": "torchvision", "version": "0.30.0", "requires_dist": ["numpy", "torch==2.16.0", …], …}, "urls": […]}
def read_required_versions(content: bytes, version: str, name: str) -> str:
    """Return which versions of package `name` a release requires, as ">=2,<3"; the release is given as PyPI's JSON.

    `name` must be spelled as the release spells it. Returns "" if the JSON or a requirement in it cannot be read, if it
    is not of release `version`, and if the package is not required without a marker.
    """
    try:
        info = decoder(_Release).decode(content).info
        requirements = [
            requirement
            for requirement in map(Requirement, info.requires_dist or ())
            if requirement.name == name and not requirement.marker
        ]
    except (msgspec.DecodeError, RecursionError, InvalidRequirement):
        return ""
    return next((str(requirement.specifier) for requirement in requirements if info.version == version), "")
