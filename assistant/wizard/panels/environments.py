"""My environments: what stands on this machine, how it is, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

import ipywidgets as widgets

from assistant.host.folders import shortened
from assistant.i18n import as_typed, render, say, sentences
from assistant.markup import Markup, joined, tag
from assistant.model.errors import Cancelled
from assistant.model.finding import Severity
from assistant.session.actions import Action, Begin, LookIn, Pick, Show
from assistant.session.session import Session
from assistant.session.state import Page, Phase, State, Task
from assistant.session.survey import Known, Repair, Survey, kept_for_undo, move_words
from assistant.session.wanted import mendable
from assistant.wizard import html
from assistant.wizard.footer import Footer, Other
from assistant.wizard.panels.base import PageView, log_view
from assistant.wizard.shared_widgets import Drawing, EnvironmentRows, Fold, make

EVENT = "ptsa-open-notebook"  # JupyterLab's extension opens what comes with it


class EnvironmentsPage(PageView):
    """The list, and in its place the difference that a change of one environment would make."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._removing = ""
        self.lead, self.difference, self.log = make(Drawing), make(Drawing), make(Drawing)
        self.rows = make(EnvironmentRows)
        self.rows.on_msg(self._on_rows)
        self.folder = make(
            widgets.Text,
            description=say("Look in another folder"),
            placeholder=say("a folder, or an environment"),
            continuous_update=False,
        )
        self.folder.observe(self._on_folder, "value")
        self.fold = make(Fold, title=say("What is being done (log)"))
        self._list = (self.lead, self.rows, self.folder)
        self._change = (self.difference, self.fold, self.log)
        self.parts = self._list

    def follow(self, state: State) -> None:
        """Show the list, or the change that is offered or under way."""
        survey = state.survey or Survey()
        self.parts = self._change if state.repair else self._list
        self.lead.value = draw_lead(state)
        self.difference.value = draw_repair(state, state.repair) if state.repair else html.NOTHING
        self.log.value = log_view(state.log, state.log_file)
        with self.rows.hold_sync():
            self.rows.headings = [say("Environment"), say("State"), "PyTorch", say("What is known"), say("Actions")]
            self.rows.caption = _caption(survey)
            self.rows.rows = [_row(one) for one in survey.environments]
            self.rows.held = bool(state.running and not state.running.only_reads)

    def footer(self, state: State) -> Footer:
        """Offer the change that is shown, the removal that was asked for, else another setup."""
        survey = state.survey or Survey()
        known = survey.of(state.picked)
        if state.repair:
            size = state.repair.difference.download / 1e6
            load = say("{size:.1f} MB to download.", size=size) if size else say("Nothing has to be downloaded.")
            note = sentences((load, say("If anything fails, all is restored; later it can be undone.")))
            change, back = (Begin(task=Task.REPAIR),), Other(label=say("Not now"), actions=(Pick(path=""),))
            return Footer(label=say("Change these packages"), actions=change, note=note, others=(back,))
        if known and self._removing == known.path:
            warning = say("{path} and all that is in it will be deleted.", path=known.path)
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
        survey = self.session.state.survey
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

    def _open(self, known: Known, view: object) -> None:
        """Let JupyterLab open a notebook on the environment's kernel."""
        detail = {"name": f"{known.name}.ipynb", "kernel": known.kernels[0], "notebook": _notebook(known)}
        self.rows.send({"event": EVENT, "detail": detail, "view": view})

    def _do(self, *actions: Action) -> None:
        for action in actions:
            self.session.dispatch(action)


def draw_lead(state: State) -> Markup:
    """Write the heading, how the last task ended, and what the last change reported."""
    survey = state.survey
    lead = say("Looking for environments …")
    if survey:
        lead = say("How each stands is read off its files; nothing in it is started before you press Check or Mend.")
    if survey and not survey.environments and state.errand.phase is Phase.DONE:
        lead = say("No environments were found.")
    notes = joined(map(html.finding, survey.notes)) if survey else html.NOTHING
    known = survey.of(state.picked) if survey else None
    told = draw_known(known) if known and known.checked and state.errand.phase is Phase.DONE else html.NOTHING
    return html.heading(say("On this machine"), lead) + _failure(state) + notes + told


def draw_known(known: Known) -> Markup:
    """Tell what a check found: that all is well, or each problem with its fixes."""
    size = say("{size} MB on the disk.", size=known.size // 10**6) if known.size else ""
    if known.findings:
        title = tag("p", tag("strong", known.name), f": {size}" if size else "")
        return title + joined(map(html.finding, known.findings))
    text = say("{name}: {state}", name=known.name, state=known.state)
    return html.note(Severity.OK, f"{text} {size}".strip())


def draw_repair(state: State, repair: Repair) -> Markup:
    """Show what would change, what that mends and what it leaves as it is."""
    running = state.running is Task.REPAIR
    known = state.survey.of(repair.path) if state.survey else None
    name = known.name if known else Path(repair.path).name
    title = say("Mending {name} …", name=name) if running else say("What would change in {name}", name=name)
    moves = tag("ul", *(tag("li", move_words(move)) for move in repair.difference.moves), class_="ptsa-moves")
    return joined(
        [
            html.heading(title, "" if running else say("Nothing has been changed yet.")),
            _failure(state),
            html.section(say("Packages"), moves),
            html.section(say("This mends"), html.bullets([as_typed(one.text) for one in repair.mends], "ok")),
            html.section(say("This stays as it is"), joined(map(html.finding, repair.remains))),
            joined(map(html.finding, repair.difference.findings)),
        ]
    )


def _failure(state: State) -> Markup:
    errand = state.errand
    if state.question and state.running:
        return html.note(Severity.WARNING, state.question)
    if errand.phase is not Phase.FAILED:
        return html.NOTHING
    severity = Severity.INFO if errand.exit_code == Cancelled.exit_code else Severity.ERROR
    return html.failure(errand.message, errand.hint, severity)


def _caption(survey: Survey) -> str:
    """Say where was looked, and whether that was everywhere."""
    where = say(
        "Looked for: Jupyter kernels, virtual environments, conda, uv, Stability Matrix, ComfyUI, InvokeAI and others."
    )
    short = say("There are more folders than were searched; name one below.") if survey.cut_short else ""
    return f"{where} {short}".strip()


def _row(known: Known) -> dict[str, object]:
    """Put what is known of an environment into words for its row."""
    buttons = [("check", say("Check"))] if not (known.own or known.unread) else []
    buttons += [("mend", say("Mend …"))] if mendable(known) else []
    buttons += [("undo", say("Undo"))] if known.undo else []
    buttons += [("open", say("Open"))] if known.kernels and not known.own else []
    buttons += [("remove", say("Remove …"))] if known.made and not known.own else []
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


def _notebook(known: Known) -> dict[str, object]:
    """Write a notebook of one cell, on the environment's kernel."""
    code = "import torch\n\nprint(torch.__version__)\n" if known.torch else "import sys\n\nprint(sys.version)\n"
    cell: dict[str, object] = {"cell_type": "code", "id": "first", "metadata": {}, "source": code}
    cell |= {"outputs": [], "execution_count": None}
    spec = {"name": known.kernels[0], "display_name": known.kernels[0], "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": spec}, "cells": [cell]}
