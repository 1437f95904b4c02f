"""The installation and its checks: what exactly will run and be written, how far it is, and what was found."""

from __future__ import annotations

import sys

from assistant.i18n import Text, render, say
from assistant.install import Elsewhere, Prepared
from assistant.markup import Markup, joined, tag
from assistant.model.event import Part, Step
from assistant.model.finding import Severity
from assistant.model.plan import KERNEL_TARGET, Backend, Request
from assistant.model.record import replace
from assistant.model.report import Report, Status, check_kind, check_title, status_word, verdict
from assistant.model.shell import command_line, shell_of
from assistant.session.actions import Begin, Show, Wish
from assistant.session.state import Adding, Page, Phase, State, Task
from assistant.session.steps import TITLES
from assistant.views import CHECK_HEADINGS, CheckRow, change_rows, check_rows, folded, speed_lines
from assistant.wizard import html
from assistant.wizard.head import Footer, Other
from assistant.wizard.panels.base import failure
from assistant.wizard.stage import cancelled, failed_step, repeated


def draw_commands(state: State) -> Markup:
    """Show the folder, the size and the exact commands, and all that is written."""
    if state.machine and state.plan and state.detection:
        shell = shell_of(state.detection.machine.os)
        lines = [command_line(command, shell) for command in Elsewhere(state.plan, state.detection.machine).commands]
        return html.paragraph(say("On such a machine these commands would run:")) + html.code("\n".join(lines))
    if state.preview is None:
        return html.paragraph(say("The exact packages are being resolved."))
    return _agreement(state.preview) + html.table(_pythons(state))


def _agreement(preview: Prepared) -> Markup:
    packages = preview.resolution.packages
    size = say(
        "{size:.1f} MB, of {total:.1f} MB in all", size=preview.download / 1e6, total=preview.resolution.download / 1e6
    )
    changes = change_rows(preview.resolution.versions, preview.site.versions if preview.site else {})
    count = say("{changed} of {count} change", changed=len(changes), count=len(packages))
    rows = ((say("Folder"), preview.target), (say("Packages"), count), (say("Download"), size))
    commands = html.code("\n".join(command_line(command) for command in preview.commands))
    replaced = html.table(changes) if preview.site else html.NOTHING
    sizes = {package.name: f"{package.size / 1e6:.2f} MB" if package.size else "" for package in packages}
    every = html.table(
        ((package.name, package.version, sizes[package.name], package.url) for package in packages),
        (say("Package"), say("Version"), say("Size"), say("Source")),
    )
    ready = html.note(Severity.OK, say("This environment is there already and holds exactly these packages."))
    return (
        html.table(rows)
        + replaced
        + (ready if preview.ready else html.paragraph(say("These commands will run:")) + commands)
        + html.details(say("Every package"), every)
        + html.details(say("Every file and folder that is written"), html.bullets(preview.writes))
    )


def _pythons(state: State) -> list[tuple[str, str]]:
    """Name this notebook's interpreter and the Jupyter server's, where they are known."""
    pythons = state.detected.pythons if state.detected else {}
    kernel, server = pythons.get("kernel", ""), pythons.get("server", "")
    rows = [(say("This notebook's kernel"), kernel), (say("The Jupyter server"), server)]
    return [(name, path) for name, path in rows if path]


def _parts(state: State) -> Markup:
    """List the parts of an installation, those that are over ticked."""
    if state.running is not Task.INSTALL:
        return html.NOTHING
    progress, parts = state.progress, list(Part)
    running = parts.index((progress and progress.part) or Part.DOWNLOAD)  # its packages were resolved before
    items = []
    for place, part in enumerate(parts):
        status = "running" if place == running else "done" if place < running else "waiting"
        said = progress.figures if progress and place == running else ""
        icon = html.icon("ok" if status == "done" else status)
        figures = tag("span", said, class_="ptsa-when")
        items.append(tag("li", icon, tag("span", TITLES[part]), figures, class_=f"ptsa-phase-{status}"))
    return tag("ul", *items, class_="ptsa-phases")


def draw_restart(state: State) -> Markup:
    """Warn where this kernel still runs the torch that was replaced."""
    text = say(
        "This kernel had already imported torch, so it still runs the old one: restart it (menu Kernel). "
        "If the setup does not come back by itself, run its cell again."
    )
    in_use = state.choices.target == KERNEL_TARGET and "torch" in sys.modules
    return html.note(Severity.WARNING, text) if in_use else html.NOTHING


def draw_adding(adding: Adding) -> Markup:
    """Show what adding packages would change, why they cannot be added, or that they were."""
    if adding.status.message:
        return html.failure(adding.status.message, adding.status.hint)
    if adding.installed:
        return html.note(Severity.OK, say("Added: {packages}", packages=", ".join(adding.requirements)))
    if adding.prepared is None:
        return html.NOTHING
    site = adding.prepared.site
    rows = change_rows(adding.prepared.resolution.versions, site.versions if site else {})
    findings = joined(html.finding(one) for one in adding.prepared.findings if one.key != "foreign-pip")
    return (html.table(rows) if rows else html.paragraph(say("All of these are installed already."))) + findings


def draw_ready(state: State) -> Markup:
    """Say where the environment is, and under which name JupyterLab's launcher offers it."""
    made = state.environment
    if made is None or state.status(Step.INSTALL).phase is not Phase.DONE:
        return html.NOTHING
    name = made.launcher_name
    kernel = say("JupyterLab's launcher offers it as the kernel {name}.", name=name) if name else ""
    return joined(
        [
            html.paragraph(say("The environment is ready in {path}.", path=made.path)),
            html.paragraph(kernel),
        ]
    )


def before(state: State) -> str:
    """Say what pressing Install does to the environment in the folder, or what is still being worked out."""
    preview = state.preview
    if state.running is Task.PREPARE:
        return say("Working out every package …")
    if state.running is Task.PLAN and state.plan:
        return say("Choosing the PyTorch …")
    if preview is None:
        return say("Looking at this machine …") if state.running else ""
    if preview.ready:
        return say("Nothing has to be installed: after a check you can use it at once.")
    if preview.site:
        return say("The environment in the chosen folder will be changed; if anything fails, it is restored.")
    return say(
        "Nothing changes before you press Install. PyTorch goes into an environment of its own, which can be removed."
    )


def draw_working(state: State) -> Markup:
    """Show the parts of the work, and the question that it waits for."""
    title = say("Installing") if state.running is Task.INSTALL else say("Checking that it computes correctly")
    step = state.running.step if state.running else Step.INSTALL
    return html.heading(title) + failure(state, step) + _parts(state)


def draw_failed(state: State) -> Markup:
    """Say what failed, and the next step."""
    step, request = failed_step(state) or Step.DETECT, state.choices.request
    titles = {
        Step.DETECT: say("The machine could not be examined"),
        Step.PLAN: say("No PyTorch was found for this machine")
        if request == Request(backend=request.backend, nightly=request.nightly)
        else say("There is no plan for what you ask for"),
        Step.INSTALL: say("Nothing was installed"),
        Step.VERIFY: say("The verification did not finish"),
    }
    title = say("Cancelled") if cancelled(state) and step in {Step.DETECT, Step.PLAN} else titles[step]
    return html.heading(title) + failure(state, step)


def offer_again(state: State) -> Footer:
    """Offer to try again, beside it PyPI's build with CUDA where no other can be had, and to look for the cause."""
    others = []
    if state.plan and state.plan.backend is Backend.CPU and state.status(Step.INSTALL).unreachable:
        wish = Wish(request=replace(state.choices.request, cuda_libraries=True))
        others.append(Other(label=say("Take PyPI's build and its several GB of CUDA"), actions=(wish,)))
    if not cancelled(state):
        wrong = (Show(page=Page.WRONG), Begin(task=Task.DIAGNOSE))
        others.append(Other(label=say("Find the cause"), actions=wrong))
    return Footer(label=say("Try again"), actions=(Begin(task=repeated(state)),), others=tuple(others))


SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}
ICONS = {Status.PASSED: "ok", Status.SLOW: "warning", Status.SKIPPED: "info", Status.UNSUPPORTED: "no"}


def draw_checks(report: Report) -> Markup:
    """Show the verdict, each check with its result, the times, and the speeds that were measured."""
    severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
    judged, report = verdict(report), folded(report)
    signed = (
        row._replace(result=f"{SIGNS.get(check.status, '✗')} {render(row.result)}")
        for check, row in zip(report.checks, check_rows(report), strict=True)
    )
    every = html.table(map(_cells, signed), _cells(CHECK_HEADINGS))
    speeds = html.section(say("How fast it is"), html.bullets(speed_lines(report)))
    return html.note(severity, judged) + _matrix(report) + speeds + html.details(say("Times and errors"), every)


def _matrix(report: Report) -> Markup:
    """Draw a row per kind of check, with a field for each that says how it ended by sign and word."""
    rows: dict[Text, list[Markup]] = {}
    for check in report.checks:
        status, title = status_word(check.status), check_title(check.key)
        result = "; ".join(filter(None, map(render, (status, check.detail))))
        text = title if check.status is Status.PASSED else f"{render(title)}: {result}"
        sign = html.icon(ICONS.get(check.status, "error"), status)
        field = tag("li", sign, text, class_=f"ptsa-check-{check.status.value}")
        rows.setdefault(check_kind(check.key), []).append(field)
    body = [tag("tr", tag("th", kind, scope="row"), tag("td", tag("ul", *row))) for kind, row in rows.items()]
    return tag("table", tag("tbody", "", *body), class_="ptsa-table ptsa-matrix")


def _cells(row: CheckRow) -> tuple[Text, ...]:
    return (row.title, row.result, row.first, row.later, row.error, row.detail)
