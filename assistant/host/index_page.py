"""What package indexes say: the files or names that a page lists (PEP 503, PEP 691), and PyPI's JSON of a release."""

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
    """The name of a file, folder or project, and a file's size in bytes where the page tells it."""

    name: str
    size: int | None = None


# {"files": [{"filename": "six-1.17.0-py2.py3-none-any.whl", "url": "https://…", "yanked": false, "size": 11050, …}, …]}
class _File(msgspec.Struct):
    filename: str
    yanked: bool | str = False
    size: object = None  # PEP 700; a page with something else there is a page all the same


class _Project(msgspec.Struct):
    name: str


class _Page(msgspec.Struct):
    files: list[_File] = []
    projects: list[_Project] = []


def read_index_page(kind: str, content: bytes) -> tuple[Listed, ...] | None:
    """Return what a page lists but yanked files; None where it is no page of an index by its media type or content."""
    if kind == JSON:
        try:
            page = decoder(_Page).decode(content)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        held = (one for one in page.files if not one.yanked)
        files = (Listed(one.filename, one.size if isinstance(one.size, int) else None) for one in held)
        return (*files, *(Listed(one.name) for one in page.projects))
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
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Listed] = []

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a" and (href := attributes.get("href")) and "data-yanked" not in attributes:
            self.found.append(Listed(unquote(urlsplit(href).path.rstrip("/").rpartition("/")[2])))


class _Info(msgspec.Struct):
    version: str
    requires_dist: list[str] | None = None


class _Release(msgspec.Struct):
    info: _Info


# {"info": {"name": "torchvision", "version": "0.30.0", "requires_dist": ["numpy", "torch==2.16.0", …], …}, "urls": […]}
def read_bounds(content: bytes, version: str, name: str) -> str:
    """Return the bounds that a release sets for a distribution whatever the extras and the system; "" for unknown."""
    try:
        info = decoder(_Release).decode(content).info
        needs = [need for need in map(Requirement, info.requires_dist or ()) if need.name == name and not need.marker]
    except (msgspec.DecodeError, RecursionError, InvalidRequirement):
        return ""
    return next((str(need.specifier) for need in needs if info.version == version), "")
