"""Names the libraries that bring the operators which ONNX Runtime itself does not have."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from onnx import ModelProto

from assistant.i18n import Message, _
from assistant.model.record import Record, from_plain
from assistant.onnx.graph import bodies, plain_domain
from assistant.onnx.operators import runtimes


class Library(Record, frozen=True):
    """A library with the domains that it defines; `data/libraries.toml` says what the fields mean."""

    name: str
    domains: tuple[str, ...]
    source: str
    package: str = ""
    provider: str = ""
    lines: tuple[str, ...] = ()


class Libraries(Record, frozen=True):
    """All that are known, as of a date."""

    as_of: str
    library: tuple[Library, ...]


@cache
def libraries() -> Libraries:
    """Read the table."""
    text = (files(__package__) / "data" / "libraries.toml").read_text(encoding="utf-8")
    return from_plain(tomllib.loads(text), Libraries, "libraries.toml")


def library_of(domain: str) -> Library | None:
    """Return the library that brings a domain; None where none is known."""
    return next((one for one in libraries().library if domain in one.domains), None)


def is_foreign(domain: str) -> bool:
    """Return whether ONNX Runtime brings no operators of a domain."""
    return plain_domain(domain) not in runtimes().domains


def foreign_domains(model: ModelProto) -> tuple[str, ...]:
    """Return the domains of a model that neither ONNX Runtime nor the model itself defines, in order."""
    local = {(function.domain, function.name) for function in model.functions}
    nodes = (node for body in bodies(model) for node in body.node if (node.domain, node.op_type) not in local)
    return tuple(dict.fromkeys(node.domain for node in nodes if is_foreign(node.domain)))


def unknown(domain: str) -> Message:
    """Return why no operator of a domain runs, with the library that brings it where one is known."""
    library = library_of(domain)
    if library is None:
        return _("ONNX Runtime does not know the domain {domain}.", domain=domain)
    return _(
        "ONNX Runtime does not know the domain {domain}, which {library} brings.", domain=domain, library=library.name
    )


def remedy(domain: str) -> tuple[Message, tuple[str, ...]]:
    """Return what to do about a foreign domain, and the commands for it."""
    library = library_of(domain)
    if library is None:
        return _("They need the library that defines them; export the model without them."), ()
    commands = (f"python -m pip install {library.package}",) if library.package else ()
    if library.lines:
        message = _("Install {library}, and register it with the SessionOptions of each session: {lines}")
        return message.format(library=library.name, lines="; ".join(library.lines)), commands
    if library.provider:
        message = _("Only {library} runs them: create the session with {provider}, with its plugins loaded.")
        return message.format(library=library.name, provider=library.provider), commands
    return _("ONNX Runtime cannot run them; {library} can.", library=library.name), commands
