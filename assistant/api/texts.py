"""Languages, markup, text from outside, and what is left out of a text before it leaves the machine."""

from __future__ import annotations

from assistant.host.live import private_names_here
from assistant.i18n import LANGUAGES, STARTED_AS, as_typed, in_language, language, use_language, verbatim
from assistant.model.shell import command_line
from assistant.model.visible import Markup, cell, html_language, joined, printable, remove_colours, style, tag, visible
from assistant.parsers import text_pieces
from assistant.privacy import USABLE_FIELDS, Policy, redact, without_credentials
