"""Checks of what users and plans name before it reaches an installer: index addresses and requirements."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

from assistant.host.index import local_path
from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.privacy import Policy, redact

_ADDRESS = re.compile(r"(?P<scheme>https?|file)://(?P<server>[^/?#]*)(?P<rest>.*)")


def check_index_url(text: str) -> str:
    """Return the address of a package index as it is; raise `BadInput` for anything else, such as a file."""
    reason = _index_fault(text)
    if reason:
        raise BadInput(
            _(
                "'{text}' is not the address of a package index: {reason}.",
                text=redact(ascii(text)[1:-1], Policy.USABLE)[:80],
                reason=reason,
            ),
            hint=_("Example: --index-url https://download.pytorch.org/whl/cpu"),
        )
    return text


def check_requirement(text: str) -> str:
    """Return a requirement (PEP 508) as it is; raise `BadInput` for options, shell characters and anything else."""
    try:
        need = Requirement(text)
    except InvalidRequirement:
        need = None
    if need is None or (need.url and not _ADDRESS.fullmatch(need.url)) or not text.isprintable():
        raise BadInput(
            _("'{text}' is not a requirement.", text=redact(ascii(text)[1:-1], Policy.USABLE)[:80]),
            hint=_("Write a name, and a version if you need one, such as torch==2.9.1."),
        )
    return text


def _index_fault(text: str) -> Text:
    """Say why a text is not the address of an index; "" for one that may be."""
    if not text.isprintable() or any(sign in text for sign in " \"'`<>\\"):
        return _("it contains a character that no address may have")
    parts = _ADDRESS.fullmatch(text)
    if parts is None:
        return _("it does not start with https://, http:// or file://")
    if parts["scheme"] != "file":
        return "" if parts["server"].rpartition("@")[2] else _("it names no server")
    folder = local_path(text)
    return "" if folder and folder.is_dir() else _("it is not a folder")
