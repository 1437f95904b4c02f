"""What an add-on may use of the core: nouns, words, files, children and privacy here, more in the modules beside.

`steps` finds, plans, installs and diagnoses, and `planning` holds what plans are made of; `terminal` and `drawing`
print, `journey` is for commands that set up, `notebook` for pages of the wizard. An add-on imports nothing else.
None of what is here loads a widget, torch or anything that speaks to a network.
"""

from __future__ import annotations

from pathlib import Path

from assistant import __version__
from assistant.host.extras import NAME, lacking, require
from assistant.host.files import (
    append_private,
    discard,
    discard_folder,
    draft,
    open_plain,
    open_temporary,
    put_in_place,
    read_plain,
    settle,
    write_temporary,
    write_whole,
)
from assistant.host.folders import user_cache
from assistant.host.live import known_here
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, Isolation, become, stream
from assistant.host.telemetry import for_child, quiet
from assistant.i18n import (
    LANGUAGES,
    STARTED_AS,
    Message,
    Text,
    _,
    as_typed,
    in_language,
    language,
    ngettext,
    render,
    say,
    sentences,
    use_language,
    verbatim,
)
from assistant.markup import Markup, html_language, joined, style, tag
from assistant.model.errors import (
    AssistantError,
    BadInput,
    Cancelled,
    NothingFits,
    WorkFailed,
    unreadable,
    unwritable,
)
from assistant.model.event import PartDone, Progress, Step
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request
from assistant.model.record import Record, decoder, from_json, from_plain, replace, to_json, to_plain
from assistant.model.report import duration
from assistant.model.shell import command_line
from assistant.model.visible import cell, printable, visible
from assistant.parsers.decode import text_pieces, without_colours
from assistant.privacy import USABLE_FIELDS, Policy, redact, without_credentials

RUNTIME = Path(__file__).parents[1] / "runtime"  # files that users copy into their own code
