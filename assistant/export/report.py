"""The setup as a report for people, in Markdown."""

from __future__ import annotations

import re

from assistant.export.setup import Setup, fill_template
from assistant.i18n import Message, render
from assistant.model.record import replace, to_json
from assistant.model.report import verdict
from assistant.model.shell import ALLOW_SCRIPTS
from assistant.privacy import shorten_home
from assistant.views import CHECK_HEADINGS, check_rows, fold_packages, machine_rows, plan_rows, speed_lines

_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def report_text(setup: Setup) -> str:
    """Return the report as Markdown: what came from outside is escaped, a home folder becomes `~`."""
    environment, report = setup.environment, setup.report
    facts = replace(setup.machine, packages=environment.packages, nvidia_smi_output=None, evidence=())
    machine = to_json(facts, indent=1)
    folder = "Scripts" if "Scripts" in re.split(r"[\\/]", environment.python)[-2:] else "bin"
    return fill_template(
        "report.md",
        {
            "text": escape,
            "code": code,
            "cell": lambda value: escape(value) if isinstance(value, Message) else code(value),
            "cells": lambda row: f"| {' | '.join(map(escape, row))} |",
        },
        setup=setup,
        plan=setup.plan,
        report=report,
        environment=environment,
        machine=machine_rows(setup.machine, hide={"packages"}),
        choice=plan_rows(setup.plan, setup.machine.disk_free_gb),
        verdict=verdict(report),
        headings=CHECK_HEADINGS,
        checks=check_rows(fold_packages(report)),
        speeds=speed_lines(report),
        activate={
            "bash": f"source {_shell_path(environment.path, folder, 'activate')}",
            "powershell": f"{ALLOW_SCRIPTS}; & {_shell_path(environment.path, folder, 'Activate.ps1')}",
        },
        machine_json=machine,
        fence="`" * max(3, 1 + max(map(len, re.findall("`+", machine)), default=0)),
        target=_shell_path(environment.path),
    )


def escape(value: object) -> str:
    """Escape a value for Markdown and HTML, on one line, so that it also fits a table cell."""
    entities = _line(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", entities).replace("://", ":&#47;&#47;")  # no address from outside becomes a link


def code(value: object) -> str:
    """Return a value as a code span of Markdown on one line, whatever backticks or bars it holds; "" if it is empty."""
    line = _line(value).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _line(value: object) -> str:
    return " ".join(shorten_home(render(value) if isinstance(value, Message) else str(value)).split())


def _shell_path(*parts: str) -> str:
    """Return a path joined of parts, quoted if it must be, for bash and PowerShell alike.

    Within quotes neither expands `~`, and both expand `$HOME`, which replaces the home folder.
    """
    path = "/".join(part.replace("\\", "/").rstrip("/") for part in parts)
    short = shorten_home(path)
    if short.startswith("~"):
        return f'"$HOME{short[1:]}"'
    return f'"{path}"' if re.search(r"[^\w./:-]", path) else path
