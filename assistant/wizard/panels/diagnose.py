"""Something is wrong: the cause of a log or of what failed, on the user's own machine, and one button to mend it."""

from __future__ import annotations

from collections.abc import Callable

from assistant.i18n import Text, ngettext, render, say
from assistant.model.errors import AssistantError
from assistant.model.finding import Remedy
from assistant.model.record import replace
from assistant.model.visible import Markup, html_language, joined, tag, visible
from assistant.session.actions import Action, Begin, Choose, Edited, Mend, Paste, Show, blockers
from assistant.session.remediation import all_fixes, best_fix_name, fix_folder, help_for_first_cause
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.session.store import store_log
from assistant.wizard import html
from assistant.wizard.head import ButtonAction, Footer, Other
from assistant.wizard.panels.answer import LOOK, WHOSE, draw_aside, draw_causes, draw_remedy, draw_title, folder_name
from assistant.wizard.panels.base import AddonParts, PageView, log_view
from assistant.wizard.shared_widgets import Details, Drawing, LogBox, make

FIX = "fix"  # begins the key of a fix among the cards
SAMPLE = "sample"  # begins the key of a sample
SAMPLES = {  # for those who have no error at hand; each is what its program prints
    "numpy": "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0",
    "build": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "hip": "RuntimeError: HIP error: invalid device function",
}
# What the buttons of the doctor's list do.
LOOKS: dict[str, tuple[Action, ...]] = {
    "machine": (Begin(task=Task.DETECT),),
    "plan": (Show(page=Page.SETUP),),
    "environment": (Show(page=Page.ENVIRONMENTS),),
}
LABEL = 100  # chosen: characters of a fix that a small card shows


def make_footer(state: State) -> Footer:
    """Return the footer: to apply the best fix, or, if there is none, to look for the cause of what is in the box.

    The latter cannot be pressed while it is blocked, with the reason as its note. Beside either is the way back.
    """
    reasons = blockers(replace(state, running=None), Task.DIAGNOSE)
    back = (Other(label=say("Back"), actions=(Show(page=Page.SETUP),)),)
    name = "" if state.edited else best_fix_name(state)
    if name and not reasons:
        fix = all_fixes(state)[name].remedy
        instead = fix.plan if fix.plan and not fix.mends else None
        label = say("Change to {backend}", backend=instead.backend.title) if instead else say("Mend it")
        return Footer(label=label, actions=apply_actions(name, state), note=describe_fix(name, state), others=back)
    note = reasons[0] if reasons else say("What you give is read in this kernel and sent nowhere else.")
    actions = () if reasons else (Begin(task=Task.DIAGNOSE),)
    return Footer(label=say("Find the cause"), actions=actions, able=not reasons, note=note, others=back)


def apply_actions(name: str, state: State) -> tuple[Action, ...]:
    """Return the actions that apply a fix, by its name in `all_fixes`; () if it is not offered.

    A fix with a plan opens the setup's page with what it asks for, for the log's environment if that fits.
    """
    fix = all_fixes(state).get(name)
    if fix is None or not fix.offered:
        return ()
    if fix.remedy.plan is None:
        return (Mend(way=name), Begin(task=Task.MEND))
    plan, folder = fix.remedy.plan, fix_folder(fix, state)
    wish = Choose(request=replace(state.choices.request, backend=plan.backend, python=plan.python))
    return (*((Choose(target=folder),) if folder else ()), wish, Show(page=Page.SETUP))


def describe_fix(name: str, state: State) -> Text:
    """Return a sentence on what applying a fix, by its name in `all_fixes`, does; raise `KeyError` if there is none."""
    fix = all_fixes(state)[name]
    if fix.remedy.plan:
        folder = fix_folder(fix, state)
        text = (
            say("Plans PyTorch for {backend} in {folder}; nothing is changed before you press Install.")
            if folder
            else say("Plans PyTorch for {backend}; nothing is installed before you press Install.")
        )
        return text.format(backend=fix.remedy.plan.backend.title, folder=folder_name(folder))
    if fix.remedy.env:
        return say("Sets a variable in the kernel of this environment.")
    return say(
        "Changes the environment {name}, then checks it.",
        name=folder_name(fix.environment.path if fix.environment else ""),
    )


def fix_label(fix: Remedy) -> str:
    """Return a fix's sentence for its button, cut to `LABEL` characters."""
    text = visible(render(fix.text))
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


class WrongPage(PageView):
    """A place to give a log, what is wrong, the fixes, and folds of add-ons; all of it follows from the state."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.answer, self.lines, self.aside, self.samples = (make(Drawing) for _number in range(4))
        self.aside.add_class("ptsa-aside")
        self.box = LogBox(*_box_callbacks(session))
        self.others = make(Details)
        self.addons = AddonParts(session, Page.WRONG)
        # What the user came for stands first: what was looked at already, then the answer.
        answered = (self.answer, self.others, self.lines)
        self.parts = (*answered, self.aside, self.box, self.samples, *self.addons.parts)

    def follow(self, state: State) -> None:
        """Show what was looked at or the answer, the log as the state has it, the fixes, and the add-ons."""
        self.answer.value, self.aside.value = draw_title(state) + draw_causes(state), draw_aside(state)
        with self.box.hold_sync():
            self.box.words, self.box.language = _box_words(), html_language()
            self.box.shown = {name: getattr(state.pasted, name) for name in ("text", "tail", "size", "lines", "name")}
            self.box.busy = state.running in {Task.DIAGNOSE, Task.MEND}
        self._follow_ways(state)
        shown = state.running is Task.MEND or state.mended
        self.lines.value = log_view(state.log, state.log_file) if shown else html.NOTHING
        self.addons.update(state)
        fresh = not state.pasted.text and not state.failed_cell
        self.samples.value = draw_samples() if fresh else html.NOTHING

    def _follow_ways(self, state: State) -> None:
        """Show the fixes beside the first one: those that can be applied here as buttons, the others to be read."""
        count = len(help_for_first_cause(state).others)
        self.others.title = render(ngettext("Another fix ({count})", "Other fixes ({count})", count))
        self.others.draw(lambda: draw_ways(state))
        self.hidden = () if count else (self.others,)

    def pressed(self, key: str, state: State) -> tuple[ButtonAction, ...]:
        """Return what a card or a button does: another fix, a sample, whose log it is, a row of the doctor's list."""
        part, _colon, name = key.partition(":")
        if part == FIX:
            return apply_actions(name, state)
        if part == SAMPLE and name in SAMPLES:
            return (Paste(log=SAMPLES[name]), Begin(task=Task.DIAGNOSE))
        if part == WHOSE and name in {"same", "other"}:
            return (Paste(log=replace(state.pasted, whose=name)), Begin(task=Task.DIAGNOSE))
        if part == LOOK:
            return LOOKS.get(name, ())
        return self.addons.pressed(key)

    def footer(self, state: State) -> Footer:
        """Return the footer of `make_footer`."""
        return make_footer(state)


def draw_ways(state: State) -> Markup:
    """Return the fixes beside the first one: cards for those that a press applies here, the others to be read."""
    found = help_for_first_cause(state).others
    options = [
        html.Tile(f"{FIX}:{name}", fix_label(fix.remedy), describe_fix(name, state), "tools")
        for name, fix in found.items()
        if fix.offered
    ]
    rest = [draw_remedy(fix.remedy, name, state) for name, fix in found.items() if not fix.offered]
    return joined([html.cards(say("Other fixes that one press applies"), options), *rest])


def draw_samples() -> Markup:
    """Return a card for each sample of an error."""
    words = {"numpy": "compiled using NumPy 1.x", "build": "no kernel image", "hip": "invalid device function"}
    leads = {
        "numpy": say("two packages that do not go together"),
        "build": say("the build has no code for the card"),
        "hip": say("the same, on a Radeon"),
    }
    options = [html.Tile(f"{SAMPLE}:{key}", tag("code", words[key]), leads[key], "talk") for key in SAMPLES]
    return html.cards(say("No error at hand? See how it works"), options)


def _box_callbacks(session: Session) -> tuple[Callable[[], None], Callable[[bytes, str], str]]:
    """Return the functions that the box calls when its text was changed, and with a whole log that has arrived."""

    def edited() -> None:
        if not session.state.edited:
            session.dispatch(Edited())

    def arrived(data: bytes, name: str) -> str:
        """Store a log and dispatch it; return "", or why it cannot be taken."""
        try:
            session.dispatch(Paste(log=store_log(data, name)))
        except AssistantError as error:
            return " ".join(filter(None, (render(error.message), render(error.hint))))
        return ""

    return edited, arrived


def _box_words() -> dict[str, str]:
    """Return the texts of the box, those with placeholders for the browser to fill."""
    return {
        "label": say("Paste an error message or a whole log here, or drop a log file."),
        "choose": say("Choose a file"),
        "clear": say("Clear"),
        "reading": say("Reading …"),
        "sending": say("Handing it to the kernel …"),
        "sent": say("{done} of {size} handed to the kernel"),
        "gap": say("the middle is not shown, but it is read, too"),
        "ends": say("{size}, {lines} lines: the beginning and the end are shown"),
        "one": say("{size} in one line: the beginning and the end are shown"),
        "too_large": say("This file is larger than 500 MB. Give only the part with the error."),
    }
