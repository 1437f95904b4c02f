"""Directives of the pages: what the assistant prints is run while they are built, so that none shows an old answer.

`printed` holds lines as they are typed, each beginning with `$ assistant` (or `$ echo 'a log' | assistant`); what each
one prints stands below it, in the language of the site. Only recorded machines (`--replay`), shipped tables and files
made by the script named in `:after:` belong there: another machine must get the same page. `pip` names a recorded
machine and a backend; it holds the plan's requirements as commands of plain pip. `solution` is folded until a reader
opens it.
"""

from __future__ import annotations

import contextlib
import runpy
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typed import answer

from assistant.catalog import load_catalog
from assistant.cli.plan import best_plan
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import say
from assistant.machines import load
from assistant.model.plan import Backend, Request
from assistant.session.remedy_plans import pip_commands


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("printed", Printed)
    app.add_directive("pip", Pip)
    app.add_directive("solution", Solution)
    return {"parallel_read_safe": True}


class Printed(SphinxDirective):
    """Lines that a reader types, each followed by what it prints."""

    has_content = True
    option_spec = {"after": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Run the lines in an empty folder; one that fails ends the build."""
        self.env.note_reread()  # what is printed changes with the data, not with the page
        lines: list[str] = []
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if script := self.options.get("after"):
                runpy.run_path(str(Path(self.env.doc2path(self.env.docname)).parent / script))
            for line in self.content:
                if lines:
                    lines.append("")
                lines += [line, *output(line.removeprefix("$ "), self.config.language)]
        return [_block(lines)]


class Pip(SphinxDirective):
    """The commands of plain pip for a recorded machine's plan."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Plan for the machine and the backend that are named."""
        self.env.note_reread()
        name, backend = self.arguments
        machine = detect(ReplayHost(load(name))).machine
        plan = best_plan(machine, load_catalog(), Request(backend=Backend(backend)))
        return [_block([f"$ {line}" for line in pip_commands(plan)])]


class Solution(SphinxDirective):
    """The answer to an exercise."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Put the content between the tags of HTML that fold it."""
        title = say("Solution")
        begin = f"<details><summary>{title}</summary>"
        inner = self.parse_content_to_nodes()
        return [nodes.raw("", begin, format="html"), *inner, nodes.raw("", "</details>", format="html")]


def _block(lines: list[str]) -> nodes.literal_block:
    text = "\n".join(lines)
    return nodes.literal_block(text, text, language="console")


def output(line: str, language: str) -> list[str]:
    """Return the lines that a command prints; raise `ValueError` where it ends with another code than 0 or 1."""
    status, printed = answer(line, language)
    if status not in {0, 1}:
        raise ValueError(f"{line}: {printed}")
    return [row.rstrip() for row in printed.strip("\n").splitlines()]
