"""What a line of a page prints: while the pages are built, and in a browser when a reader runs it there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from assistant.i18n import _, as_typed, sentences, use_language
from assistant.labs.in_page import run_in_page
from assistant.model.errors import BadInput


def answer(line: str, language: str) -> tuple[int, str]:
    """Return the exit status and the output of `assistant …` or `echo TEXT | assistant …`, in a language.

    It runs in the current folder. A line that is neither gets one sentence and the status 2.
    """
    use_language(language)
    variables = {"COLUMNS": "100", "LANGUAGE": language, "NO_COLOR": "1"}
    try:
        words, given = _parts(line)
        return run_in_page([sys.executable, "-m", *words], variables, Path.cwd(), given=given)
    except BadInput as error:
        return error.exit_code, str(sentences((as_typed(error.message), as_typed(error.hint))))


def _parts(line: str) -> tuple[list[str], str]:
    """Return the command's words, and what it is given to read."""
    try:
        words, given = shlex.split(line), ""
    except ValueError:
        words = []
    if words[:1] == ["echo"] and words[2:3] == ["|"]:
        given, words = f"{words[1]}\n", words[3:]
    if words[:1] != ["assistant"]:
        raise BadInput(
            _("Only lines that begin with `assistant` run in this page."),
            hint=_("Type any other line in a terminal."),
        )
    return words, given
