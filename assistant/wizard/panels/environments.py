"""My environments: which there are on this machine, how each is, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

import ipywidgets as widgets

from assistant.host.files import shorten_path
from assistant.i18n import _, as_typed, render, say, sentences
from assistant.model.finding import Severity
from assistant.model.visible import Markup, joined, tag
from assistant.session.actions import Action, Begin, LookIn, Pick, Show
from assistant.session.environments import is_mendable, kernel_and_plan
from assistant.session.session import Session
from assistant.session.state import EnvironmentSummary, Page, Phase, Repair, State, Survey, Task, megabytes, undo_notice
from assistant.wizard import html
from assistant.wizard.head import ButtonAction, Footer, OpenNotebook, Other
from assistant.wizard.panels.base import PageView, failure, log_view
from assistant.wizard.panels.choice import format_megabytes
from assistant.wizard.shared_widgets import Details, Drawing, make


def draw_lead(state: State) -> Markup:
    """Return heading, a task's failure, notes on the search, and what a check of the chosen environment found."""
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
    summary = survey.summary_at(state.environments.picked) if survey else None
    checked = draw_checked(summary) if summary and summary.checked and phase is Phase.DONE else html.NOTHING
    return html.heading(say("On this machine"), lead) + failure(state, state.environments.status) + notes + checked


def draw_checked(summary: EnvironmentSummary) -> Markup:
    """Return what a check found: each problem with its fixes, or a note that all is well, and the size on disk."""
    size = say("{size} MB on disk.", size=summary.size // 10**6) if summary.size else ""
    if summary.findings:
        title = tag("p", tag("strong", summary.name), f": {size}" if size else "")
        return title + joined(map(html.finding, summary.findings))
    text = say("{name}: {state}", name=summary.name, state=summary.state)
    return html.note(Severity.OK, f"{text} {size}".strip())


def draw_repair(state: State, repair: Repair) -> Markup:
    """Return which packages would change or are changing, which problems that solves, and which remain."""
    running = state.running is Task.REPAIR
    summary = state.survey.summary_at(repair.path)
    name = summary.name if summary else Path(repair.path).name
    title = say("Mending {name} …", name=name) if running else say("What would change in {name}", name=name)
    moves = tag("ul", *(tag("li", move.words) for move in repair.difference.moves), class_="ptsa-moves")
    return joined(
        [
            html.heading(title, "" if running else say("Nothing has been changed yet.")),
            failure(state, state.environments.status),
            html.section(say("Packages"), moves),
            html.section(say("What this mends"), html.bullets([as_typed(one.text) for one in repair.mends], "ok")),
            html.section(say("What stays as it is"), joined(map(html.finding, repair.remains))),
            joined(map(html.finding, repair.difference.findings)),
        ]
    )


def search_caption(survey: Survey) -> str:
    """Return what was searched for, and that there are more folders if the search was cut short."""
    where = say(
        "Searched for: Jupyter kernels, virtual environments, conda, uv, "
        "Stability Matrix, ComfyUI, InvokeAI and others."
    )
    short = say("There are more folders than could be searched; name one below.") if survey.cut_short else ""
    return f"{where} {short}".strip()


def draw_environments(survey: Survey) -> Markup:
    """Return a card for each environment, below what was searched for."""
    cards = [_draw_environment(one) for one in survey.environments]
    return (
        html.lead_line(search_caption(survey)) + tag("div", *cards, class_="ptsa-environments")
        if cards
        else html.NOTHING
    )


def _draw_environment(one: EnvironmentSummary) -> Markup:
    """Return an environment's card: its health, name, keeper and place, what it holds, its size, and its buttons."""
    size = format_megabytes(one.size / 10**6) if one.size else ""
    holds = " · ".join(
        filter(None, (f"PyTorch {render(one.build)}", f"Python {one.python}" if one.python else "", size))
    )
    return tag(
        "article",
        html.light(one.light.value, one.light.word),
        tag("h3", one.name),
        tag("p", f"{render(one.keeper)} · {shorten_path(one.path)}", class_="ptsa-lead"),
        tag("p", holds, class_="ptsa-env-holds"),
        tag("p", as_typed(one.state)),
        tag("div", *_buttons(one), class_="ptsa-buttons"),
        class_=f"ptsa-env ptsa-env-{one.light.value}",
    )


def _buttons(one: EnvironmentSummary) -> list[Markup]:
    """Return a button for each thing that can be done with an environment."""
    buttons = [("check", say("Check it"))] if not (one.own or one.unread) else []
    buttons += [("mend", say("Mend …"))] if is_mendable(one) else []
    buttons += [("undo", say("Undo"))] if one.undo and not one.others else []
    if one.torch and not (one.own or one.others or one.unread):
        buttons += [("keep", say("Let go of this build") if one.keeps else say("Keep this build"))]
    buttons += [("open", say("Open a notebook"))] if one.kernels and one.torch and not one.own else []
    buttons += [("remove", say("Remove …"))] if one.made and not (one.own or one.others) else []
    return [html.button(words, f"{press}:{one.path}", named=f"{words} {one.name}") for press, words in buttons]


class EnvironmentsPage(PageView):
    """The list, and in its place the difference that a change of one environment would make."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._removing = ""
        self.lead, self.rows = make(Drawing), make(Drawing)
        self.log = make(Details, title=_("The log"))
        self.folder = make(
            widgets.Text,
            description=_("Look in another folder"),
            placeholder=_("a folder, or an environment"),
            continuous_update=False,
        )
        self.folder.observe(self._on_folder, "value")
        self.parts = (self.lead, self.rows, self.folder, self.log)

    def follow(self, state: State) -> None:
        """Show the list or, in its place, the change that is offered or under way."""
        survey, repair = state.survey, state.environments.repair
        self.hidden = (self.rows, self.folder) if repair else (self.log,)
        self.lead.value = draw_repair(state, repair) if repair else draw_lead(state)
        self.log.draw(lambda: log_view(state.log, state.log_file))
        self.rows.value = draw_environments(survey)

    def footer(self, state: State) -> Footer:
        """Return the footer: to make the change that is shown, to remove what was asked for, else to set up another.

        Beside the latter is another search, and if the chosen environment's last change can be undone, that, and
        deleting what is stored for it.
        """
        summary = state.survey.summary_at(state.environments.picked)
        if state.environments.repair:
            size = megabytes(state.environments.repair.difference.download)
            load = say("{size:.1f} MB to download.", size=size) if size else say("Nothing has to be downloaded.")
            note = sentences((load, say("If anything fails, everything is restored; the change can be undone later.")))
            change, back = (Begin(task=Task.REPAIR),), Other(label=say("Not now"), actions=(Pick(path=""),))
            return Footer(label=say("Change these packages"), actions=change, note=note, others=(back,))
        if summary and self._removing == summary.path:
            warning = say("{path} and everything in it will be deleted.", path=summary.path)
            keep = Other(label=say("Keep it"), actions=(Pick(path=""),))
            return Footer(label=say("Remove it"), actions=(Begin(task=Task.REMOVE),), note=warning, others=(keep,))
        another = (Show(page=Page.SETUP), *((Begin(task=Task.DETECT),) if state.environment else ()))
        again = Other(label=say("Look again"), actions=(Begin(task=Task.SURVEY),))
        if summary and summary.undo:
            undo = Other(label=say("Undo"), actions=(Pick(path=summary.path), Begin(task=Task.UNDO)))
            drop = Other(label=say("Delete the old files"), actions=(Pick(path=summary.path), Begin(task=Task.FORGET)))
            note = sentences((say("{name} was mended.", name=summary.name), undo_notice(summary.undo)))
            return Footer(label=say("Set up another"), actions=another, note=note, others=(undo, drop, again))
        return Footer(label=say("Set up another"), actions=another, others=(again,))

    def _on_folder(self, change: dict[str, object]) -> None:
        folder = str(change["new"]).strip()
        if folder and not self._quiet:
            self._do(LookIn(folder=folder), Begin(task=Task.SURVEY))

    def pressed(self, key: str, state: State) -> tuple[ButtonAction, ...]:
        """Return what the button of an environment does; a press of Remove only asks for confirmation."""
        press, _colon, path = key.partition(":")
        summary = state.survey.summary_at(path)
        if summary is None:
            return ()
        if press == "open":
            made, plan = kernel_and_plan(summary)
            return (OpenNotebook(made=made, plan=plan, name=f"{summary.name}.ipynb"),)
        self._removing = path if press == "remove" else ""
        tasks = {"check": Task.CHECK, "mend": Task.COMPARE, "undo": Task.UNDO, "keep": Task.KEEP}
        return (Pick(path=path), *((Begin(task=tasks[press]),) if press in tasks else ()))

    def _do(self, *actions: Action) -> None:
        for action in actions:
            self.session.dispatch(action)
