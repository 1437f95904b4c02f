"""What a diagnosis means for its user: one sentence about their own machine and program, and the fix to begin with."""

from __future__ import annotations

from pathlib import Path

from assistant.diagnose import load_rules
from assistant.host.folders import is_own_environment
from assistant.i18n import Message, _, sentences
from assistant.model.finding import Diagnosis, Launch, Remedy
from assistant.model.plan import Backend
from assistant.session.remediation import environment_of, named, ways
from assistant.session.state import Outcome, Pasted, Source, State


def stands(state: State) -> bool:
    """Return whether the diagnoses are of what the user sees: the text in the box, or, without any, what failed."""
    if state.edited or state.diagnosed.explained != state.pasted:
        return False
    return bool(state.pasted.text or state.failures)


def headline(cause: Diagnosis, source: Source) -> Message:
    """Return what is wrong in one sentence that begins with the user's own machine and program."""
    said, rule = _said(cause, source), load_rules().by_key.get(cause.key)
    software = cause.sure and rule is not None and rule.software_only
    fine = software and source.gpu and source.best not in {None, Backend.CPU}
    if fine:
        text = _("The {gpu} of that computer is fine.") if source.elsewhere else _("Your {gpu} is fine.")
        title = _("{program}: {cause}").format(program=source.program, cause=cause.title)
        return sentences((text.format(gpu=source.gpu), said or (title if source.program else cause.title)))
    return said or _placed(cause, source)


def _said(cause: Diagnosis, source: Source) -> Message | None:
    """Return what the user's program did, where the cause's rule says that; it tells more than the cause's title."""
    rule = load_rules().by_key.get(cause.key)
    asks = rule.asks if rule and cause.sure else None
    if asks is None:
        return None
    if not source.program:
        return _(asks.unnamed)
    started = any(asks.argument in word for word in source.arguments)
    return _(asks.started if started else asks.asks).format(program=source.program)


def _placed(cause: Diagnosis, source: Source) -> Message:
    """Return a cause with the program and the computer that it was met on, as far as they are known."""
    where = ", ".join(filter(None, (source.gpu, source.system)))
    if not where:
        text = _("{program}: {cause}") if source.program else sentences((cause.title,))
    elif source.elsewhere and source.program:
        text = _("{program} on another computer ({where}): {cause}")
    elif source.elsewhere:
        text = _("On another computer ({where}): {cause}")
    elif source.gpu:
        text = _("{program} on your {gpu}: {cause}") if source.program else _("On your {gpu}: {cause}")
    elif source.program:
        text = _("{program} on your computer ({where}): {cause}")
    else:
        text = _("On your computer ({where}): {cause}")
    return text.format(where=where, gpu=source.gpu, program=source.program, cause=cause.title) if text.id else text


def offered(state: State) -> dict[str, Remedy]:
    """Return the fixes that one press can apply: a plan to make, or commands that need no shell and no other rights."""
    able, found = ways(state), named(state)
    causes = {cause.key for cause in state.diagnosed.diagnoses}
    foreign = {name for name in found if state.diagnosed.source.elsewhere and name.partition("#")[0] in causes}
    return {name: fix for name, fix in found.items() if name in able or (fix.plan and name not in foreign)}


def best(state: State) -> str:
    """Name the fix to begin with, "" for none: the likeliest cause's first that can be applied and was not tried yet.

    Without a cause it is a finding's. What a fix has mended already is offered no other.
    """
    fixed = {name.partition("#")[0] for name, done in state.mended.items() if done.outcome is Outcome.FIXED}
    keys = [cause.key for cause in state.diagnosed.diagnoses[:1]] if stands(state) else []
    keys = keys or ([finding.key for finding in state.findings if finding.wrong] if state.pasted == Pasted() else [])
    able = [name for name in offered(state) if name not in state.mended]
    return next((name for key in keys if key not in fixed for name in able if name.partition("#")[0] == key), "")


def goes_into(way: str, state: State) -> str:
    """Return the folder that a fix's plan is for: the environment that the log names, if it stands here and fits.

    It fits with the plan's Python, which its folder of packages names, as in `lib/python3.12`; "" for a new one.
    """
    fix, environment = named(state)[way], environment_of(state, way)
    if fix.plan is None or environment is None or is_own_environment(environment.path):
        return ""
    if environment == state.environment and not state.failed_cell:
        return ""
    return environment.path if Path(environment.path, "lib", f"python{fix.plan.python}").is_dir() else ""


def first(state: State) -> str:
    """Name the fix that is shown with the cause: the one that the button applies, else the first that there is."""
    if not stands(state) or not state.diagnosed.diagnoses:
        return ""
    cause = state.diagnosed.diagnoses[0]
    return best(state) or (f"{cause.key}#1" if cause.remedies else "")


def launches(state: State) -> list[Launch]:
    """Return how the program that a log names is to be started, where that belongs to another fix than the first."""
    if not stands(state) or not state.diagnosed.diagnoses or not state.diagnosed.source.program:
        return []
    cause, shown = state.diagnosed.diagnoses[0], first(state)
    fixes = (fix for number, fix in enumerate(cause.remedies, 1) if f"{cause.key}#{number}" != shown)
    return [launch for fix in fixes for launch in fix.launch]


def others(state: State) -> dict[str, Remedy]:
    """Return the likeliest cause's other fixes, by their names, without those that only say how to start a program."""
    if not stands(state) or not state.diagnosed.diagnoses:
        return {}
    cause, told = state.diagnosed.diagnoses[0], launches(state)
    hidden = {first(state), *state.mended}
    every = ((f"{cause.key}#{number}", fix) for number, fix in enumerate(cause.remedies, 1))
    return {
        name: fix
        for name, fix in every
        if name not in hidden and not (told and fix.launch and not (fix.plan or fix.commands or fix.env))
    }
