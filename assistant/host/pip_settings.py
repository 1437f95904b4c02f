"""pip's settings as the user configured them, the same settings as variables of uv, and texts that pip reads.

uv does not read pip's configuration: a company index, proxy or certificate that pip knows has to be handed to uv.
Needs nothing but the standard library, because `start.py` uses it before anything is installed.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.privacy import Policy, redact

# pip 24, which Python 3.11.9 brings, takes lists of requirements for text of the locale's encoding unless one of the
# first two lines names another (`auto_decode` in pip/_internal/utils/encoding.py); pip 25 tries UTF-8 before that
# (https://github.com/pypa/pip/pull/12795), and uv reads UTF-8 (https://github.com/astral-sh/uv/pull/2283).
_CODING = "# -*- coding: utf-8 -*-\n"


def with_coding_line(text: str) -> str:
    """Return a list of requirements so that every pip reads it: a first line gives the encoding unless it is ASCII."""
    return text if text.isascii() else _CODING + text


@dataclass(frozen=True, kw_only=True, slots=True)
class PipSettings:
    """The settings of a pip; "" and () mean not set. Addresses may hold passwords, so `repr` leaves them out."""

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
        """The configured indexes; pip's default index is not among them, as it needs no address."""
        first = (self.index_url,) if self.index_url else ()
        return () if self.no_index else (*first, *self.extra_index_urls)


NO_SETTINGS = PipSettings()
# One line of `pip config list`; the value is a Python literal:
#   global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'
_SECTIONS = ("global", "install", ":env:")  # the later one wins, as for `pip install`
_LINE = re.compile(rf"(?P<section>{'|'.join(_SECTIONS)})\.(?P<name>[\w-]+)=(?P<value>.*)$")
_OTHER_NAMES = {"pypi-url": "index-url", "default-timeout": "timeout"}
_YES = ("y", "yes", "t", "true", "on", "1")  # as `strtobool` in pip/_internal/utils/misc.py


# pip 23.2, each in several lines:
#   Configuration file could not be loaded. File contains no section headers. file: '/etc/pip.conf', line: 1
#   Configuration file could not be loaded. While reading from '/etc/pip.conf' [line  3]: section 'global' already …
#   Configuration file contains invalid UTF-8 characters in /etc/pip.conf.
_UNREADABLE = re.compile(r"Configuration file (?:could not be loaded\.?|(?=contains ))\s*(.+)", re.DOTALL)
_OTHER_SCHEME = re.compile(r"(?!https?:|file:)[a-z][a-z0-9+.-]+:", re.IGNORECASE)  # a drive has one letter
_FILE = re.compile(r"\s*(\S.*), exists: True\s*")  # a line of `pip config debug`, above the file's settings


def ask_pip(pip: Callable[..., tuple[bool, str]]) -> PipSettings | None:
    """Return the settings of a pip; None if it fails for another reason than its configuration.

    `pip` runs it with arguments, and returns whether it succeeded and what it printed. Raises `BadInput`, with the
    file, for a configuration that pip cannot read, or with an index of another scheme than http, https or file:
    otherwise packages would come from PyPI instead of the user's own index.
    """
    answered, text = pip("config", "list")
    if not answered:
        if fault := _UNREADABLE.search(text):
            raise _unusable_error(" ".join(fault[1].split()))
        return None
    settings = read_pip_settings(text)
    for url in settings.index_urls:
        if _OTHER_SCHEME.match(url):
            place = _find_setting_file(url, pip("config", "debug")[1])
            raise _unusable_error(
                _("{place} names {url}, which is not the address of a package index", place=place, url=url)
            )
    return settings


def _unusable_error(reason: Text) -> BadInput:
    """Return the error that pip's configuration cannot be used for a reason, of which passwords are removed."""
    return BadInput(
        _("pip's configuration cannot be used: {reason}.", reason=redact(reason, Policy.USABLE)),
        hint=_("Correct that file. Nothing is taken from PyPI in the meantime, as your own index may be meant."),
    )


def _find_setting_file(value: str, debug: str) -> str:
    """Return the first file that sets a value, by the output of `pip config debug`; "PIP_INDEX_URL" if none does."""
    file = ""
    for line in debug.splitlines():
        if match := _FILE.fullmatch(line):
            file = match[1]
        elif file and line.rstrip().endswith(value):
            return file
    return "PIP_INDEX_URL"


def read_pip_settings(config_list_text: str) -> PipSettings:
    """Return the settings in the output of `pip config list`; lines of another shape and empty values are skipped.

    If several sections set an option, that later in `_SECTIONS` counts.
    """
    lines = [found for line in config_list_text.splitlines() if (found := _LINE.match(line.strip()))]
    values: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: _SECTIONS.index(line["section"])):
        value = line["value"]
        with suppress(ValueError, SyntaxError):
            value = str(ast.literal_eval(value))
        if value.strip():
            values[_OTHER_NAMES.get(line["name"], line["name"])] = value.strip()
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
    """Return the arguments for `uv pip install` for settings that have no variable: ("--no-index",), or ()."""
    return ("--no-index",) if settings.no_index else ()


def uv_environment(settings: PipSettings, present: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables that make uv look where pip would.

    What the user has set for uv (UV_*) in the environment `present` (None: nothing) is left out. pip's certificate and
    proxy override the general SSL_CERT_FILE and *_PROXY, because pip does the same.
    """
    proxy = settings.proxy if "://" in settings.proxy or not settings.proxy else f"http://{settings.proxy}"
    variables = {
        "UV_DEFAULT_INDEX": settings.index_url,
        "UV_INDEX": " ".join(settings.extra_index_urls),
        "UV_FIND_LINKS": ",".join(settings.find_links),
        "UV_INSECURE_HOST": " ".join(settings.trusted_hosts),
        "UV_HTTP_TIMEOUT": settings.timeout,
        "SSL_CERT_FILE": settings.cert,
        "SSL_CLIENT_CERT": settings.client_cert,
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
    }
    newer = {
        "UV_INDEX_URL": "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL": "UV_INDEX",
        "UV_REQUEST_TIMEOUT": "UV_HTTP_TIMEOUT",
    }
    set_by_user = {newer.get(name, name) for name in present or {} if name.startswith("UV_")}
    return {name: value for name, value in variables.items() if value and name not in set_by_user}


def pip_environment(find_links: Iterable[str]) -> dict[str, str]:
    """Return {"PIP_FIND_LINKS": …} with folders and pages as URLs, because a space ends a path; {} without any."""
    urls = " ".join(link if "://" in link else Path(link).absolute().as_uri() for link in find_links)
    return {"PIP_FIND_LINKS": urls} if urls else {}


class UvSettings(NamedTuple):
    """The package indexes of a `uv.toml`, with passwords, and its `index-strategy`; () and "" where it sets none.

    `explicit` indexes serve only the packages tied to them. `default` takes the place of PyPI and is one of `indexes`.
    """

    indexes: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()
    default: str = ""
    strategy: str = ""


# A uv.toml: `[[index]]`, `name = "corp"`, `url = "https://me:secret@pypi.example/simple"`, `default = true`
def read_uv_settings(configuration: str) -> UvSettings:
    """Return the settings in the text of a `uv.toml`; empty ones for a text that is no TOML.

    Values of another type than uv's are skipped; `index-strategy` of `[pip]` goes before the general one.
    """
    try:
        settings = tomllib.loads(configuration)
    except tomllib.TOMLDecodeError:
        return UvSettings()

    def list_tables(value: object) -> list[dict[str, Any]]:
        """Return the tables in a list; [] for anything else."""
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []

    rows, more = list_tables(settings.get("index")), settings.get("extra-index-url")
    urls = [*(row.get("url") for row in rows), settings.get("index-url"), *(more if isinstance(more, list) else ())]
    defaults = [*(row.get("url") for row in rows if row.get("default")), settings.get("index-url")]
    for_pip = settings.get("pip")
    strategy = (for_pip.get("index-strategy") if isinstance(for_pip, dict) else "") or settings.get("index-strategy")
    return UvSettings(
        tuple(url for url in urls if isinstance(url, str)),
        tuple(row["url"] for row in rows if row.get("explicit") and isinstance(row.get("url"), str)),
        next((url for url in defaults if isinstance(url, str)), ""),
        str(strategy or ""),
    )
