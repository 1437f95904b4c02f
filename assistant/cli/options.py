"""Options that several commands share, checked as they are read: what the user wishes for, where packages come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from assistant.i18n import _
from assistant.install import check_index_url, check_requirement
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Request


def request_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say what the user wishes for."""
    backends = click.Choice([backend.value for backend in Backend])
    command = click.option("--python", metavar="V", help="Version of Python, such as 3.12.")(command)
    command = click.option("--nightly", is_flag=True, help="Take last night's build of torch, not a release.")(command)
    pins = each(check_requirement)
    pin = click.option(
        "--pin", "pins", multiple=True, metavar="REQ", callback=pins, help="A requirement that must hold."
    )
    command = pin(command)
    return click.option("--backend", type=backends, help="Choose the backend yourself.")(command)


def source_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say where packages come from."""
    command = click.option("--offline", is_flag=True, help="Use nothing but caches and local folders.")(command)
    folders = each(_folder)
    links = click.option("--find-links", multiple=True, metavar="DIR", callback=folders, help="A folder of wheels.")
    command = links(command)
    checked = each(lambda url: check_index_url(url) if url else url)
    index = click.option("--index-url", default="", metavar="URL", callback=checked, help="Take torch from this index.")
    return index(command)


def request_of(backend: str | None, pins: tuple[str, ...], python: str | None, *, nightly: bool) -> Request:
    """Put the wishes together."""
    return Request(backend=Backend(backend) if backend else None, pins=pins, python=python, nightly=nightly)


def _folder(name: str) -> str:
    """Take a page's address as it is, and a folder only when it is there."""
    if "://" not in name and not Path(name).expanduser().is_dir():
        raise BadInput(_("{folder} is not a folder.", folder=name), hint=_("Name the folder that holds the wheels."))
    return name


def each(check: Callable[[str], str]) -> Callable[..., Any]:
    """Check an option's value, or each of its values, as it is read."""
    return lambda _context, _option, value: check(value) if isinstance(value, str) else tuple(map(check, value))
