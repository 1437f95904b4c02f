"""What a lab answers in a notebook or in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from assistant.i18n import ngettext, render
from assistant.labs.journal import Entry
from assistant.model.record import Record, to_plain

MIME = "application/vnd.torch-setup-assistant.lab+json"
SHOWN_LINES = 24  # of an output that is not folded
END_LINES = 12  # that stay visible below a folded one: the end of a traceback, with its cause


class Submission(Record, frozen=True):
    """What a check leaves in the notebook, for grading: the lab, the learner, and all that was done."""

    lab: str
    learner: str = ""
    journal: tuple[Entry, ...] = ()


class Answer:
    """Markdown in a notebook, plain text elsewhere; a check's answer holds what grading needs."""

    def __init__(self, text: str, submission: Submission | None = None, *, plain: str = "") -> None:
        self.text, self.submission = text, submission
        self._plain = plain or text

    def __repr__(self) -> str:
        return self._plain

    def _repr_mimebundle_(self, **_asked: object) -> dict[str, object]:
        """Return what a notebook shows, and what `assistant labs check` reads."""
        shown: dict[str, object] = {"text/plain": self._plain, "text/markdown": self.text}
        if self.submission:
            shown[MIME] = to_plain(self.submission)
        return shown


class Shown(str):
    """The text of a file: shown as a block, and otherwise the text itself."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return _fenced(str(self))


def block(text: str) -> str:
    """Return the Markdown of a program's output; a long one is folded, and its end stays visible."""
    lines = text.splitlines()
    if len(lines) <= SHOWN_LINES:
        return _fenced(text)
    count = render(ngettext("All {count} line", "All {count} lines", len(lines)))
    return f"<details><summary>{escape(count)}</summary>\n\n{_fenced(text)}\n\n</details>\n\n{_fenced_lines(lines)}"


def _fenced_lines(lines: Sequence[str]) -> str:
    return _fenced("\n".join(["…", *lines[-END_LINES:]]))


def _fenced(text: str) -> str:
    """Fence a text with more back-ticks than it has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.rstrip()}\n{fence}"
