"""Directives of the pages: what the assistant prints is run while they are built, so that none shows an old answer.

`printed` holds lines as they are typed, each beginning with `$ assistant` (or `$ echo 'a log' | assistant`); what each
one prints is put below it, on the pages in `zh_CN/` in Chinese. Only recorded machines (`--replay`), shipped tables and
files made by the script named in `:after:` belong there: another machine must get the same page. `pip` names a recorded
machine and a backend, and shows the plan's requirements as commands of plain pip. `solution` is folded until a reader
opens it.
"""

from __future__ import annotations

import io
import os
import runpy
import shlex
import signal
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from assistant.catalog import load_catalog
from assistant.cli import main
from assistant.cli.plan import best_plan
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.host.process import REQUESTS_TO_END
from assistant.i18n import use_language
from assistant.machines import load
from assistant.model.plan import Backend, Request
from assistant.session.diagnosis import pip_commands


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("printed", Printed)
    app.add_directive("pip", Pip)
    app.add_directive("solution", Solution)
    return {"parallel_read_safe": True}


class _Directive(SphinxDirective):
    @property
    def language(self) -> str:
        """Return the language of the page."""
        return "zh_CN" if self.env.docname.startswith("zh_CN/") else "en"

    def block(self, lines: list[str]) -> list[nodes.Node]:
        """Show lines of a terminal, which are made anew with each build: they change with the data, not the page."""
        self.env.note_reread()
        text = "\n".join(lines)
        return [nodes.literal_block(text, text, language="console")]


class Printed(_Directive):
    """Lines that a reader types, each followed by what it prints."""

    has_content = True
    option_spec = {"after": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Run the lines in an empty folder; one that fails ends the build."""
        lines: list[str] = []
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            if script := self.options.get("after"):
                runpy.run_path(str(Path(self.env.doc2path(self.env.docname)).parent / script))
            for line in self.content:
                lines += [*([""] if lines else []), line, *output(line.removeprefix("$ "), self.language)]
        return self.block(lines)


class Pip(_Directive):
    """The commands of plain pip for a recorded machine's plan."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Plan for the machine and the backend that are named."""
        name, backend = self.arguments
        machine = detect(ReplayHost(load(name))).machine
        plan = best_plan(machine, load_catalog(), Request(backend=Backend(backend)))
        return self.block([f"$ {line}" for line in pip_commands(plan)])


class Solution(_Directive):
    """The answer to an exercise."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Put the content between the tags of HTML that fold it."""
        title = {"en": "Solution", "zh_CN": "答案"}[self.language]
        begin = f"<details><summary>{title}</summary>"
        inner = self.parse_content_to_nodes()
        return [nodes.raw("", begin, format="html"), *inner, nodes.raw("", "</details>", format="html")]


def output(line: str, language: str) -> list[str]:
    """Return the lines that a command prints; raise `ValueError` where it ends with another code than 0 or 1."""
    words, given = shlex.split(line), ""
    if words[0] == "echo":
        given, words = f"{words[1]}\n", words[3:]
    variables = {"COLUMNS": "100", "LANGUAGE": language, "NO_COLOR": "1"}
    printed, read = io.StringIO(), io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
    handlers = {number: signal.getsignal(number) for number in REQUESTS_TO_END}  # a command sets its own
    use_language(language)
    with (
        patch.dict(os.environ, variables),
        patch.multiple(sys, argv=words, stdin=read),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        try:
            main()
        except SystemExit as end:
            if end.code not in {0, 1}:
                raise ValueError(f"{line}: {printed.getvalue()}") from end
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return [row.rstrip() for row in printed.getvalue().strip("\n").splitlines()]
