"""The upkeep of the catalogue: what package indexes list of torch, at most a megabyte, and the tables that follow."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal, NamedTuple

from assistant.catalog import Catalog, number
from assistant.catalog.refresh import VARIANT, Refreshed, Seen, parse_wheels, refresh_tables, variants_to_read
from assistant.catalog.tables import FAMILY
from assistant.host.process import run_within
from assistant.host.web import ACCEPT, Budget, Listed, Page, Unreachable, Web, read_index_page, read_required_versions
from assistant.i18n import Message, Text, _
from assistant.install import Sources
from assistant.model.record import Record
from assistant.privacy import Policy, redact

PYPI = "https://pypi.org/simple"
PAGE_SECONDS = 10.0  # chosen: the longest silence of a server
LIST_SECONDS = 60.0  # chosen: a dozen pages, one after the other, over a slow line
MOST_BYTES = 1_000_000  # all pages of a refresh together, as they are sent: mostly compressed
LIST_BYTES = 100_000  # chosen: PyTorch's list of what it has takes 10 kB, PyPI's some MB
ALL_BUILDS_BYTES = 500_000  # chosen: leaves the other half to PyPI's page and to those of single variants


class Answer(Record, frozen=True):
    """How many releases of torch an index lists, and the newest; or why it, or one of its pages, was not checked."""

    source: str
    status: Literal["ok", "nothing", "unchecked"]
    releases: int = 0
    newest: str = ""
    reason: Text = ""

    @property
    def sentence(self) -> Message:
        """The answer in words."""
        texts = {
            "ok": _("{source}: torch {newest} is the newest of its releases ({releases})."),
            "nothing": _("{source} lists no torch."),
            "unchecked": _("Not checked: {source} ({reason})."),
        }
        values = {"source": self.source, "reason": self.reason, "newest": self.newest, "releases": self.releases}
        return texts[self.status].format(**values)


class Renewal(NamedTuple):
    """The tables as the sources would have them, how each source answered, and how many bytes were transferred."""

    found: Refreshed
    answers: tuple[Answer, ...]
    transferred: int


def renew(sources: Sources, catalog: Catalog, today: str) -> Renewal:
    """Read what the sources' indexes list of torch, and AMD's unless the user named an index; return updated tables.

    `today` is the date for them, such as "2026-11-29". Indexes that do not answer in time are unchecked; nothing is
    written.
    """
    indexes = [url or PYPI for url in sources.indexes()]
    own, budget = sources.index_url or catalog.index_url("") or "", Budget(MOST_BYTES)
    web = Web(sources.settings, timeout=PAGE_SECONDS, index_urls=[own, *indexes])
    looks = {own: _Look("pypi" if own in indexes else "pytorch", own, web, budget, catalog)}
    looks |= {url: _Look("pypi", url, web, budget) for url in indexes if url != own}
    first = looks[indexes[0]] if indexes else None
    if not sources.index_url:
        amds = [row for row in catalog.rows("rocm.amd_indexes") if row.key != "nightly"]
        looks |= {row.url: _Look(row.key, row.url, web, budget) for row in amds}
    asked = [look for url, look in looks.items() if sources.is_source_allowed(url)]
    done = run_within(_Look.read_lists, asked, LIST_SECONDS)
    for late in {*asked} - done.keys():
        late.unread[late.url] = Unreachable(_("it did not answer within {seconds:g} s", seconds=LIST_SECONDS))
    seen = dict.fromkeys(file for look in asked for file in tuple(look.seen))
    found = refresh_tables(catalog, seen, first.bounds if first in asked else lambda _name, _version: "", today)
    answers = tuple(answer for look in asked for answer in look.answers())
    return Renewal(found, answers, MOST_BYTES - budget.left)


class _Look:
    """A look into one index, page by page; a server that cannot be reached is not asked any further.

    `source` is its kind (`Seen.source`). With `catalog`, it is the index of torch's own builds: a folder for each
    variant beside or instead of one page for all.
    """

    def __init__(self, source: str, url: str, web: Web, budget: Budget, catalog: Catalog | None = None) -> None:
        self.url, self.seen, self.unread = url.rstrip("/"), list[Seen](), dict[str, Unreachable]()
        self._pages: dict[str, Page | None] = {}
        self._source, self._web, self._budget, self._catalog = source, web, budget, catalog

    def read_lists(self) -> None:
        """Add to `seen` what the index lists: of torch alone without a `catalog`, else of its family, by variant."""
        if self._catalog is None:
            self._list("torch/")
            return
        folders = [folder.name for folder in self._list("", LIST_BYTES, keep=False) if VARIANT.fullmatch(folder.name)]
        variants = variants_to_read(self._catalog.releases, folders)
        self.unread = {url: error for url, error in self.unread.items() if not error.status}  # there are other lists
        for name in FAMILY:
            if not any(self._list(f"{variant}/{name}/") for variant in variants[:1]):
                self._list(f"{name}/", ALL_BUILDS_BYTES)
        listed = [self._list(f"{variant}/torch/") for variant in variants if folders]
        if any(listed) or self._list("torch/", ALL_BUILDS_BYTES) or folders:
            return
        guessed = [self._list(f"{variant}/torch/") for variant in variants]
        if any(guessed):
            reason = _("its builds are in no list that can be read, so that a new CUDA or ROCm would be missed")
            self.unread[f"{self.url}/torch/"] = Unreachable(reason, HTTPStatus.OK)

    def bounds(self, name: str, version: str) -> str:
        """Return the versions of torch that a package's release requires, by PyPI's JSON, as ">=2.6,<3"; "" if unknown.

        A mirror may hold that of the newest release alone, or none.
        """
        for path in (f"{name}/{version}", name) if self.url.endswith("/simple") else ():
            url = f"{self.url.removesuffix('/simple')}/pypi/{path}/json"
            if url not in self._pages:
                self._pages[url] = self._page(url)
            if (page := self._pages[url]) and (found := read_required_versions(page.content, version, "torch")):
                return found
        return ""

    def answers(self) -> list[Answer]:
        """Return how the index answered, with an answer more for each page that could not be read.

        Pages that do not exist are left out. If nothing of torch was seen there is one answer in all.
        """
        versions = {file.version for file in parse_wheels(tuple(self.seen)) if file.package == "torch"}
        absent = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
        absent |= {HTTPStatus.FORBIDDEN} if versions else set()  # as a server may say that has others
        errors = {url: error.reason for url, error in dict(self.unread).items() if error.status not in absent}
        if errors and not versions:
            errors = {self.url: next(iter(errors.values()))}
        elif not versions and (self._catalog or self._source != "pypi"):
            errors = {self.url: _("it lists no torch; perhaps it has moved")}
        named, newest = redact(self.url, Policy.USABLE), max(versions, key=number, default="")
        found = [Answer(source=named, status="ok", releases=len(versions), newest=newest)] if versions else []
        for url, reason in errors.items():
            found.append(Answer(source=redact(url, Policy.USABLE), status="unchecked", reason=reason))
        return found or [Answer(source=named, status="nothing")]

    def _list(self, path: str, most: int = MOST_BYTES, *, keep: bool = True) -> tuple[Listed, ...]:
        """Return what a page of at most `most` bytes lists, () if it cannot be read; with `keep` add it to `seen`."""
        page = self._page(f"{self.url}/{path}", most)
        listed = read_index_page(*page) if page else ()
        if listed is None:
            self.unread[f"{self.url}/{path}"] = Unreachable(_("it is not a package index"), HTTPStatus.OK)
        if keep:
            self.seen += (Seen(self._source, file.name, file.size) for file in listed or ())
        return listed or ()

    def _page(self, url: str, most: int = MOST_BYTES) -> Page | None:
        if not all(error.status for error in self.unread.values()):
            return None
        try:
            return self._web.read(url, most, self._budget, ACCEPT)
        except Unreachable as error:
            self.unread[url] = error
            return None
