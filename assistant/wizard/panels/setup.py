"""The setup on one page: the choice and one button, then the work, then what can be done with it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from assistant.detect import Fact, check_fact, facts_to_set
from assistant.export import terminal_line
from assistant.host.files import full_path
from assistant.i18n import Text, render, say, sentences
from assistant.install import EnvironmentFolder, Prepared, RemotePlan
from assistant.model.errors import AssistantError
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.model.plan import KERNEL_TARGET, Backend, Request
from assistant.model.record import replace
from assistant.model.report import Part, Report, Status, Step, check_kind, check_title, status_word, verdict
from assistant.model.shell import command_line, shell_of
from assistant.model.visible import Markup, joined, tag
from assistant.plan import card_name
from assistant.session.actions import Action, Add, Begin, Choose, Pick, Resume, Show, Simulate, blockers
from assistant.session.session import Session
from assistant.session.state import (
    Adding,
    Page,
    Phase,
    Stage,
    State,
    Task,
    failed_step,
    find_stage,
    has_no_plan,
    is_cancelled,
    is_unresolved,
    task_to_repeat,
)
from assistant.session.steps import TITLES, is_kernel_ours, split_requirements
from assistant.session.store import (
    Saved,
    continuation_remarks,
    first_step_not_done,
    is_worth_continuing,
    why_not_continuable,
)
from assistant.views import CHECK_HEADINGS, CheckRow, change_rows, check_rows, fold_packages, plan_title, speed_lines
from assistant.wizard import html
from assistant.wizard.head import Footer, OpenNotebook, Other, titles
from assistant.wizard.panels.base import AddonParts, PagePart, PageView, close_all, failure, log_view
from assistant.wizard.panels.choice import draw_ready_to_install, draw_why, machine_options
from assistant.wizard.shared_widgets import Chips, Details, Drawing, Fold, make, shared, show


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
    """Return a title for the running task, the question that it waits for, and the parts of an installation.

    Those before the present part are ticked.
    """
    step = state.running.step if state.running else Step.INSTALL
    if state.running is not Task.INSTALL:
        return html.heading(say("Checking that it computes correctly")) + failure(state, step)
    progress, parts = state.progress, list(Part)
    running = parts.index((progress and progress.part) or Part.DOWNLOAD)  # its packages were resolved before
    items = []
    for place, part in enumerate(parts):
        status = "running" if place == running else "done" if place < running else "waiting"
        said = progress.figures if progress and place == running else ""
        icon = html.icon("ok" if status == "done" else status)
        figures = tag("span", said, class_="ptsa-when")
        items.append(tag("li", icon, tag("span", TITLES[part]), figures, class_=f"ptsa-phase-{status}"))
    phases = tag("ul", *items, class_="ptsa-phases")
    return html.heading(say("Installing")) + failure(state, step) + phases


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
        self.on_press(self.next, self._actions_of)
        self.packages = make(
            widgets.Text, description=say("Packages"), placeholder="seaborn, pandas>=2", continuous_update=False
        )
        adds = Begin(task=Task.ADD)
        self.on_value(
            self.packages, lambda text: [Add(requirements=split_requirements(text)), adds] if text.strip() else []
        )
        self.measure = make(widgets.Button, description=say("Check everything and measure the speed (about a minute)"))
        self.measure.add_class("ptsa-measure")
        self.measure.on_click(lambda _button: self.post([Choose(level="full"), Begin(task=Task.VERIFY)]))
        self.parts = (
            self.next,
            make(Fold, title=say("Add packages")),
            make(widgets.VBox, children=(self.packages, self.adding)),
            self.checks,
            self.where,
            self.measure,
        )

    def _actions_of(self, key: str) -> list[Action]:
        """Return what a press of a card of `_next_actions` does."""
        made = self.session.state.environment
        if key == KEEP and made:
            return [Pick(path=made.path), Begin(task=Task.KEEP)]
        return [Show(page=Page.EXPORT)] if key == SAVE else []

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


class SetupPage(PageView):
    """What the machine gets, one button, and all else folded away."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.lead, self.offer = make(Drawing), Offer(session)
        self.changes = Changes(session)
        self.addons = AddonParts(session, Page.SETUP)
        self.why = make(Details, title=say("Why this one, and what else would work"))
        self.commands = make(Details, title=say("The exact commands and the folder"))
        self.log = make(Details, title=say("The log"))
        changes = (self.changes.fold, self.changes.box)
        self._views = {
            Stage.LOOKING: (self.lead, *changes),
            Stage.READY: (self.lead, self.offer, *self.addons.parts, self.why, self.commands, *changes),
            Stage.WORKING: (self.lead, self.log),
            Stage.FAILED: (self.lead, self.log, *changes),
        }
        self._unplanned = (self.lead, *self.addons.parts, self.log, *changes)
        self._unresolved = (self.lead, self.offer, *self.addons.parts, self.why, self.log, *changes)
        self.parts = self._views[Stage.LOOKING]

    @cached_property
    def done(self) -> Done:
        """What comes after a setup; made when the first one is finished."""
        done = Done(self.session)
        self._views[Stage.DONE] = (self.lead, *done.parts, self.log)
        return done

    def follow(self, state: State) -> None:
        """Show the widgets of the state's stage, and in them the plan, the commands, the log and the controls."""
        now = find_stage(state)
        if now is Stage.DONE:
            self.done.follow(state)
        failed = self._unplanned if has_no_plan(state) else self._unresolved if is_unresolved(state) else None
        self.parts = failed or self._views[now]
        self.lead.value = draw_working(state) if now is Stage.WORKING else DRAWN[now](state)
        self.offer.draw(state)
        if state.planning and state.plan:
            planning, plan = state.planning, state.plan
            self.why.draw(lambda: draw_why(state, planning, plan))
            self.commands.draw(lambda: draw_commands(state))
        self.log.draw(lambda: log_view(state.log, state.log_file))
        self.addons.update(state)
        with self.changes.quiet():
            self.changes.follow(state)

    def footer(self, state: State) -> Footer:
        """Return the footer: to install, to use the saved setup, to try again, or to open a notebook.

        On a simulated machine nothing can be pressed but the way back to this one.
        """
        now = find_stage(state)
        if now is Stage.DONE:
            return self.done.footer(state)
        if now is Stage.FAILED or (is_unresolved(state) and not self.offer.installed):
            return retry_footer(state)
        if state.machine and state.plan:
            note = say("This is a simulation of another machine, so nothing can be installed.")
            back = Other(label=say("Back to this machine"), actions=(Simulate(machine=""),))
            return Footer(label=say("Install"), able=False, note=note, others=(back,), cancel=state.running is not None)
        reasons = blockers(state, Task.INSTALL)
        actions: tuple[Action, ...] = () if reasons else (Begin(task=Task.INSTALL),)
        busy = state.running is not None
        if self.offer.installed and not busy:
            install = (Other(label=say("Install"), actions=actions),) if actions else ()
            return Footer(label=say("Use it"), actions=self.offer.actions, others=install)
        return Footer(label=say("Install"), actions=actions, able=not reasons, note=press_effect(state), cancel=busy)

    def foldable(self) -> tuple[Fold, ...]:
        """Return every fold, those that are not shown now among them."""
        return tuple(part for part in self._every_part() if isinstance(part, Fold))

    def adopt(self, other: PageView) -> None:
        """Take over the offer of a saved setup and add-ons, too: what was saved since then is this very setup."""
        if isinstance(other, SetupPage):
            if find_stage(self.session.state) is Stage.DONE:
                self.done.follow(self.session.state)
            self.offer.saved = other.offer.saved
            self.addons.adopt(other.addons)
        super().adopt(other)

    def close(self) -> None:
        """Free every model, those that are not shown now among them."""
        for widget in (*self._every_part(), self.addons):
            close_all(widget)

    def _every_part(self) -> Iterable[widgets.Widget]:
        return dict.fromkeys(part for parts in self._views.values() for part in parts)


DRAWN = {
    Stage.LOOKING: draw_ready_to_install,
    Stage.READY: draw_ready_to_install,
    Stage.FAILED: draw_failed,
    Stage.DONE: draw_done,
}


class Offer(widgets.HBox):  # type: ignore[misc]  # the library has no types
    """Offers to go on with the setup that was saved, until the user has gone on by himself."""

    def __init__(self, session: Session) -> None:
        self.text, self.resume, self.drop = make(Drawing), make(widgets.Button), make(widgets.Button)
        super().__init__(children=(self.text, self.resume, self.drop), layout=shared(widgets.Layout))
        self.add_class("ptsa-offers")
        self._session, self.saved = session, session.read_saved()
        self.installed = False  # whether what is offered stands already, so that going on is what most will want
        self.resume.on_click(lambda _button: self._resume())
        self.drop.on_click(lambda _button: self._drop())

    def draw(self, state: State) -> None:
        """Show how far the saved setup came and the buttons to go on, or why that is impossible here.

        Hide all of it if nothing is worth continuing, on a simulated machine, and for good once there is an
        environment. Hide the buttons if the setup is finished and nothing else was chosen: the footer has them.
        """
        if state.environment:
            self.saved = None
        saved, found = self.saved, state.detection
        worth = saved and (saved.state is None or is_worth_continuing(saved.state))
        offered = bool(worth and found and not state.machine and state.environment is None)
        self.installed = False
        show(self, visible=offered)
        if not (offered and saved and found):
            return
        reason = why_not_continuable(saved, found.machine)
        finished = saved.state is not None and first_step_not_done(saved.state) is Step.EXPORT
        untouched = not state.choices.target and not state.choices.overrides and state.choices.request == Request()
        self.installed = bool(finished and untouched and not reason)
        lines = [_progress_text(saved), *([reason] if reason else continuation_remarks(saved))]
        self.text.value = html.note(Severity.WARNING if reason else Severity.INFO, sentences(lines))
        self.resume.description = say("Use it") if finished else say("Continue from there")
        self.drop.description = say("Start over")
        show(self.resume, visible=not reason and not self.installed)
        show(self.drop, visible=not saved.in_use and not self.installed)

    def close(self) -> None:
        """Free every model."""
        for child in self.children:
            child.close()
        super().close()

    @property
    def actions(self) -> tuple[Resume, ...]:
        """The action that resumes the saved setup on the setup's page; () if there is none that can be read.

        It takes this kernel's Pythons and the present log file.
        """
        if self.saved is None or self.saved.state is None:
            return ()
        state, found = self.saved.state, self._session.state
        pythons = found.detected.pythons if found.detected else {}
        detected = replace(state.detected, pythons=pythons) if state.detected else None
        return (Resume(state=replace(state, detected=detected, log_file=found.log_file, page=Page.SETUP)),)

    def _resume(self) -> None:
        actions, self.saved = self.actions, None
        for action in actions:
            self._session.dispatch(action)

    def _drop(self) -> None:
        self._session.drop()
        self.saved = None
        self.draw(self._session.state)


def _progress_text(saved: Saved) -> str:
    """Return a sentence on how far a saved setup came."""
    if saved.state is None:
        return say("A setup was saved on {when}.", when=saved.at)
    step = first_step_not_done(saved.state)
    if step is Step.EXPORT:
        return say("The setup of {when} is finished.", when=saved.at)
    return say("A setup of {when} got as far as {step}.", when=saved.at, step=titles()[step])


class Changes(PagePart):
    """The controls in a box, which are made when its fold is opened; each change makes the plan anew."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._settable: tuple[Fact, ...] = ()
        self.fold = make(Fold, title=say("Change something: machine, version, Python, folder, nightly builds"))
        self.box = make(widgets.VBox)
        self.fold.observe(lambda _change: self._open(), "unfolded")

    def _open(self) -> None:
        """Make and connect the controls and show the present state in them, unless that was done before."""
        if self.box.children:
            return
        self.machine = make(widgets.Dropdown, options=machine_options(), description=say("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = make(widgets.Dropdown, description=say("Fact to change"))
        self.fact.observe(lambda _change: self._show_example(), "value")
        self.fact_value = make(widgets.Text, description=say("New value"), continuous_update=False)
        self.fact_value.observe(lambda change: self._set_fact(change["new"].strip()), "value")
        self.fault = make(Drawing)
        self.facts = make(Chips, pressed=True)
        self.on_press(self.facts, self._unset_fact)
        self.choice = make(widgets.Dropdown, description=say("PyTorch build"))
        self.on_value(self.choice, lambda index: Choose(plan=index or 0))
        backends = [(say("Choose for me"), ""), *((backend.title, backend.value) for backend in Backend)]
        self.backend = make(widgets.Dropdown, options=backends, description=say("Backend"))
        self.on_value(self.backend, lambda name: self._wish(backend=Backend(name) if name else None))
        builds = [(say("Releases"), False), (say("Nightly, little tested"), True)]
        self.builds = make(widgets.Dropdown, options=builds, description=say("Builds"))
        self.on_value(self.builds, lambda nightly: self._wish(nightly=nightly))
        self.python = make(
            widgets.Text, description=say("Python"), placeholder=say("chosen for you"), continuous_update=False
        )
        self.on_value(self.python, lambda version: self._wish(python=version.strip() or None))
        places = [(say("A new environment"), ""), (say("The environment of this kernel"), KERNEL_TARGET)]
        self.where = make(widgets.Dropdown, options=places, description=say("Where"))
        self.on_value(self.where, lambda where: Choose(target=where))
        self.target = make(
            widgets.Text,
            description=say("Folder"),
            placeholder=say("a folder of its own, chosen for you"),
            continuous_update=False,
        )
        self.target.observe(lambda change: self._set_target(change["new"].strip()), "value")
        self.again = make(widgets.Button, description=say("Look at the machine again"))
        self.again.on_click(lambda _button: self.session.begin(Task.DETECT))
        self.box.children = (
            self.choice,
            self.backend,
            self.builds,
            self.python,
            self.where,
            self.target,
            self.machine,
            self.fact,
            self.fact_value,
            self.fault,
            self.facts,
            self.again,
        )
        with self.quiet():
            self.follow(self.session.state)

    def _wish(self, **changed: Any) -> Choose:  # noqa: ANN401 - fields of the request
        return Choose(request=replace(self.session.state.choices.request, **changed))

    def _set_target(self, target: str) -> None:
        """Choose the environment's folder, "" for the usual one; show why a path that is not absolute is refused."""
        if self._quiet:
            return
        try:
            self.session.dispatch(Choose(target=str(full_path(target, relative=False)) if target else ""))
        except AssistantError as error:
            self.fault.value = html.failure(error.message, error.hint)

    def _set_fact(self, value: str) -> None:
        """Set the chosen fact of the machine by hand; show why a value that does not fit it is refused."""
        if self._quiet or not (self.fact.value and value):
            return
        try:
            check_fact(self.fact.value, value)
        except AssistantError as error:
            self.fault.value = html.failure(error.message, error.hint)
            return
        self.session.dispatch(Choose(overrides={**self.session.state.choices.overrides, self.fact.value: value}))

    def _unset_fact(self, fact: str) -> list[Choose]:
        """Return what undoes the setting of a fact by hand; detection's own value then counts again."""
        overrides = self.session.state.choices.overrides
        left = {name: value for name, value in overrides.items() if name != fact}
        return [Choose(overrides=left)] if left != overrides else []

    def _show_example(self) -> None:
        facts = {fact.name: fact for fact in self._settable}
        fact = facts.get(self.fact.value or "")
        self.fact_value.placeholder = ", ".join(fact.values) or fact.example if fact else ""

    def follow(self, state: State) -> None:
        """Show the values of this state in the controls, if they have been made."""
        if not self.box.children:
            return
        plans = state.planning.plans if state.planning else ()
        options = [(render(plan_title(plan)), index) for index, plan in enumerate(plans)]
        if list(self.choice.options) != options:
            self.choice.options = options
        if options:
            self.choice.value = state.choices.plan
        request = state.choices.request
        self.backend.value = request.backend.value if request.backend else ""
        self.builds.value, self.python.value = request.nightly, request.python or ""
        self.machine.value = state.machine
        kernel = state.choices.target == KERNEL_TARGET
        self.where.value, self.target.value = (KERNEL_TARGET, "") if kernel else ("", state.choices.target)
        self.target.disabled = kernel
        if is_kernel_ours(state):
            self.where.options = self.where.options[:1]
        self._show_facts(state)

    def _show_facts(self, state: State) -> None:
        """Show which facts can be set and which have been set by hand; clear the entry and the last refusal."""
        machine = state.detection.machine if state.detection else Machine()
        self._settable = tuple(facts_to_set(machine))
        options = [(render(fact.label), fact.name) for fact in self._settable]
        if list(self.fact.options) != options:
            chosen = self.fact.value
            self.fact.options = options
            if chosen in {name for _label, name in options}:
                self.fact.value = chosen
        self._show_example()
        self.fault.value, self.fact_value.value = html.NOTHING, ""
        labels = {fact.name: render(fact.label) for fact in self._settable}
        self.facts.options = [
            {"key": name, "title": f"{labels.get(name, name)}: {value}", "lead": say("press to undo")}
            for name, value in state.choices.overrides.items()
        ]
