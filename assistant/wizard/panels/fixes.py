"""What the footer offers where something is wrong: to look for the cause, or to apply the fix to begin with."""

from __future__ import annotations

from assistant.i18n import Text, render, say
from assistant.model.finding import Remedy
from assistant.model.record import replace
from assistant.model.visible import visible
from assistant.session.actions import Action, Aim, Begin, Mend, Show, Wish
from assistant.session.answer import best, goes_into, offered
from assistant.session.reducer import blockers
from assistant.session.remediation import environment_of
from assistant.session.state import Page, State, Task
from assistant.wizard.footer import Footer, Other
from assistant.wizard.panels.answer import folder_name

LABEL = 100  # chosen: characters of a fix that a small card shows


def footer_of(state: State) -> Footer:
    """Offer to mend what was found, or to look for the cause of what is in the box."""
    reasons = blockers(replace(state, running=None), Task.DIAGNOSE)
    back = (Other(label=say("Back"), actions=(Show(page=Page.SETUP),)),)
    name = "" if state.edited else best(state)
    if name and not reasons:
        return Footer(label=_pressed(name, state), actions=applied(name, state), note=does(name, state), others=back)
    note = reasons[0] if reasons else say("What you give is read in this kernel and sent nowhere else.")
    actions = () if reasons else (Begin(task=Task.DIAGNOSE),)
    return Footer(label=say("Find the cause"), actions=actions, able=not reasons, note=note, others=back)


def applied(name: str, state: State) -> tuple[Action, ...]:
    """Return the actions that apply a fix; a plan is made on the setup's page, for the log's environment if it fits."""
    fix = offered(state).get(name)
    if fix is None:
        return ()
    if fix.plan is None:
        return (Mend(way=name), Begin(task=Task.MEND))
    wish = Wish(request=replace(state.request, backend=fix.plan.backend, python=fix.plan.python))
    folder = goes_into(name, state)
    return (*((Aim(target=folder),) if folder else ()), wish, Show(page=Page.SETUP))


def _pressed(name: str, state: State) -> str:
    """Return the words of the button that applies a fix."""
    fix = offered(state)[name]
    if fix.plan and not fix.mends:
        return say("Change to {backend}", backend=fix.plan.backend.title)
    return say("Mend it")


def does(way: str, state: State) -> Text:
    """Say what applying a fix does."""
    fix, environment = offered(state)[way], environment_of(state, way)
    if fix.plan:
        folder = goes_into(way, state)
        text = (
            say("Plans PyTorch for {backend} in {folder}; nothing is changed before you press Install.")
            if folder
            else say("Plans PyTorch for {backend}; nothing is installed before you press Install.")
        )
        return text.format(backend=fix.plan.backend.title, folder=folder_name(folder))
    if fix.env:
        return say("Sets a variable in the kernel of this environment.")
    return say(
        "Changes the environment {name}, then checks it.", name=folder_name(environment.path if environment else "")
    )


def label_of(fix: Remedy) -> str:
    """Return a fix as the words of a small card."""
    text = visible(render(fix.text))
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"
