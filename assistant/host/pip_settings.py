"""pip's settings as its user configured them, and the same settings in uv's words.

uv does not read pip's configuration: a company index, proxy or certificate that pip knows of has to be told to uv.
Needs nothing but the standard library, because `start.py` uses it before anything is installed.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.host.index import Network


@dataclass(frozen=True, kw_only=True, slots=True)
class PipSettings:
    """What pip is configured with; "" and () mean not set. Addresses may hold passwords, so `repr` leaves them out."""

    index_url: str = field(default="", repr=False)
    extra_index_urls: tuple[str, ...] = field(default=(), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    no_index: bool = False
    proxy: str = field(default="", repr=False)
    cert: str = ""
    client_cert: str = ""
    trusted_hosts: tuple[str, ...] = ()
    timeout: str = ""

    @property
    def index_urls(self) -> tuple[str, ...]:
        """Name the configured indexes; pip's default index is not among them, as it needs no name."""
        first = (self.index_url,) if self.index_url else ()
        return () if self.no_index else (*first, *self.extra_index_urls)

    @property
    def network(self) -> Network:
        """Say how servers are reached."""
        from assistant.host.index import Network  # noqa: PLC0415 - needs more than the standard library

        return Network(proxy=self.proxy, cert=self.cert, client_cert=self.client_cert, trusted_hosts=self.trusted_hosts)


# One line of `pip config list`; the value is a Python literal:
#   global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'
_LINE = re.compile(r"^(?P<section>:env:|[\w-]+)\.(?P<name>[\w-]+)=(?P<value>.*)$")
_SECTIONS = ("global", "install", ":env:")  # the later one wins, as for `pip install`
_OTHER_NAMES = {"pypi-url": "index-url", "default-timeout": "timeout"}
_YES = ("y", "yes", "t", "true", "on", "1")


def read_pip_settings(config_list_text: str) -> PipSettings:
    """Read the output of `pip config list`; a line of another shape is passed over, as is an empty value."""
    values: dict[str, str] = {}
    for section in _SECTIONS:
        values |= _section(config_list_text, section)
    return PipSettings(
        index_url=values.get("index-url", ""),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").lower() in _YES,
        proxy=values.get("proxy", ""),
        cert=values.get("cert", ""),
        client_cert=values.get("client-cert", ""),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        timeout=values.get("timeout", ""),
    )


def uv_arguments(settings: PipSettings) -> tuple[str, ...]:
    """Give what uv takes only as arguments of `uv pip install`; the rest is in `uv_environment`."""
    return ("--no-index",) if settings.no_index else ()


def uv_environment(settings: PipSettings, already: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment variables that make uv look where pip would; add them to the child's environment.

    `already` is the environment as it stands: what the user told uv himself (UV_*) is left as it is.
    pip's certificate and proxy go before the general SSL_CERT_FILE and *_PROXY, because pip would do the same.
    """
    proxy = settings.proxy if "://" in settings.proxy or not settings.proxy else f"http://{settings.proxy}"
    wanted = {
        "UV_DEFAULT_INDEX": settings.index_url,
        "UV_INDEX": " ".join(settings.extra_index_urls),
        "UV_FIND_LINKS": ",".join(settings.find_links),
        # pip takes the best version of all indexes; uv on its own stops at the first index that has the name.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if settings.extra_index_urls else "",
        "UV_INSECURE_HOST": " ".join(settings.trusted_hosts),
        "UV_HTTP_TIMEOUT": settings.timeout,
        "SSL_CERT_FILE": settings.cert,
        "SSL_CLIENT_CERT": settings.client_cert,
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
    }
    kept = _told_to_uv(already or {})
    return {name: value for name, value in wanted.items() if value and name not in kept}


def pip_environment(find_links: Iterable[str]) -> dict[str, str]:
    """Give the variable that makes pip look into folders or pages: addresses, as a space would end a path."""
    named = " ".join(link if "://" in link else Path(link).absolute().as_uri() for link in find_links)
    return {"PIP_FIND_LINKS": named} if named else {}


def uv_indexes(configuration: str, *, explicit: bool = True) -> tuple[str, ...]:
    """Read the addresses of the indexes, passwords and all, in the text of a `uv.toml`; () for another text.

    Without `explicit` those are left out that serve only the packages that a project ties to them.
    """
    told, tables = _uv_told(configuration)
    tables = [table for table in tables if explicit or not table.get("explicit")]
    more = told.get("extra-index-url", ())
    urls = [*(table.get("url") for table in tables), told.get("index-url"), *(more if isinstance(more, list) else ())]
    return tuple(url for url in urls if isinstance(url, str))


def uv_default(configuration: str) -> str:
    """Read which index takes the place of uv's own default in the text of a `uv.toml`, "" where none does."""
    told, tables = _uv_told(configuration)
    named = [table.get("url") for table in tables if table.get("default")]
    return next((url for url in (*named, told.get("index-url")) if isinstance(url, str)), "")


def _uv_told(configuration: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        told = tomllib.loads(configuration)
    except tomllib.TOMLDecodeError:
        return {}, []
    rows = told.get("index", ())
    return told, [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _section(text: str, section: str) -> dict[str, str]:
    matches = (_LINE.match(line.strip()) for line in text.splitlines())
    found = {}
    for match in matches:
        if match and match["section"] == section and (value := _literal(match["value"])):
            found[_OTHER_NAMES.get(match["name"], match["name"])] = value
    return found


def _literal(text: str) -> str:
    try:
        return str(ast.literal_eval(text)).strip()
    except (ValueError, SyntaxError):
        return text.strip()


def _told_to_uv(environment: Mapping[str, str]) -> set[str]:
    """Name the UV_* variables in force, under the newer name where uv has two for one thing."""
    newer = {
        "UV_INDEX_URL": "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL": "UV_INDEX",
        "UV_REQUEST_TIMEOUT": "UV_HTTP_TIMEOUT",
    }
    return {newer.get(name, name) for name in environment if name.startswith("UV_")}
