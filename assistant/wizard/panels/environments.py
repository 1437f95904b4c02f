"""My environments: which there are on this machine, how each is, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

import ipywidgets as widgets

from assistant.export import first_notebook, write_first_notebook
from assistant.host.folders import here, shortened
from assistant.i18n import as_typed, render, say, sentences
from assistant.markup import Markup, joined, tag
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.finding import Severity
from assistant.session.actions import Action, Begin, LookIn, Pick, Show
from assistant.session.environments import kernel_of, mendable
from assistant.session.session import Session
from assistant.session.state import Page, Phase, State, Task
from assistant.session.survey import EnvironmentSummary, Repair, Survey, kept_for_undo, megabytes
from assistant.wizard import html
from assistant.wizard.head import OPEN_NOTEBOOK, Footer, Other
from assistant.wizard.panels.base import PageView, log_view
from assistant.wizard.shared_widgets import Details, Drawing, EnvironmentRows, make


def draw_lead(state: State) -> Markup:
    """Write the heading, how the last task ended, and what the last change reported."""
    survey, phase = state.environments.survey, state.environments.status.phase
    waits = state.running is not None and not state.running.is_about_environments
    lead = say("The list comes when the work below is done.") if waits else say("Looking for environments …")
    if phase is Phase.FAILED:
        lead = ""
    if survey:
        lead = say(
            "Nothing in an environment is started until you press one of its buttons; "
            "before that, what you see is read from its files."
        )
    if survey and not survey.environments and phase is Phase.DONE:
        lead = say("No environments were found.")
    notes = joined(map(html.finding, survey.notes)) if survey else html.NOTHING
    known = survey.of(state.environments.picked) if survey else None
    told = draw_known(known) if known and known.checked and phase is Phase.DONE else html.NOTHING
    return html.heading(say("On this machine"), lead) + _failure(state) + notes + told


def draw_known(known: EnvironmentSummary) -> Markup:
    """Tell what a check found: that all is well, or each problem with its fixes."""
    size = say("{size} MB on disk.", size=known.size // 10**6) if known.size else ""
    if known.findings:
        title = tag("p", tag("strong", known.name), f": {size}" if size else "")
        return title + joined(map(html.finding, known.findings))
    text = say("{name}: {state}", name=known.name, state=known.state)
    return html.note(Severity.OK, f"{text} {size}".strip())


def draw_repair(state: State, repair: Repair) -> Markup:
    """Show what would change, what that mends and what it leaves as it is."""
    running = state.running is Task.REPAIR
    known = state.environments.survey.of(repair.path) if state.environments.survey else None
    name = known.name if known else Path(repair.path).name
    title = say("Mending {name} …", name=name) if running else say("What would change in {name}", name=name)
    moves = tag("ul", *(tag("li", move.words) for move in repair.difference.moves), class_="ptsa-moves")
    return joined(
        [
            html.heading(title, "" if running else say("Nothing has been changed yet.")),
            _failure(state),
            html.section(say("Packages"), moves),
            html.section(say("What this mends"), html.bullets([as_typed(one.text) for one in repair.mends], "ok")),
            html.section(say("What stays as it is"), joined(map(html.finding, repair.remains))),
            joined(map(html.finding, repair.difference.findings)),
        ]
    )


def _failure(state: State) -> Markup:
    status = state.environments.status
    if state.question and state.running:
        return html.note(Severity.WARNING, state.question)
    if status.phase is not Phase.FAILED:
        return html.NOTHING
    severity = Severity.INFO if status.exit_code == Cancelled.exit_code else Severity.ERROR
    return html.failure(status.message, status.hint, severity)


def caption(survey: Survey) -> str:
    """Say where was looked, and whether that was everywhere."""
    where = say(
        "Searched for: Jupyter kernels, virtual environments, conda, uv, "
        "Stability Matrix, ComfyUI, InvokeAI and others."
    )
    short = say("There are more folders than could be searched; name one below.") if survey.cut_short else ""
    return f"{where} {short}".strip()


def row_of(known: EnvironmentSummary) -> dict[str, object]:
    """Put what is known of an environment into words for its row."""
    buttons = [("check", say("Check"))] if not (known.own or known.unread) else []
    buttons += [("mend", say("Mend …"))] if mendable(known) else []
    buttons += [("undo", say("Undo"))] if known.undo and not known.others else []
    buttons += [("open", say("Open a notebook"))] if known.kernels and known.torch and not known.own else []
    buttons += [("remove", say("Remove …"))] if known.made and not (known.own or known.others) else []
    return {
        "path": known.path,
        "light": known.light.value,
        "word": render(known.light.word),
        "name": known.name,
        "keeper": render(known.keeper),
        "place": shortened(known.path),
        "torch": render(known.build),
        "python": f"Python {known.python}" if known.python else "",
        "state": as_typed(known.state),
        "buttons": buttons,
    }


class EnvironmentsPage(PageView):
    """The list, and in its place the difference that a change of one environment would make."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._removing = ""
        self.lead, self.difference = make(Drawing), make(Drawing)
        self.log = make(Details, title=say("The log"))
        self.rows = make(EnvironmentRows)
        self.rows.on_msg(self._on_rows)
        self.folder = make(
            widgets.Text,
            description=say("Look in another folder"),
            placeholder=say("a folder, or an environment"),
            continuous_update=False,
        )
        self.folder.observe(self._on_folder, "value")
        self._list = (self.lead, self.rows, self.folder)
        self._change = (self.difference, self.log)
        self.parts = self._list

    def follow(self, state: State) -> None:
        """Show the list, or the change that is offered or under way."""
        survey, repair = state.environments.survey or Survey(), state.environments.repair
        self.parts = self._change if repair else self._list
        self.lead.value = draw_lead(state)
        self.difference.value = draw_repair(state, repair) if repair else html.NOTHING
        self.log.draw(lambda: log_view(state.log, state.log_file))
        with self.rows.hold_sync():
            self.rows.headings = [say("Environment"), say("State"), "PyTorch", say("What is known"), say("Actions")]
            self.rows.caption = caption(survey)
            self.rows.rows = [row_of(one) for one in survey.environments]
            self.rows.held = state.held

    def footer(self, state: State) -> Footer:
        """Offer the change that is shown, the removal that was asked for, else another setup."""
        survey = state.environments.survey or Survey()
        known = survey.of(state.environments.picked)
        if state.environments.repair:
            size = megabytes(state.environments.repair.difference.download)
            load = say("{size:.1f} MB to download.", size=size) if size else say("Nothing has to be downloaded.")
            note = sentences((load, say("If anything fails, everything is restored; the change can be undone later.")))
            change, back = (Begin(task=Task.REPAIR),), Other(label=say("Not now"), actions=(Pick(path=""),))
            return Footer(label=say("Change these packages"), actions=change, note=note, others=(back,))
        if known and self._removing == known.path:
            warning = say("{path} and everything in it will be deleted.", path=known.path)
            keep = Other(label=say("Keep it"), actions=(Pick(path=""),))
            return Footer(label=say("Remove it"), actions=(Begin(task=Task.REMOVE),), note=warning, others=(keep,))
        another = (Show(page=Page.SETUP), *((Begin(task=Task.DETECT),) if state.environment else ()))
        again = Other(label=say("Look again"), actions=(Begin(task=Task.SURVEY),))
        if known and known.undo:
            undo = Other(label=say("Undo"), actions=(Pick(path=known.path), Begin(task=Task.UNDO)))
            drop = Other(label=say("Delete the old files"), actions=(Pick(path=known.path), Begin(task=Task.FORGET)))
            note = sentences((say("{name} was mended.", name=known.name), kept_for_undo(known.undo)))
            return Footer(label=say("Set up another"), actions=another, note=note, others=(undo, drop, again))
        return Footer(label=say("Set up another"), actions=another, others=(again,))

    def fields(self) -> tuple[widgets.Widget, ...]:
        """Return the field of the folder."""
        return (self.folder,)

    def close(self) -> None:
        """Free every model, those that are not shown now among them."""
        for widget in (*self._list, *self._change):
            widget.close()

    def _on_folder(self, change: dict[str, object]) -> None:
        folder = str(change["new"]).strip()
        if folder and not self._quiet:
            self._do(LookIn(folder=folder), Begin(task=Task.SURVEY))

    def _on_rows(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        path, press = str(message.get("path", "")), message.get("press")
        if message.get("refused") == OPEN_NOTEBOOK:
            self._write_notebook(message.get("detail"))
        survey = self.session.state.environments.survey
        known = survey.of(path) if survey else None
        if known is None:
            return
        if press == "open":
            self._open(known, message.get("view"))
            return
        self._removing = path if press == "remove" else ""
        tasks = {"check": Task.CHECK, "mend": Task.COMPARE, "undo": Task.UNDO}
        begun = (Begin(task=tasks[press]),) if isinstance(press, str) and press in tasks else ()
        self._do(Pick(path=path), *begun)

    def _open(self, known: EnvironmentSummary, view: object) -> None:
        """Let JupyterLab open a first notebook on the environment's kernel."""
        made, plan = kernel_of(known)
        detail = {"name": f"{known.name}.ipynb", "kernel": made.kernel, "notebook": first_notebook(made, plan)}
        self.rows.send({"event": OPEN_NOTEBOOK, "detail": {**detail, "path": known.path}, "view": view})

    def _write_notebook(self, detail: object) -> None:
        """Write the notebook beside this one, where nobody can open it, and say where it is."""
        path = str(detail.get("path", "")) if isinstance(detail, dict) else ""
        known = (self.session.state.environments.survey or Survey()).of(path)
        if known is None or not known.kernels:
            return
        made, plan = kernel_of(known)
        try:
            written = write_first_notebook(here(), made, plan)
            text = say(
                "The notebook {path} is ready; open it and choose the kernel “{name}”.", path=written, name=made.kernel
            )
            note = html.note(Severity.OK, text)
        except AssistantError as error:
            note = html.failure(error.message, error.hint)
        self.lead.value = draw_lead(self.session.state) + note

    def _do(self, *actions: Action) -> None:
        for action in actions:
            self.session.dispatch(action)
