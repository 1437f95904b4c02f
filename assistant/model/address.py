"""What may be the address of a package index: one rule for what a user types, a stricter one for what a file holds."""

from __future__ import annotations

import re

from assistant.i18n import Text, _

SCHEMES = ("https://", "http://", "file://")
_FOREIGN = re.compile(
    r"(https?://[\w.-]{1,200}(:\d{1,5})?|file:///)(/?[\w./+~:%-]{0,400})?(\?[\w=&.%-]{0,200})?", re.ASCII
)


def index_fault(text: str) -> Text:
    """Return why a text cannot be the address of a package index, "" if it can; whether it exists is not asked."""
    if not text.isprintable() or any(sign in text for sign in " \"'`<>\\"):
        return _("it holds a character that no address has")
    if not text.startswith(SCHEMES):
        return _("it does not begin with https://, http:// or file://")
    server = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    return "" if text.startswith("file:") or server.rpartition("@")[2] else _("it names no server")


def foreign_index_fault(text: str) -> Text:
    """Judge an address from a file that anybody may have written: no user name, no `..`, no other machine's share."""
    # Windows takes file:////server/share for \\server\share, and each of / . \ may be spelt %2f %2e %5c.
    outside = "/.." in text or text.startswith("file:////") or re.search("(?i)%(2e|2f|5c)", text)
    plain = _FOREIGN.fullmatch(text) and not outside
    return "" if plain else _("it is not the plain address of a package index")
