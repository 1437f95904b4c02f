"""HTTP with the settings of the user's pip: proxies, certificates, passwords of indexes, netrc.

Pages of package indexes are read here, too: what one lists (PEP 503, PEP 691), and PyPI's JSON of a release.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
import re
import ssl
import threading
import urllib.request
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import truststore
from packaging.requirements import InvalidRequirement, Requirement

from assistant.host.pip_settings import NO_SETTINGS, PipSettings
from assistant.i18n import Text, _
from assistant.model.record import decoder
from assistant.privacy import Policy, redact

PIECE = 1 << 16  # bytes
INFLATED = 64 << 20  # bytes; chosen: the longest page of an index, PyPI's list of all projects, has 40 MB
AGENT = "torch-setup-assistant"  # some servers refuse the standard library's own name
# As pip: its own setting, then requests' variables, then OpenSSL's.
CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
TOO_LARGE, BROKEN_OFF = _("it is too large"), _("the connection broke off")
_FAILURES = (OSError, http.client.HTTPException, ValueError)  # `ValueError` is for what is no address


class Unreachable(Exception):
    """A request failed, for a `reason` without passwords; `status` is HTTP's, 0 without an answer."""

    def __init__(self, reason: Text, status: int = 0) -> None:
        super().__init__(str(reason))
        self.reason, self.status = reason, status


class Page(NamedTuple):
    """A page that was read: its type without parameters, and what it holds."""

    kind: str
    content: bytes


class Budget:
    """The number of bytes that may still be read, shared by threads."""

    def __init__(self, left: int) -> None:
        self.left, self._lock = left, threading.Lock()

    def spend(self, amount: int) -> bool:
        """Subtract a number of bytes and return True; subtract none and return False if fewer are left."""
        with self._lock:
            enough = amount <= self.left
            self.left -= amount if enough else 0
        return enough


class Answer:
    """A server's answer, as it comes in; `length` is the number of bytes that it promises, None if it does not."""

    def __init__(self, response: Any, timeout: float) -> None:  # noqa: ANN401 - of http, or a file's
        self.status: int = response.status or HTTPStatus.OK
        self.headers: Mapping[str, str] = response.headers
        length = self.headers.get("Content-Length", "")
        self.length = int(length) if length.isdecimal() else None
        self._response, self._timeout = response, timeout

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """Yield the content in pieces of up to `size` bytes, not decompressed; raise `Unreachable` if it breaks off."""
        had = 0
        try:
            while piece := self._response.read(size):
                had += len(piece)
                yield piece
        except _FAILURES as error:
            raise _unreachable_error(error, self._timeout) from error
        if had < (self.length or 0):
            raise Unreachable(BROKEN_OFF)


class Web:
    """An HTTP client for any number of threads; `timeout` is the longest wait for a server's next bytes, in seconds.

    The user names and passwords in `index_urls` are sent to the same servers, and to no others.
    Plain http is allowed, as uv allows it.
    """

    def __init__(self, settings: PipSettings = NO_SETTINGS, *, timeout: float, index_urls: Iterable[str] = ()) -> None:
        self._timeout = timeout
        self._opener = urllib.request.build_opener(
            _Proxies(settings.proxy), _Passwords(index_urls), _Redirects(), _Https(settings)
        )
        self._opener.addheaders = [("User-Agent", AGENT)]

    @contextmanager
    def open(self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Iterator[Answer]:
        """Yield the answer for an address or a file on disk, and close it; raise `Unreachable` unless it is HTTP 2xx.

        Redirections are followed first. A user name and password in `url` are not sent: those of an index and of netrc
        are. Of a folder on disk (a final "/") it is index.html.
        """
        try:
            request = urllib.request.Request(_plain_address(url), headers=dict(headers or {}), method=method)  # noqa: S310 - see above
            response = self._opener.open(request, timeout=self._timeout)
        except _FAILURES as error:
            raise _unreachable_error(error, self._timeout) from error
        with response:
            yield Answer(response, self._timeout)

    def read(self, url: str, most: int, budget: Budget | None = None, accept: str = "*/*") -> Page:
        """Return a whole page, decompressed; raise `Unreachable` if that fails or the page is too large.

        Too large is one of more than `most` bytes as sent, more than `budget`, shared by several pages, has left, or
        more than `INFLATED` when decompressed.
        """
        content = bytearray()
        with self.open(url, {"Accept": accept, "Accept-Encoding": "gzip"}) as answer:

            def check_size(size: int, more: int) -> None:
                """Spend `more` bytes of the budget; raise `Unreachable` if it has fewer, or the page too many."""
                if size > most or not (budget is None or budget.spend(more)):
                    raise Unreachable(TOO_LARGE, answer.status)

            check_size(answer.length or 0, answer.length or 0)
            for piece in answer.pieces():
                content += piece
                check_size(len(content), 0 if answer.length else len(piece))
        if answer.headers.get("Content-Encoding", "").lower() == "gzip":
            stream = zlib.decompressobj(wbits=31)  # gzip
            try:
                content[:] = stream.decompress(content, INFLATED)
            except zlib.error as error:
                raise Unreachable(str(error)) from error
            if not stream.eof:
                raise Unreachable(TOO_LARGE if stream.unconsumed_tail else BROKEN_OFF)
        return Page(answer.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(content))


def _plain_address(url: str) -> str:
    """Return an address without user name and password; of a path, its `file:` URL.

    If a path or a `file:` URL ends in "/", index.html is added.
    """
    if "://" not in url:
        url = Path(url).absolute().as_uri() + "/" * url.endswith("/")
    parts = urlsplit(url)
    page = "index.html" if parts.scheme == "file" and parts.path.endswith("/") else ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path + page).geturl()


def _unreachable_error(error: BaseException, timeout: float) -> Unreachable:
    """Return the error for a failed request, without error numbers of the system or OpenSSL, and without passwords.

    Its status is HTTP's, 404 for a file that does not exist, and 0 otherwise. `timeout` (seconds) is for the text.
    """
    if isinstance(error, HTTPError):
        error.close()
        return Unreachable(f"HTTP {error.code}", error.code)
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        failure = _unreachable_error(error.reason, timeout)
        failure.status = HTTPStatus.NOT_FOUND if isinstance(error.reason, FileNotFoundError) else 0  # on disk
        return failure
    if isinstance(error, TimeoutError):
        return Unreachable(_("it did not answer within {seconds:g} s", seconds=timeout))
    text = re.sub(r"^<urlopen error |>$|^\[[^]]*\] | \(_ssl\.c:\d+\)$", "", str(error))
    return Unreachable(redact(text or type(error).__name__, Policy.USABLE))


class _Proxies(urllib.request.ProxyHandler):
    """The user's proxy: that of pip's settings, else those of the environment or the system; NO_PROXY limits all."""

    def __init__(self, configured: str) -> None:
        proxies_found = {"all": configured} if configured else urllib.request.getproxies()
        any_scheme = proxies_found.get("all", "")
        proxies = {scheme: proxies_found.get(scheme) or any_scheme for scheme in ("http", "https")}
        super().__init__({scheme: proxy for scheme, proxy in proxies.items() if proxy})

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> object:  # noqa: A002 - as the base does
        """Hand a request to the proxy; raise `URLError` for a SOCKS proxy, which would be spoken to in HTTP."""
        if proxy.lower().startswith("socks"):
            raise URLError(str(_("SOCKS proxies are not supported")))
        return super().proxy_open(req, proxy, type)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections without the proxy's password: the next server may be reached without the proxy."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request to the address that a server redirects to; None, or raise `HTTPError`, as the base class.

        A user name and password in the new address are removed, and so is the proxy's password.
        """
        request = super().redirect_request(req, fp, code, msg, headers, _plain_address(newurl))
        if request:
            request.remove_header("Proxy-authorization")
        return request


class _Passwords(urllib.request.BaseHandler):
    """Adds the user name and password of an index, or of netrc, to each request to its server, and to no other."""

    def __init__(self, index_urls: Iterable[str]) -> None:
        self._indexes: list[tuple[object, SplitResult]] = []
        for url in index_urls:
            with suppress(ValueError):  # what is no address has no server
                index = urlsplit(url)
                self._indexes += [(_server_key(index), index)] if index.username is not None else []

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Add the login of the nearest index, or netrc's, to a request, and return the request.

        The nearest is the index on the same server whose path begins most like the request's. netrc is asked if there
        is none, or none with a password. If the server redirects, the next request does not take the login along.
        """
        address = urlsplit(request.full_url)
        near = [index for server, index in self._indexes if server == _server_key(address)]
        nearest = max(near, key=lambda index: len(os.path.commonprefix([index.path, address.path])), default=None)
        login = (unquote(nearest.username or ""), unquote(nearest.password or "")) if nearest else None
        if nearest is None or nearest.password is None:
            login = _netrc_login(address.hostname or "") or login
        if login:
            encoded = base64.b64encode(":".join(login).encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {encoded}")
        return request

    https_request = http_request


def _server_key(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address, which identify a server; raise `ValueError` for a bad port."""
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _netrc_login(host: str) -> tuple[str, str] | None:
    """Return user name and password for a host from the user's netrc; None if it has none or cannot be read.

    That is the file in the variable NETRC, else ~/.netrc, then ~/_netrc.
    """
    path_set = os.environ.get("NETRC")
    for path in [Path(path_set)] if path_set else [Path.home() / ".netrc", Path.home() / "_netrc"]:
        with suppress(OSError, ValueError, netrc.NetrcParseError):
            if login := netrc.netrc(path).authenticators(host):
                return login[0] or "", login[2] or ""
    return None


class _Https(urllib.request.HTTPSHandler):
    """Opens https connections with the certificates that the user's pip trusts."""

    def __init__(self, settings: PipSettings) -> None:
        super().__init__(context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # not used, and one of its own would be slow
        self._settings = settings

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection and return the answer; the certificate of a trusted host is not checked.

        Certificates are those of pip's setting, else of the first variable of `CERTIFICATES`, else of the system.
        """
        parts, settings = urlsplit(req.full_url), self._settings
        trusted = not {parts.hostname, parts.netloc}.isdisjoint(settings.trusted_hosts)
        variables = (os.environ.get(name) for name in CERTIFICATES)
        certificates = "" if trusted else settings.cert or next(filter(None, variables), "")
        context = _certificate_context(certificates, settings.client_cert, trusted=trusted)
        return self.do_open(http.client.HTTPSConnection, req, context=context)


@cache  # 40 ms to read a system's certificates
def _certificate_context(cert: str, client_cert: str, *, trusted: bool) -> ssl.SSLContext:
    """Return a TLS context that checks servers by a file or folder `cert`, or by the system's certificates ("").

    `trusted` turns the check off; `client_cert` is a file that identifies us. Raises `OSError` for a file that is
    missing or holds no certificate. OpenSSL by itself finds neither all of macOS's certificates nor of Windows's.
    """
    if cert:
        is_folder = Path(cert).is_dir()
        context = ssl.create_default_context(capath=cert if is_folder else None, cafile=None if is_folder else cert)
    else:
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trusted:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client_cert:
        context.load_cert_chain(client_cert)
    return context


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
    is not of release `version`, if the package is not required without a marker, and if any version will do.
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
