"""The setup on one page: the choice and one button, then the work, then what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import ipywidgets as widgets

from assistant.detect import Fact, check_fact, facts_to_set
from assistant.host.files import full_path
from assistant.host.live import LiveHost
from assistant.i18n import _, render, say, sentences
from assistant.model.errors import AssistantError, BadInput
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.model.plan import KERNEL_TARGET, Backend, Request, check_requirement, name_of
from assistant.model.record import replace
from assistant.model.report import Step
from assistant.model.visible import Markup, tag
from assistant.plan import card_name
from assistant.session.actions import Action, Begin, Choose, Resume, Simulate, blockers
from assistant.session.session import Session
from assistant.session.state import Choices, Page, Stage, State, Task, find_stage, has_no_plan, is_unresolved
from assistant.session.steps import is_kernel_ours
from assistant.session.store import (
    Saved,
    continuation_remarks,
    first_step_not_done,
    is_worth_continuing,
    why_not_continuable,
)
from assistant.views import plan_title
from assistant.wizard import html
from assistant.wizard.head import ButtonAction, Footer, Other, titles
from assistant.wizard.panels.base import AddonParts, PageView, Part, close_all, log_view
from assistant.wizard.panels.choice import BUILD, draw_card, draw_ready_to_install, draw_why, machine_options
from assistant.wizard.panels.install import (
    Done,
    Receipt,
    draw_commands,
    draw_done,
    draw_failed,
    draw_picture,
    draw_ring,
    draw_working,
    press_effect,
    retry_footer,
)
from assistant.wizard.shared_widgets import Details, Drawing, Fold, make


class SetupPage(PageView):
    """What the machine gets, one button, and all else folded away."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._at_cell = session.state.failed_cell
        self.lead, self.aside, self.offer = make(Drawing), make(Drawing), Offer(session)
        self.aside.add_class("ptsa-aside")
        self.receipt = Receipt()
        self.changes = Changes(session)
        self.addons = AddonParts(session, Page.SETUP)
        self.why = make(Details, title=_("Why this one, and what else would work"))
        self.commands = make(Details, title=_("The exact commands and the folder"))
        self.log = make(Details, title=_("The log"))
        addons, changes = self.addons.parts, (self.changes.fold,)
        self._views = {
            Stage.LOOKING: changes,
            Stage.READY: (*addons, self.why, self.commands, *changes),
            Stage.WORKING: (self.log,),
            Stage.FAILED: (self.log, *changes),
        }
        self._unplanned = (*addons, self.log, *changes)
        self._unresolved = (*addons, self.why, self.log, *changes)
        self._folded = (*addons, self.why, self.commands, self.log, *changes)
        self.parts = self._choice = (self.lead, self.aside, *self._folded)

    @cached_property
    def done(self) -> Done:
        """What comes after a setup; made when the first one is finished."""
        return Done(self.session, at_cell=self._at_cell)

    def follow(self, state: State) -> None:
        """Show the widgets of the state's stage, and in them the plan, the commands, the log and the controls."""
        now = find_stage(state)
        self.parts = self._choice
        if now is Stage.DONE:
            self.done.follow(state)
            self.parts = (self.lead, self.aside, *self.done.parts, self.log)
        self.offer.draw(state)
        failed = self._unplanned if has_no_plan(state) else self._unresolved if is_unresolved(state) else None
        self.hidden = set(self._folded).difference(failed or self._views.get(now, self._folded))
        self.receipt.follow(state)
        lead = draw_working(state, self.receipt) if now is Stage.WORKING else DRAWN[now](state)
        self.lead.value = lead + (self.offer.drawn if now in {Stage.READY, Stage.FAILED} else html.NOTHING)
        self.aside.value = self._draw_aside(now, state)
        if state.planning and state.plan:
            planning, plan = state.planning, state.plan
            self.why.draw(lambda: draw_why(planning, plan))
            self.commands.draw(lambda: draw_commands(state))
        self.log.draw(lambda: log_view(state.log, state.log_file))
        self.addons.update(state)
        with self.changes.quiet():
            self.changes.follow(state)

    def _draw_aside(self, now: Stage, state: State) -> Markup:
        """Return what stands at the right: the progress, the picture that was drawn on the device, else the machine."""
        if now is Stage.WORKING:
            return draw_ring(state)
        made, plan, found = state.environment, state.plan, state.detection
        if now is not Stage.DONE or made is None or plan is None or found is None:
            return draw_card(state)
        self.session.draw_picture()
        picture = state.drawn.picture if state.drawn and state.drawn.path == made.path else None
        return draw_picture(picture, card_name(found.machine, plan.backend)) if picture else draw_card(state)

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
        label = say("Use it") if state.preview and state.preview.ready else say("Install")
        return Footer(label=label, actions=actions, able=not reasons, note=press_effect(state), cancel=busy)

    def pressed(self, key: str, state: State) -> tuple[ButtonAction, ...]:
        """Return the choice of a build, and what add-ons, the form and the cards of a finished setup answer."""
        part, _colon, place = key.partition(":")
        if part == BUILD and place.isdecimal():
            return (Choose(plan=int(place)),)
        return (
            *self.offer.pressed(key),
            *self.addons.pressed(key),
            *self.changes.pressed(key, state),
            *(self.done.pressed(key, state) if find_stage(state) is Stage.DONE else ()),
        )

    def note(self, action: ButtonAction) -> None:
        """Note what was done with the finished setup."""
        if find_stage(self.session.state) is Stage.DONE:
            self.done.note(action)

    def close(self) -> None:
        """Free every model, those that are not shown now among them."""
        done = self.done.parts if "done" in vars(self) else ()
        for widget in (*self._choice, *done, self.changes.fault):
            close_all(widget)


DRAWN = {
    Stage.LOOKING: draw_ready_to_install,
    Stage.READY: draw_ready_to_install,
    Stage.FAILED: draw_failed,
    Stage.DONE: draw_done,
}


OFFER = "offer"  # begins the keys of what is offered for a saved setup


class Offer:
    """Offers to go on with the setup that was saved, until the user has gone on by himself."""

    def __init__(self, session: Session) -> None:
        self.drawn = html.NOTHING
        self._session, self.saved = session, session.read_saved()
        self.installed = False  # whether what is offered stands already, so that going on is what most will want

    def draw(self, state: State) -> None:
        """Draw how far the saved setup came and the buttons to go on, or why that is impossible here.

        Draw nothing if nothing is worth continuing, on a simulated machine, and for good once there is an environment;
        and no buttons if the setup is finished and nothing else was chosen: the footer has them.
        """
        if state.environment:
            self.saved = None
        saved, found = self.saved, state.detection
        worth = saved and (saved.state is None or is_worth_continuing(saved.state))
        self.installed, self.drawn = False, html.NOTHING
        if not (worth and saved and found) or state.machine or state.environment:
            return
        reason = why_not_continuable(saved, found.machine)
        finished = saved.state is not None and first_step_not_done(saved.state) is Step.EXPORT
        untouched = not state.choices.target and not state.choices.overrides and state.choices.request == Request()
        self.installed = bool(finished and untouched and not reason)
        lines = [_progress_text(saved), *([reason] if reason else continuation_remarks(saved))]
        go_on = say("Use it") if finished else say("Continue from there")
        buttons = [
            *([] if reason or self.installed else [html.button(go_on, f"{OFFER}:resume")]),
            *([] if saved.in_use or self.installed else [html.button(say("Start over"), f"{OFFER}:drop")]),
        ]
        row = tag("div", *buttons, class_="ptsa-buttons") if buttons else html.NOTHING
        self.drawn = html.note(Severity.WARNING if reason else Severity.INFO, sentences(lines), row)

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

    def pressed(self, key: str) -> tuple[Resume, ...]:
        """Return what resumes the saved setup, or drop that setup, as the button `key` says."""
        if key not in {f"{OFFER}:resume", f"{OFFER}:drop"}:
            return ()
        actions, self.saved = self.actions if key == f"{OFFER}:resume" else (), None
        if not actions:
            self._session.drop()
        return actions


def _progress_text(saved: Saved) -> str:
    """Return a sentence on how far a saved setup came."""
    if saved.state is None:
        return say("A setup was saved on {when}.", when=saved.at)
    step = first_step_not_done(saved.state)
    if step is Step.EXPORT:
        return say("The setup of {when} is finished.", when=saved.at)
    return say("A setup of {when} got as far as {step}.", when=saved.at, step=titles()[step])


def _backends() -> list[tuple[str, str]]:
    return [(say("Choose for me"), ""), *((backend.title, backend.value) for backend in Backend)]


def _builds() -> list[tuple[str, bool]]:
    return [(say("Releases"), False), (say("Nightly, little tested"), True)]


FACT = "fact"  # begins the key of a fact among the cards
AGAIN = "again"  # the key of the button that looks at the machine again


class Refused(NamedTuple):
    """A field whose text is refused, why, and what was asked for then."""

    field: widgets.Text
    error: AssistantError
    asked: tuple[str, Choices]


def _asked_for(state: State) -> tuple[str, Choices]:
    return state.machine, state.choices


class Changes(Part):
    """The controls in a box, which are made when its fold is opened; each change makes the plan anew."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._settable: tuple[Fact, ...] = ()
        self._refused: Refused | None = None
        self.fault = make(Drawing)
        self.fold = make(Fold, title=_("Change something: machine, version, Python, folder, nightly builds"))
        self.box = self.fold.box
        self.fold.observe(lambda _change: self._open(), "unfolded")

    def _open(self) -> None:
        """Make and connect the controls and show the present state in them, unless that was done before."""
        if self.box.children:
            return
        self.machine = make(widgets.Dropdown, options=machine_options, description=_("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = make(widgets.Dropdown, description=_("Fact to change"))
        self.fact.observe(lambda _change: self._show_example(), "value")
        self.fact_value = make(widgets.Text, description=_("New value"), continuous_update=False)
        self.on_text(self.fact_value, self._choose_fact)
        self.below = make(Drawing)
        self.choice = make(widgets.Dropdown, description=_("PyTorch build"))
        self.on_value(self.choice, lambda index: Choose(plan=index or 0))
        self.backend = make(widgets.Dropdown, options=_backends, description=_("Backend"))
        self.on_value(self.backend, lambda name: self._wish(backend=Backend(name) if name else None))
        self.builds = make(widgets.Dropdown, options=_builds, description=_("Builds"))
        self.on_value(self.builds, lambda nightly: self._wish(nightly=nightly))
        self.python = make(
            widgets.Text,
            description=_("Python"),
            placeholder=_("chosen for you"),
            continuous_update=False,
        )
        self.on_value(self.python, lambda version: self._wish(python=version.strip() or None))
        self.release = make(
            widgets.Text,
            description=_("PyTorch release"),
            placeholder=_("the newest that fits"),
            continuous_update=False,
        )
        self.on_text(self.release, self._choose_release)
        self.where = make(widgets.Dropdown, options=self._places, description=_("Where"))
        self.on_value(self.where, lambda where: Choose(target=where))
        self.target = make(
            widgets.Text,
            description=_("Folder"),
            placeholder=_("a folder of its own, chosen for you"),
            continuous_update=False,
        )
        self.on_text(self.target, self._choose_target)
        self._controls = (
            self.release,
            self.choice,
            self.backend,
            self.builds,
            self.python,
            self.where,
            self.target,
            self.machine,
            self.fact,
            self.fact_value,
            self.below,
        )
        self.box.children = self._controls
        with self.quiet():
            self.follow(self.session.state)

    def _places(self) -> list[tuple[str, str]]:
        """Return where to install; the assistant's own environment is no such place."""
        kernel = [] if is_kernel_ours(self.session.state) else [(say("The environment of this kernel"), KERNEL_TARGET)]
        return [(say("In the folder below"), ""), *kernel]

    def _wish(self, **changed: Any) -> Choose:  # noqa: ANN401 - fields of the request
        return Choose(request=replace(self.session.state.choices.request, **changed))

    def on_text(self, field: widgets.Text, action: Callable[[str], Choose | None]) -> None:
        """Dispatch the `action` that a typed text makes, if any; say below its field why a text is refused."""

        def typed(change: dict[str, str]) -> None:
            if self._quiet or Part.rewording:
                return
            self._refused = None
            try:
                made = action(change["new"].strip())
            except AssistantError as error:
                self._refused = Refused(field, error, _asked_for(self.session.state))
            else:
                if made:
                    self.session.dispatch(made)
            self._show_refusal()

        field.observe(typed, "value")

    def _choose_release(self, release: str) -> Choose:
        """Return the wish for a release of PyTorch, "" for the newest that fits; raise `BadInput` if it is none."""
        pins = (check_requirement(f"torch=={release}"),) if release else ()
        others = [pin for pin in self.session.state.choices.request.pins if name_of(pin) != "torch"]
        return self._wish(pins=(*others, *pins))

    def _choose_target(self, target: str) -> Choose:
        """Return the choice of the environment's folder, "" for the usual one; raise `AssistantError` if it cannot be.

        It has to be a full path, on a disk with room for the plan, as far as both are known.
        """
        path = str(full_path(target, relative=False)) if target else ""
        plan, free = self.session.state.plan, LiveHost().facts("disk", path).get("free") if path else None
        if plan and plan.disk_gb and isinstance(free, int) and free < plan.disk_gb * 1e9:
            text = _("{path} has {free:.1f} GB free, and this needs about {need:.1f} GB.")
            raise BadInput(
                text.format(path=path, free=free / 1e9, need=plan.disk_gb),
                hint=_("Free some space, or choose a folder on another disk."),
            )
        return Choose(target=path)

    def _choose_fact(self, value: str) -> Choose | None:
        """Return the chosen fact of the machine as set by hand; raise `AssistantError` if the value does not fit it."""
        if not (self.fact.value and value):
            return None
        check_fact(self.fact.value, value)
        return Choose(overrides={**self.session.state.choices.overrides, self.fact.value: value})

    def _show_refusal(self) -> None:
        """Show the controls and, below the field whose text is refused, why it is."""
        if self._refused is None:
            self.box.children = self._controls
            return
        field, error, _asked = self._refused
        self.fault.value = html.failure(error.message, error.hint)
        below = self._controls.index(field) + 1
        self.box.children = (*self._controls[:below], self.fault, *self._controls[below:])

    def pressed(self, key: str, state: State) -> tuple[Action, ...]:
        """Return what looks again, or undoes the setting by hand of a fact: detection's own value then counts again."""
        if key == AGAIN:
            return (Begin(task=Task.DETECT),)
        part, _colon, fact = key.partition(":")
        left = {name: value for name, value in state.choices.overrides.items() if name != fact}
        return (Choose(overrides=left),) if part == FACT else ()

    def _show_example(self) -> None:
        facts = {fact.name: fact for fact in self._settable}
        fact = facts.get(self.fact.value or "")
        self.fact_value.placeholder = ", ".join(fact.values) or fact.example if fact else ""

    def follow(self, state: State) -> None:
        """Show the values of this state in the controls, if they have been made.

        A text that was refused stays, with the reason, until something else is chosen.
        """
        if not self.box.children:
            return
        if self._refused and self._refused.asked != _asked_for(state):
            self._refused = None
        if self._refused is None:
            self._show_choices(state)
        self._show_facts(state)
        self._show_refusal()

    def _show_choices(self, state: State) -> None:
        """Show what is chosen; no fact is being typed then."""
        plans = state.planning.plans if state.planning else ()
        options = [(render(plan_title(plan)), index) for index, plan in enumerate(plans)]
        if list(self.choice.options) != options:
            self.choice.options = options
        if options:
            self.choice.value = state.choices.plan
        request = state.choices.request
        self.backend.value = request.backend.value if request.backend else ""
        self.builds.value, self.python.value = request.nightly, request.python or ""
        asked = [pin.partition("==")[2] for pin in request.pins if name_of(pin) == "torch"]
        self.release.value = asked[-1] if asked else ""
        self.machine.value = state.machine
        kernel = state.choices.target == KERNEL_TARGET
        self.where.value, self.target.value = (KERNEL_TARGET, "") if kernel else ("", state.choices.target)
        self.target.disabled = kernel
        self.fact_value.value = ""

    def _show_facts(self, state: State) -> None:
        """Show which facts can be set and which have been set by hand."""
        machine = state.detection.machine if state.detection else Machine()
        self._settable = tuple(facts_to_set(machine))
        options = [(render(fact.label), fact.name) for fact in self._settable]
        if list(self.fact.options) != options:
            chosen = self.fact.value
            self.fact.options = options
            if chosen in {name for _label, name in options}:
                self.fact.value = chosen
        self._show_example()
        labels = {fact.name: render(fact.label) for fact in self._settable}
        cards = [
            html.Tile(key=f"{FACT}:{name}", title=f"{labels.get(name, name)}: {value}", lead=say("press to undo"))
            for name, value in state.choices.overrides.items()
        ]
        again = html.button(say("Look at the machine again"), AGAIN)
        self.below.value = html.cards(say("Set by you"), cards) + again
