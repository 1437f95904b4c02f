"""Looks into package indexes within a time limit: the wheels that they hold, their sizes and metadata."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin, urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from assistant.host.network import DIRECT as DIRECT  # noqa: PLC0414 - others import them from here
from assistant.host.network import Network as Network  # noqa: PLC0414 - likewise
from assistant.host.parallel import each_within
from assistant.i18n import Message, Text, _
from assistant.model.machine import Machine
from assistant.model.plan import Wheel
from assistant.model.record import Record, decoder, replace
from assistant.privacy import Policy, redact, without_credentials

if TYPE_CHECKING:
    import ssl

    import httpx2
    from unearth import Link, PackageFinder, TargetPython
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
        page = fetch_page(client, Link(f"{index_url.rstrip('/')}/{name}/"))  # type: ignore[arg-type] # as in `_finder`
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

    page = fetch_page(client, Link(f"{url.rstrip('/')}/"))  # type: ignore[arg-type] # as in `_finder`
    links = (link.url_without_fragment.rstrip("/") for link in parse_html_page(page))
    return tuple(dict.fromkeys(link.rpartition("/")[2] for link in links))


def _is_wheel_of(filename: str, name: str) -> bool:
    try:
        return filename.endswith(".whl") and parse_wheel_filename(filename)[0] == name
    except (InvalidWheelFilename, InvalidVersion):
        return False


NEWEST_GLIBC = 50  # in place of an unknown glibc 2.x: no wheel is left out for it (2.42 is of 2025)
NEWEST_MACOS = 26  # in place of the machine's own: whether that is new enough is the planner's to judge


DEFAULT_INDEX = ""  # PyPI, which every installer asks when nothing is configured


class Asked(Record, frozen=True):
    """How one source answered: "nothing" is an answer without wheels; "unreachable" is none at all, for `reason`.

    `foreign` are the servers ("https://host") other than the source's own from which its wheels come.
    """

    source: str
    where: str
    status: Literal["ok", "nothing", "unreachable"]
    reason: Text = ""
    foreign: tuple[str, ...] = ()


class Found(Record, frozen=True):
    """The fitting wheels of all sources, newest version first, pre-releases included, and how each source answered."""

    wheels: tuple[Wheel, ...] = ()
    asked: tuple[Asked, ...] = ()


def find_wheels(  # noqa: PLR0913 - what is looked for, where, and how
    project: str,
    machine: Machine,
    python: str,
    *,
    index_urls: Iterable[str],
    find_links: Iterable[str],
    timeout: float,
    where: str = "configured",
    network: Network = DIRECT,
) -> Found:
    """Find a project's wheels that run on a machine, in all sources at once, in `timeout` seconds at most.

    `python` like "3.12" or "3.13t"; a machine of which nothing is known is taken for Linux on x86_64 with any glibc.
    `where` labels the indexes' wheels, those of find-links are labelled so; `DEFAULT_INDEX` stands for PyPI.
    Never raises for a source that fails.
    """
    target = _target(python, platform_tags(machine))
    sources = [_Source(url, where) for url in index_urls] + [_Source(url, "find-links") for url in find_links]
    return _found(project, sources, target, timeout, network)


def list_wheels(
    project: str,
    *,
    index_urls: Iterable[str],
    timeout: float,
    network: Network = DIRECT,
) -> Found:
    """List all wheels of a project in some indexes, whatever they run on; else as `find_wheels`."""
    return _found(project, [_Source(url, "configured") for url in index_urls], None, timeout, network)


def list_each(
    projects: Iterable[str], *, index_urls: Iterable[str], timeout: float, network: Network = DIRECT
) -> dict[tuple[str, str], Found]:
    """List the wheels of several projects in several indexes, by project and index, `timeout` seconds for all."""
    sources = [_Source(url, "configured") for url in index_urls]
    looks = [(project, source) for project in projects for source in sources]
    results = zip(looks, _look_within(looks, None, timeout, network), strict=True)
    return {
        (project, source.url): Found(wheels=wheels, asked=(answer,)) for (project, source), (wheels, answer) in results
    }


def list_folders(url: str, *, timeout: float, network: Network = DIRECT) -> tuple[str, ...]:
    """Return the names of the folders of an index; () where it cannot be asked or is no page of links."""
    with suppress(Exception), _client(network, timeout, [url]) as client:
        return folders_of_page(url, client)
    return ()


def _found(
    project: str, sources: list[_Source], target: TargetPython | None, timeout: float, network: Network
) -> Found:
    results = _look_within([(project, source) for source in sources], target, timeout, network)
    wheels = sorted((wheel for found, _asked in results for wheel in found), key=wheel_version, reverse=True)
    return Found(wheels=tuple(wheels), asked=tuple(asked for _found, asked in results))


def _look_within(
    looks: Sequence[tuple[str, _Source]], target: TargetPython | None, timeout: float, network: Network
) -> list[tuple[tuple[Wheel, ...], Asked]]:
    """Look for projects in sources, all at once; a source that is late counts as unreachable."""
    indexes = dict.fromkeys(source.url for _project, source in looks if source.url and source.where != "find-links")
    with _client(network, timeout, indexes) as client:
        answers = each_within(lambda one: one[1].look(one[0], target, client), looks, timeout)
    late = _("it did not answer within {seconds:g} s", seconds=timeout)
    return [answers.get(one) or ((), one[1].asked("unreachable", late)) for one in looks]


def wheel_version(wheel: Wheel) -> Version:
    """Read a wheel's version, local part included, from its file name."""
    return parse_wheel_filename(wheel.filename)[1]


def wheel_sizes(
    urls: Sequence[str], *, timeout: float = 5.0, network: Network = DIRECT, index_urls: Iterable[str] = ()
) -> dict[str, int]:
    """Return the sizes in bytes of files on servers (by HEAD) and on disk; those that cannot be had are left out.

    `index_urls` lend their user names and passwords.
    """
    with _client(network, timeout, index_urls) as client:
        sizes = each_within(lambda url: _size(client, url), list(dict.fromkeys(urls)), timeout)
    return {url: size for url, size in sizes.items() if size is not None}


def warm_up() -> None:
    """Import ahead, on another thread, what the first look would wait for."""
    import unearth  # noqa: F401, PLC0415 - a third of a second


class _Unreachable(Exception):
    """A source answered, but not as an index does; the text is the reason."""


class _Source:
    """One index, or one folder or page of links."""

    def __init__(self, url: str, where: str) -> None:
        self.url, self.where = url, where

    def asked(self, status: Literal["ok", "nothing", "unreachable"], reason: Text = "") -> Asked:
        """Return how this source answered, without its password."""
        named = redact(self.url, Policy.USABLE) or "PyPI"
        return Asked(source=named, where=self.where, status=status, reason=reason)

    def look(self, project: str, target: TargetPython | None, client: PyPIClient) -> tuple[tuple[Wheel, ...], Asked]:
        """Return the wheels that fit the target, best first; None for all, in the order of the source."""
        try:
            if (folder := local_path(self.url)) and not folder.exists():
                raise _Unreachable(_("there is no such folder"))  # noqa: TRY301 - reported as any other failure
            finder = self._finder(client, target, project)
            if target is None and local_path(str(finder.sources[0]["url"])) is None:
                wheels = wheels_of_page(str(finder.sources[0]["url"]), project, client, self.where)
            else:
                wheels = tuple(self._wheel(package.link) for package in finder.find_all_packages(project))
        except Exception as error:  # noqa: BLE001 - a source that cannot be asked is an answer, whatever the reason
            return (), self.asked("unreachable", reason_of(error))
        servers = {_server(wheel.url) for wheel in wheels} - {_server(without_credentials(self.url)), ""}
        foreign = tuple(sorted(servers)) if self.url else ()  # a mirror whose page names upstream leaks to it
        return wheels, replace(self.asked("ok" if wheels else "nothing"), foreign=foreign)

    def _finder(self, client: PyPIClient, target: TargetPython | None, project: str) -> PackageFinder:
        """Return unearth's finder for a project's wheels; None as the target takes them for any machine."""
        from unearth import PackageFinder  # noqa: PLC0415 - a third of a second that only a look needs

        links = self.where == "find-links"
        return PackageFinder(
            client,  # type: ignore[arg-type] # unearth's own client does not fit its own protocol
            index_urls=[self.url] if self.url and not links else [],  # without any, unearth asks PyPI
            find_links=[self.url] if links else [],
            target_python=target,
            ignore_compatibility=target is None,
            only_binary=[project],
        )

    def _wheel(self, link: Link) -> Wheel:
        path = local_path(link.url_without_fragment)
        return Wheel(
            filename=link.filename,
            url=without_credentials(link.url_without_fragment),
            where=self.where,
            size=path.stat().st_size if path and path.exists() else None,
            sha256=next(iter((link.hash_option or {}).get("sha256", [])), None),
        )


_INDEX_TYPES = ("text/html", "application/vnd.pypi.simple.v1")  # PEP 503, PEP 691


def _client(network: Network, timeout: float, index_urls: Iterable[str]) -> PyPIClient:
    """Return a client for looks: what answers but is no index is refused."""
    logging.getLogger("unearth").addHandler(logging.NullHandler())  # what it warns of stands in `Asked`
    client = web_client(network, timeout, index_urls)
    client.event_hooks = {"response": [_check_answer]}
    return client


def reason_of(error: Exception) -> str:
    """Return what a failed request says, without the system's number ("[Errno 111] …") and without passwords."""
    return redact(re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__, Policy.USABLE)


def web_client(network: Network, timeout: float, index_urls: Iterable[str]) -> PyPIClient:
    """Return a client with the user's proxy, certificates and passwords; plain http is allowed, as uv allows it.

    `timeout` in seconds; `index_urls` are those whose user names and passwords files need too.
    """
    from unearth.auth import MultiDomainBasicAuth  # noqa: PLC0415 - a third of a second that only a look needs
    from unearth.fetchers import PyPIClient  # noqa: PLC0415 - likewise

    class Client(PyPIClient):
        def iter_secure_origins(self) -> Iterable[tuple[str, str, str]]:
            yield ("*", "*", "*")

    return Client(
        trusted_hosts=network.trusted_hosts,
        verify=_certificates(network),
        timeout=timeout,
        follow_redirects=True,
        proxy=network.proxy or None,
        auth=MultiDomainBasicAuth(prompting=False, index_urls=list(index_urls)),
    )


@cache  # 40 ms to read a system's certificates, and a setup makes half a dozen clients
def _certificates(network: Network) -> ssl.SSLContext | bool:
    """Return what a client checks servers with: the user's own certificates, or the usual ones (True)."""
    if not (network.cert or network.client_cert):
        return True
    import ssl  # noqa: PLC0415 - few users have certificates of their own, and every command would wait for it

    context = ssl.create_default_context(cafile=network.cert or None)
    if network.client_cert:
        context.load_cert_chain(network.client_cert)
    return context


def _check_answer(response: httpx2.Response) -> None:
    """Raise for a server that fails or is no index; unearth takes it for one without the project, which 404 says."""
    if response.request.method != "GET" or response.is_redirect or response.status_code in {404, 410}:
        return
    if response.status_code != 200:  # noqa: PLR2004 - OK
        raise _Unreachable(f"HTTP {response.status_code}")
    if not response.headers.get("Content-Type", "").lower().startswith(_INDEX_TYPES):
        raise _Unreachable(_("it is not a package index"))


def _size(client: PyPIClient, url: str) -> int | None:
    """Return the size of a file in bytes, None where it cannot be had."""
    path = local_path(url)
    try:
        if path:
            return path.stat().st_size
        answer = client.head(url, headers={"Accept-Encoding": "identity"})
        return int(answer.headers["Content-Length"]) if answer.is_success else None
    except Exception:  # noqa: BLE001 - a size that cannot be had is unknown, whatever the reason
        return None


def _server(url: str) -> str:
    """Return scheme and host of a URL; "" for a file."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def local_path(url: str) -> Path | None:
    """Return the path of a `file:` URL or a plain path; None for a URL on a server."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return Path(url2pathname(parts.path))
    return None if "://" in url else Path(url)


def _target(python: str, platforms: list[str]) -> TargetPython:
    from unearth import TargetPython  # noqa: PLC0415 - a third of a second that only a look needs

    major, minor = (int(number) for number in re.findall(r"\d+", python)[:2])
    free_threaded = "t" if python.endswith("t") else ""
    return TargetPython(
        py_ver=(major, minor), abis=[f"cp{major}{minor}{free_threaded}"], impl="cp", platforms=platforms
    )


_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # names before PEP 600, by glibc 2.x


def platform_tags(machine: Machine) -> list[str]:
    """List the platform tags that a machine takes, best first (PEP 425, 600).

    `packaging.tags` lists those of the running Linux only, and unearth takes the tags of another machine as given.
    """
    arch = (machine.arch or "x86_64").lower()
    arch = {"amd64": "x86_64", "x86": "i686"}.get(arch, arch)
    if machine.os == "windows":
        return [{"x86_64": "win_amd64", "i686": "win32"}.get(arch, "win_arm64")]
    if machine.os == "macos":
        return [f"macosx_{NEWEST_MACOS}_0_{'x86_64' if arch == 'x86_64' else 'arm64'}"]
    arch = "aarch64" if arch == "arm64" else arch
    newest = int(machine.glibc.split(".")[1]) if machine.glibc else NEWEST_GLIBC
    tags = []
    for minor in range(newest, 4, -1):
        tags.append(f"manylinux_2_{minor}_{arch}")
        tags += [f"{_LEGACY[minor]}_{arch}"] if minor in _LEGACY else []
    return [*tags, f"linux_{arch}"]


METADATA_BYTES = 1 << 20  # bytes; chosen: the metadata of torch with its description take 30 kB
METADATA_SECONDS = 20.0  # chosen: the most that one file may take


def read_metadata_of(
    wheels: Sequence[str], *, index_urls: Iterable[str], timeout: float, network: Network = DIRECT
) -> dict[str, bytes | Text]:
    """Return the metadata of wheels by their addresses, or why they cannot be had, `timeout` seconds for all."""
    late = _("it did not answer within {seconds:g} s", seconds=timeout)
    with web_client(network, METADATA_SECONDS, [url for url in index_urls if "://" in url]) as client:
        found = each_within(lambda url: _metadata_at(f"{url}.metadata", client), wheels, timeout)
    return {url: found.get(url, late) for url in wheels}


def _metadata_at(url: str, client: PyPIClient) -> bytes | str | Message:
    content = b""
    try:
        with client.stream("GET", url) as answer:
            if not answer.is_success:
                return f"HTTP {answer.status_code}"
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > METADATA_BYTES:
                    return _("its metadata are larger than {limit} MB", limit=METADATA_BYTES >> 20)
    except Exception as error:  # noqa: BLE001 - metadata that cannot be had are unknown, and the reason is told
        return reason_of(error)
    return content
