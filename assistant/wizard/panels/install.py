"""The installation: what exactly will run and be written, how far it is, what was found, and what can be done then."""

from __future__ import annotations

import sys
import time

import ipywidgets as widgets

from assistant.i18n import Text, _, language, ngettext, render, say, sentences
from assistant.install import EnvironmentFolder, Prepared, RemotePlan
from assistant.model.finding import Severity
from assistant.model.plan import KERNEL_TARGET, Backend, Request
from assistant.model.record import replace
from assistant.model.report import (
    CHECKS,
    RIGHT,
    Part,
    Report,
    Status,
    Step,
    format_duration,
    format_number,
    verdict,
)
from assistant.model.shell import command_line, shell_of
from assistant.model.visible import Markup, joined, tag
from assistant.plan import card_name
from assistant.session.actions import Add, Begin, Choose, Pick, Show
from assistant.session.session import Session
from assistant.session.state import Adding, Page, Phase, State, Task, failed_step, is_cancelled, task_to_repeat
from assistant.session.steps import TITLES, split_requirements
from assistant.verify import Picture
from assistant.views import CHECK_HEADINGS, CheckRow, change_rows, check_rows, fold_packages, plan_title, speed_lines
from assistant.wizard import html
from assistant.wizard.head import ButtonAction, Footer, OpenNotebook, Other, titles, use_kernel
from assistant.wizard.panels.base import PageView, failure
from assistant.wizard.panels.choice import format_megabytes
from assistant.wizard.panels.export import PYLOCK, usual_purpose
from assistant.wizard.shared_widgets import Details, Drawing, Fold, make


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
    size = format_megabytes(preview.download / 1e6)
    changes = change_rows(preview.resolution.versions, preview.site.versions if preview.site else {})
    changed = 0 if preview.ready else len(changes)
    count = say("{changed} of {count} change", changed=changed, count=len(packages))
    rows = ((say("Folder"), preview.target), (say("Packages"), count), (say("Download"), size))
    commands = html.copyable("\n".join(command_line(command) for command in preview.commands))
    replaced = html.table(changes) if preview.site else html.NOTHING
    by_hand = say(
        "These commands will run. In a terminal they do the same, in a folder with the file below; only the kernel in "
        "Jupyter and what keeps this build are written by the assistant itself."
    )
    ready = html.note(Severity.OK, say("This environment is there already and holds exactly these packages."))
    return (
        html.table(rows)
        + replaced
        + (ready if preview.ready else html.paragraph(by_hand) + html.fetch(PYLOCK, PYLOCK) + commands)
        + html.later(say("Every package"), PACKAGE_LIST)
        + html.details(say("Every file and folder that is written"), html.bullets(preview.writes))
    )


PACKAGE_LIST = "every package"  # the key of what a fold shows once it is opened: `draw_packages`


def draw_packages(state: State) -> Markup:
    """Return a table of every package that an installation would put in place; nothing before they are resolved."""
    packages = state.preview.resolution.packages if state.preview else ()
    sizes = {package.name: f"{package.size / 1e6:.2f} MB" if package.size else "" for package in packages}
    return html.table(
        ((package.name, package.version, sizes[package.name], package.url) for package in packages),
        (say("Package"), say("Version"), say("Size"), say("Source")),
    )


class Receipt:
    """The steps of a setup as they are done, each with its seconds; it notes when a part of an installation begins."""

    def __init__(self) -> None:
        self.begun: dict[Part, float] = {}
        self.part: Part | None = None  # that is at work

    def follow(self, state: State) -> None:
        """Note which part of a running installation is at work, and since when; forget those of the one before."""
        if state.running is not Task.INSTALL:
            return
        part = (state.progress and state.progress.part) or Part.DOWNLOAD  # its packages were resolved before
        if part is not self.part:
            self.begun = {} if self.part is None or part is Part.DOWNLOAD else self.begun
            self.part, self.begun[part] = part, time.monotonic()

    def draw(self, state: State) -> Markup:
        """Return the steps: ticks and seconds for those done, the figures of the one at work, the rest to come."""
        rows: list[tuple[str, str, str | None]] = [
            (titles()[step], "ok", _seconds(state.status(step).seconds)) for step in (Step.DETECT, Step.PLAN)
        ]
        if state.running is Task.INSTALL:
            rows += [(render(TITLES[part]), *self._how(part)) for part in Part if part is not Part.RESOLVE]
        else:
            rows.append((titles()[Step.INSTALL], "ok", _seconds(state.status(Step.INSTALL).seconds)))
            rows.append((titles()[Step.VERIFY], "running", None))
        return tag("ul", *(_draw_row(*row) for row in rows), class_="ptsa-phases")

    def _how(self, part: Part) -> tuple[str, str | None]:
        """Return the sign of a part, and the seconds that it took; None for the one at work."""
        if part is self.part:
            return "running", None
        order = list(Part)
        if self.part is None or order.index(part) > order.index(self.part):
            return "waiting", ""
        if part not in self.begun:  # there was nothing to do
            return "ok", ""
        later = [since for since in self.begun.values() if since > self.begun[part]]
        return "ok", _seconds(min(later, default=time.monotonic()) - self.begun[part])


def _seconds(seconds: float) -> str:
    return say("{seconds:.1f} s", seconds=seconds) if seconds else ""


def _draw_row(title: str, sign: str, took: str | None) -> Markup:
    """Return a step of the receipt; for the one at work the browser fills in the figures of the progress."""
    when = tag("span", took or "", class_="ptsa-when", data_shows="figures" if took is None else None)
    return tag("li", html.icon(sign), tag("span", title), when, class_=f"ptsa-phase-{sign}")


def draw_ring(state: State) -> Markup:
    """Return the progress as a ring, which the browser fills, the time, and a square for each check."""
    ring = tag("div", tag("span", "", data_shows="share"), class_="ptsa-ring", aria_hidden="true")
    clock = tag(
        "p", say("Time so far:"), " ", tag("span", "", data_shows="time"), class_="ptsa-lead", aria_hidden="true"
    )
    close = tag("p", say("You may close this tab; the work goes on."), class_="ptsa-lead")
    return tag("section", ring, clock, _draw_squares(state), close, class_="ptsa-card ptsa-work-card")


def _draw_squares(state: State) -> Markup:
    """Return a square for each check, which the browser makes green; one that went wrong has another colour and sign.

    The checks of packages beside torch, which only the progress counts, come last.
    """
    keys, progress = CHECKS[state.choices.level if state.running is Task.VERIFY else "quick"], state.progress
    total = int(progress.total or 0) if progress and progress.unit == "checks" else len(keys)
    wrong = {finding.key for finding in state.reported}
    squares = [
        tag("i", "", class_="ptsa-odd" if f"verify.{key}" in wrong else None)
        for key in (*keys, *[""] * (total - len(keys)))[:total]
    ]
    row = tag("div", *squares, class_="ptsa-squares", role="img")
    return row + tag("p", say("Each square is a check; it turns green as it passes."), class_="ptsa-lead")


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


def draw_working(state: State, receipt: Receipt) -> Markup:
    """Return a title for the running task, what happens now, the question that it waits for, and the receipt."""
    title = say("Installing") if state.running is Task.INSTALL else say("Checking that it computes correctly")
    step = state.running.step if state.running else Step.INSTALL
    now = tag("p", tag("span", "", data_shows="text"), class_="ptsa-promise", aria_hidden="true")
    return html.heading(title) + now + failure(state, step) + receipt.draw(state)


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


SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–", Status.TIMEOUT: "…"}


def draw_checks(report: Report) -> Markup:
    """Return the verdict, the speeds that were measured, and the checks with their times and errors."""
    severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
    judged, report = verdict(report), fold_packages(report)
    signed = (
        row._replace(result=f"{SIGNS.get(check.status, '✗')} {render(row.result)}")
        for check, row in zip(report.checks, check_rows(report), strict=True)
    )
    every = html.table(map(_cells, signed), _cells(CHECK_HEADINGS))
    speeds = html.section(say("How fast it is"), html.bullets(speed_lines(report)))
    return html.note(severity, judged) + speeds + every


def _cells(row: CheckRow) -> tuple[Text, ...]:
    return (row.title, row.result, row.first, row.later, row.error, row.detail)


SAVE, PACKAGES, NOTEBOOK, KEEP, MEASURE = "save", "packages", "notebook", "keep", "measure"  # keys of cards


class Done(PageView):
    """Cards to go on with, which tick themselves, packages to add, and the checks."""

    def __init__(self, session: Session, *, at_cell: bool = False) -> None:
        super().__init__(session)
        self.at_cell = at_cell  # whether a notebook waits for it whose cell failed
        self.adding = make(Drawing)
        self.checks = make(Details, title=_("The checks, one by one, with times"))
        self.next = make(Drawing)
        self.opened = False  # whether the first notebook was asked for
        self.packages = make(
            widgets.Text, description=_("Packages"), placeholder="seaborn, pandas>=2", continuous_update=False
        )
        self.packages.observe(lambda change: self._add(change["new"]), "value")
        self.fold = make(Fold, title=_("Add packages"))
        self.fold.holds = (self.packages, self.adding)
        self.parts = (self.next, self.fold, self.checks)

    def _add(self, text: str) -> None:
        """Begin to work out what adding packages would change, unless the text is empty."""
        if text.strip():
            self.session.dispatch(Add(requirements=split_requirements(text)))
            self.session.begin(Task.ADD)

    def pressed(self, key: str, state: State) -> tuple[ButtonAction, ...]:
        """Return what a card does; that of packages opens the place to name them."""
        if key == PACKAGES:
            self.fold.unfolded = True
        if key == NOTEBOOK:
            return _open_notebook(state)
        if key == MEASURE:
            return (Choose(level="full"), Begin(task=Task.VERIFY))
        if key == KEEP and state.environment:
            return (Pick(path=state.environment.path), Begin(task=Task.KEEP))
        return (*usual_purpose(state), Show(page=Page.EXPORT)) if key == SAVE else ()

    def note(self, action: ButtonAction) -> None:
        """Tick the first notebook once it is opened."""
        self.opened = self.opened or isinstance(action, OpenNotebook)
        self.follow(self.session.state)

    def follow(self, state: State) -> None:
        """Show the report, the environment's place, the cards, and what is being added."""
        if state.report:
            report = state.report
            self.checks.draw(lambda: draw_checks(report))
        cards = html.cards(say("What next?"), _next_actions(state, opened=self.opened))
        self.next.value = cards + html.details(say("Where it is"), draw_ready(state)) + draw_pack(state)
        self.adding.value = draw_adding(state.adding) if state.adding else html.NOTHING

    def footer(self, state: State) -> Footer:
        """Return the footer: to add the packages whose changes are shown, else to open a notebook or set up another.

        At a notebook's cell it is first to use the environment there.
        """
        adding = state.adding
        if adding and adding.prepared and not adding.installed:
            rest = Other(label=say("Not now"), actions=(Add(requirements=()),))
            return Footer(label=say("Add these packages"), actions=(Begin(task=Task.ADD),), others=(rest,))
        another = Other(label=say("Set up another"), actions=(Begin(task=Task.DETECT),))
        name = state.environment.launcher_name if state.environment else ""
        label, opens = say("Open a notebook with it"), _open_notebook(state)
        if self.at_cell and state.environment and state.environment.kernel:
            use = (use_kernel(state.environment.kernel),)
            others = (Other(label=label, actions=opens), another)
            note = say("Switches the notebook with the failed cell to the kernel “{name}”.", name=name)
            return Footer(label=say("Use it in this notebook"), actions=use, note=note, others=others)
        note = say("Opens a first notebook on the kernel “{name}”.", name=name) if name else ""
        return Footer(label=label, actions=opens, note=note, others=(another,))


def draw_pack(state: State) -> Markup:
    """Return how JupyterLab's own menus speak Chinese, too; the style sheet shows it where they do not."""
    pythons = state.detected.pythons if state.detected else {}
    if language() != "zh_CN" or not (pythons.get("kernel") and pythons.get("server")):
        return html.NOTHING
    uv = (pythons["kernel"], "-m", "uv", "pip", "install", "--python", pythons["server"])
    text = say("JupyterLab's own menus can be Chinese, too: run this, then choose it under Settings, Language.")
    line = html.copyable(command_line((*uv, "jupyterlab-language-pack-zh-CN")))
    return tag("section", html.paragraph(text), line, class_="ptsa-pack")


def draw_done(state: State) -> Markup:
    """Return what works now, what was proved in one line, and whether the kernel must be restarted."""
    report, plan, found = state.report, state.plan, state.detection
    if report is None or plan is None or found is None:
        return html.NOTHING
    card = card_name(found.machine, plan.backend)
    works = say("PyTorch works on your {card}", card=card) if card else say("PyTorch works on your processor")
    title = works if report.usable else say("PyTorch is installed, but some checks failed")
    compared = sum(check.error is not None for check in report.checks if check.status in RIGHT)
    proof = ngettext(
        "{count} result was compared with NumPy's in double precision.",
        "{count} results were compared with NumPy's in double precision.",
        compared,
    )
    judged = html.paragraph(sentences((verdict(report), proof)))
    line = tag("p", plan_title(plan), class_="ptsa-machine")
    heading = tag("div", html.icon("ok" if report.usable else "warning"), html.heading(title), class_="ptsa-proved")
    kept = failure(state, state.environments.status)  # of the build that was to be kept, or no longer
    return heading + judged + line + draw_restart_warning(state) + kept


def draw_picture(picture: Picture, card: str) -> Markup:
    """Return the picture that the device computed, how long that took, and how much faster than the processor."""
    data = f"data:image/png;base64,{picture.png}"
    where = say("Drawn just now on your {card}", card=card) if card else say("Drawn just now on your processor")
    took = say("{points:,} points in {time}", points=picture.points, time=format_duration(picture.seconds))
    lines = [tag("h3", where), tag("p", took)]
    if picture.times is not None:
        times = say("{times} times as fast as your processor", times=format_number(picture.times))
        lines += [
            tag("p", tag("strong", times)),
            html.bar(min(1.0, picture.times), card),
            html.bar(min(1.0, 1 / picture.times), say("Processor"), kind="plain"),
        ]
    alt = say("A Julia set: a fractal of dark and light spirals")
    return tag("section", tag("img", src=data, alt=alt), *lines, class_="ptsa-card ptsa-picture")


def _open_notebook(state: State) -> tuple[OpenNotebook, ...]:
    """Return what opens a first notebook with the finished environment; () before that."""
    made, plan = state.environment, state.plan
    return (OpenNotebook(made=made, plan=plan),) if made and plan else ()


def _next_actions(state: State, *, opened: bool) -> list[html.Tile]:
    """Return cards for what can be done with the finished environment, with a tick for what was; [] before that."""
    made, plan = state.environment, state.plan
    if made is None or plan is None:
        return []

    def card(key: str, title: str, lead: str, sign: str, *, done: bool) -> html.Tile:
        return html.Tile(key, title, lead, sign, "good" if done else "", say("done") if done else "")

    added, saved = bool(state.adding and state.adding.installed), bool(state.exported.files)
    kinds = say("colleague, project, container, bug report")
    line, kept = EnvironmentFolder.terminal_line(made, plan), bool(state.is_kept)
    holds = say("pip and uv keep it; press to let go") if kept else say("later installations may replace PyTorch")
    whole = bool(state.verified and state.choices.level == "full")
    return [
        card(NOTEBOOK, say("A first notebook"), say("a fractal, and a network that learns"), "learn", done=opened),
        card(PACKAGES, say("Packages of your own"), say("with a preview of what changes"), "box", done=added),
        card(SAVE, say("Save the configuration"), kinds, "file", done=saved),
        html.Tile(KEEP, say("Keep this build"), holds, "lock", "good" if kept else "", say("on") if kept else ""),
        card(MEASURE, say("Check everything"), say("and measure the speed (about a minute)"), "ok", done=whole),
        html.Tile("terminal", say("Use it in a terminal"), say("copies the line to type"), "terminal", copy=line),
        html.Tile("vscode", say("Use it in VS Code"), say("copies the interpreter's path"), "code", copy=made.python),
    ]
