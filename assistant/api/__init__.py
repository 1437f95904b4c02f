"""What an add-on may use of the core: errors, sentences and records here, more in the modules beside.

`records` holds the nouns, `texts` languages and privacy, `system` files and processes. `steps` finds, plans, installs
and diagnoses, and `planning` holds what plans are made of; `terminal` prints, `journey` is for commands that plan or
set up, and draws their tables, `notebook` for pages of the wizard. An add-on imports nothing else. None of what is
here, in `records`, `texts` or `system` loads a widget, torch or anything that speaks to a network.
"""

from __future__ import annotations

from assistant.i18n import Message, Text, _, ngettext, render, say, sentences
from assistant.model.errors import AssistantError, BadInput, Cancelled, NothingFits, WorkFailed
from assistant.model.record import Record, replace
