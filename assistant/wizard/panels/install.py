"""The installation: what exactly will run and be written, how far it is, what was found, and what can be done then."""

from __future__ import annotations

import sys
from pathlib import Path

import ipywidgets as widgets

from assistant.export import terminal_line
from assistant.i18n import Text, render, say
from assistant.install import EnvironmentFolder, Prepared, RemotePlan
from assistant.markup import Markup, joined, tag
from assistant.model.event import Part, Step
from assistant.model.finding import Severity
from assistant.model.plan import KERNEL_TARGET, Backend, Request
from assistant.model.record import replace
from assistant.model.report import Report, Status, check_kind, check_title, status_word, verdict
from assistant.model.shell import command_line, shell_of
from assistant.plan import card_name
from assistant.session.actions import Add, Begin, Choose, Pick, Show
from assistant.session.session import Session
from assistant.session.state import Adding, Page, Phase, State, Task
from assistant.session.steps import TITLES, split_requirements
from assistant.views import CHECK_HEADINGS, CheckRow, change_rows, check_rows, fold_packages, plan_title, speed_lines
from assistant.wizard import html
from assistant.wizard.head import Footer, OpenNotebook, Other
from assistant.wizard.panels.base import PageView, failure
from assistant.wizard.shared_widgets import Chips, Details, Drawing, Fold, make
from assistant.wizard.stage import failed_step, is_cancelled, task_to_repeat


def draw_commands(state: State) -> Markup:
    """Return the folder, the size, the exact commands, every package and file, and the kernel's and server's Python.

    For a simulated machine they are only its commands; before packages are resolved, a sentence on that.
    """
    if state.machine and state.plan and state.detection:
        shell = shell_of(state.detection.machine.os)
        lines = [command_line(command, shell) for command in RemotePlan(state.plan, state.detection.machine).commands]
        return html.paragraph(say("On such a machine these commands would run:")) + html.code("\n".join(lines))
    if state.preview is None:
        return html.paragraph(say("The exact packages are being resolved."))
    pythons = state.detected.pythons if state.detected else {}
    names = {"kernel": say("This notebook's kernel"), "server": say("The Jupyter server")}
    found = [(name, pythons[role]) for role, name in names.items() if pythons.get(role)]
    return _draw_consent(state.preview) + html.table(found)


def _draw_consent(preview: Prepared) -> Markup:
    """Return folder, size, changes, commands, packages and written files of an installation that is prepared."""
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


def _draw_parts(state: State) -> Markup:
    """Return a list of the parts of a running installation, with those before the present part ticked; else nothing."""
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


def draw_restart_warning(state: State) -> Markup:
    """Return a warning to restart this kernel if it is the target and has imported torch; else nothing.

    It is for after an installation, as it says that the kernel still runs the old torch.
    """
    text = say(
        "This kernel had already imported torch, so it still runs the old one: restart it (menu Kernel). "
        "If the setup does not come back by itself, run its cell again."
    )
    in_use = state.choices.target == KERNEL_TARGET and "torch" in sys.modules
    return html.note(Severity.WARNING, text) if in_use else html.NOTHING


def draw_adding(adding: Adding) -> Markup:
    """Return what adding packages would change, with findings, why they cannot be added, or that they were."""
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
    """Return the path of the finished environment and its name in JupyterLab's launcher; nothing before that."""
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


def press_effect(state: State) -> str:
    """Return a sentence on what Install would do to the folder's environment, or on what is looked up now; else ""."""
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
    """Return a title for the running task, the question that it waits for, and the parts of an installation."""
    title = say("Installing") if state.running is Task.INSTALL else say("Checking that it computes correctly")
    step = state.running.step if state.running else Step.INSTALL
    return html.heading(title) + failure(state, step) + _draw_parts(state)


def draw_failed(state: State) -> Markup:
    """Return a title for the step that failed, with its message and the next step."""
    step, request = failed_step(state) or Step.DETECT, state.choices.request
    titles = {
        Step.DETECT: say("The machine could not be examined"),
        Step.PLAN: say("No PyTorch was found for this machine")
        if request == Request(backend=request.backend, nightly=request.nightly)
        else say("There is no plan for what you ask for"),
        Step.INSTALL: say("Nothing was installed"),
        Step.VERIFY: say("The verification did not finish"),
    }
    title = say("Cancelled") if is_cancelled(state) and step in {Step.DETECT, Step.PLAN} else titles[step]
    return html.heading(title) + failure(state, step)


def retry_footer(state: State) -> Footer:
    """Return the footer: to try again and, unless the user cancelled, to look for the cause.

    If the index of a CPU build cannot be reached, PyPI's build with CUDA is offered, too.
    """
    others = []
    if state.plan and state.plan.backend is Backend.CPU and state.status(Step.INSTALL).unreachable:
        wish = Choose(request=replace(state.choices.request, cuda_libraries=True))
        others.append(Other(label=say("Take PyPI's build and its several GB of CUDA"), actions=(wish,)))
    if not is_cancelled(state):
        wrong = (Show(page=Page.WRONG), Begin(task=Task.DIAGNOSE))
        others.append(Other(label=say("Find the cause"), actions=wrong))
    return Footer(label=say("Try again"), actions=(Begin(task=task_to_repeat(state)),), others=tuple(others))


SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}
ICONS = {Status.PASSED: "ok", Status.SLOW: "warning", Status.SKIPPED: "info", Status.UNSUPPORTED: "no"}


def draw_checks(report: Report) -> Markup:
    """Return the verdict, the checks by kind, the speeds that were measured, and a fold with times and errors."""
    severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
    judged, report = verdict(report), fold_packages(report)
    signed = (
        row._replace(result=f"{SIGNS.get(check.status, '✗')} {render(row.result)}")
        for check, row in zip(report.checks, check_rows(report), strict=True)
    )
    every = html.table(map(_cells, signed), _cells(CHECK_HEADINGS))
    speeds = html.section(say("How fast it is"), html.bullets(speed_lines(report)))
    return html.note(severity, judged) + _draw_matrix(report) + speeds + html.details(say("Times and errors"), every)


def _draw_matrix(report: Report) -> Markup:
    """Return a table with a row per kind of check, and in it each check with how it ended, by sign and word."""
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


SAVE, KEEP = "save", "keep"


class Done(PageView):
    """Cards to go on with, packages to add, and the checks."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.adding = make(Drawing)
        self.checks = make(Details, title=say("The checks, one by one, with times"))
        self.where = make(Details, title=say("Where it is"))
        self.next = make(Chips, pressed=True, description=say("What next?"))
        self.next.on_msg(self._on_next)
        self.packages = make(
            widgets.Text, description=say("Packages"), placeholder="seaborn, pandas>=2", continuous_update=False
        )
        self.packages.observe(lambda change: self._add(change["new"]), "value")
        self.measure = make(widgets.Button, description=say("Check everything and measure the speed (about a minute)"))
        self.measure.add_class("ptsa-measure")
        self.measure.on_click(lambda _button: self._measure())
        self.parts = (
            self.next,
            make(Fold, title=say("Add packages")),
            make(widgets.VBox, children=(self.packages, self.adding)),
            self.checks,
            self.where,
            self.measure,
        )

    def _add(self, text: str) -> None:
        """Begin to work out what adding packages would change, unless the text is empty."""
        if text.strip():
            self.session.dispatch(Add(requirements=split_requirements(text)))
            self.session.begin(Task.ADD)

    def _measure(self) -> None:
        self.session.dispatch(Choose(level="full"))
        self.session.begin(Task.VERIFY)

    def _on_next(self, _widget: object, content: object, _buffers: object) -> None:
        press, made = content.get("press") if isinstance(content, dict) else "", self.session.state.environment
        if press == SAVE:
            self.session.dispatch(Show(page=Page.EXPORT))
        elif press == KEEP and made:
            self.session.dispatch(Pick(path=made.path))
            self.session.begin(Task.KEEP)

    def follow(self, state: State) -> None:
        """Show the report, the environment's place, the cards, and what is being added."""
        if state.report:
            report = state.report
            self.checks.draw(lambda: draw_checks(report))
        self.where.draw(lambda: draw_ready(state))
        self.next.options = _next_actions(state)
        self.adding.value = draw_adding(state.adding) if state.adding else html.NOTHING

    def footer(self, state: State) -> Footer:
        """Return the footer: to add the packages whose changes are shown, else to open a notebook or set up another."""
        adding = state.adding
        if adding and adding.prepared and not adding.installed:
            rest = Other(label=say("Not now"), actions=(Add(requirements=()),))
            return Footer(label=say("Add these packages"), actions=(Begin(task=Task.ADD),), others=(rest,))
        another = Other(label=say("Set up another"), actions=(Begin(task=Task.DETECT),))
        label = say("Open a notebook with it")
        name = state.environment.launcher_name if state.environment else ""
        note = say("Opens a first notebook on the kernel “{name}”.", name=name) if name else ""
        return Footer(label=label, actions=(OpenNotebook(),), note=note, others=(another,))


def draw_done(state: State) -> Markup:
    """Return what works now, the verdict, and whether the kernel must be restarted; nothing before a report."""
    report, plan, found = state.report, state.plan, state.detection
    if report is None or plan is None or found is None:
        return html.NOTHING
    card = card_name(found.machine, plan.backend)
    works = say("PyTorch works on your {card}", card=card) if card else say("PyTorch works on your processor")
    title = works if report.usable else say("PyTorch is installed, but some checks failed")
    line = tag("p", plan_title(plan), class_="ptsa-machine")
    judged = html.paragraph(verdict(report), "ok" if report.passed else "warning")
    kept = failure(state, state.environments.status)  # of the build that was to be kept, or no longer
    return line + html.heading(title) + judged + draw_restart_warning(state) + kept


def _next_actions(state: State) -> list[dict[str, str]]:
    """Return cards for what can be done with the finished environment, as `Chips` takes them; [] before that."""
    if state.environment is None or state.plan is None or state.detection is None:
        return []
    keeps = EnvironmentFolder(Path(state.environment.path)).guards
    return [
        {
            "key": "terminal",
            "title": say("Use it in a terminal"),
            "lead": say("copies the line to type"),
            "copy": terminal_line(state.environment, state.plan),
        },
        {
            "key": "vscode",
            "title": say("Use it in VS Code"),
            "lead": say("copies the interpreter's path"),
            "copy": state.environment.python,
        },
        {"key": SAVE, "title": say("Save the configuration"), "lead": say("colleague, project, container, bug report")},
        {
            "key": KEEP,
            "title": say("Let go of this build") if keeps else say("Keep this build"),
            "lead": say("pip and uv keep {pins}", pins=", ".join(keeps))
            if keeps
            else say("later installations may replace PyTorch"),
        },
    ]
