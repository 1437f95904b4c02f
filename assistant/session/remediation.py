"""The diagnosis of a setup: the causes of what was pasted or failed, which remedies can be applied, and how one is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.diagnose import UV_OPTIONS, load_rules, read_log
from assistant.host.folders import is_own_environment
from assistant.host.process import CancelToken, stream
from assistant.host.uv import find_uv
from assistant.i18n import Message, _, render, sentences
from assistant.install import (
    ChangeRequest,
    EnvironmentFolder,
    Site,
    Tools,
    Unsolved,
)
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import LogLine, Progress, Sink, Step
from assistant.model.finding import Diagnosis, Finding, Launch, Remedy
from assistant.model.plan import Backend
from assistant.model.report import Environment
from assistant.model.shell import command_line
from assistant.privacy import Lines, Policy
from assistant.session.diagnosis import (
    diagnosed_lines,
    log_report,
    machine_of_log,
    places,
    source_of,
    unexplained,
    with_remedies,
    with_torch,
)
from assistant.session.doctor import still_true
from assistant.session.environments import judged_site, looked_into, may_change
from assistant.session.state import Diagnosed, Mended, Outcome, Pasted, Source, State, Unexplained, each_once, required
from assistant.session.store import whole_log

Words = tuple[str, ...]
LIMIT = 3600.0  # seconds for one command: 2 GB of PyTorch over a line of 5 Mbit/s
CHECK_LIMIT = 300.0  # chosen: far more than `import torch` takes from a slow disk
_SHELL = frozenset("();<>|&")  # a word of nothing but these was not quoted


def causes_found(state: State, tools: Tools) -> Diagnosed:
    """Find the causes of a pasted log or of the last failure, and remedies for all findings that still hold."""
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine, pasted = required(state.detection).machine, state.pasted
    text = whole_log(pasted) or "\n".join(map(render, state.failures))
    still = state.findings
    if not state.machine:  # what has been mended since is left out; of the setup's environment only its own tasks know
        still = each_once(still_true(required(state.detection), tools.host), state.raised)
    findings = with_remedies(still, machine)
    if not text:
        return Diagnosed(findings=findings, explained=pasted)
    log = read_log(text)
    origin = machine_of_log(log, machine) if pasted.text else machine
    causes = diagnosed_lines(log, origin)
    diagnoses, lines = tuple(cause for cause, _line in causes), [line for _cause, line in causes]
    if state.failed_cell and state.environment:
        diagnoses = with_torch(diagnoses, log, machine)
    return Diagnosed(
        findings=findings,
        diagnoses=diagnoses,
        places=places(log, lines),
        explained=pasted,
        source=source_of(log, origin, machine, lines[0] if lines else None),
        unexplained=Unexplained() if diagnoses else unexplained(log, origin),
        markdown=log_report(log, origin, diagnoses),
    )


def named(state: State) -> dict[str, Remedy]:
    """Return every remedy by its cause's key and its number among the cause's remedies, as in "oom#1"."""
    causes: list[Diagnosis | Finding] = [*state.diagnosed.diagnoses, *state.findings]
    return {f"{cause.key}#{number}": remedy for cause in causes for number, remedy in enumerate(cause.remedies, 1)}


def ways(state: State) -> dict[str, Remedy]:
    """Return those of the `named` remedies that can be applied here; one with a plan is for the install step."""
    if state.machine:
        return {}
    environments = {name: environment_of(state, name) for name in named(state)}
    return {
        name: remedy
        for name, remedy in named(state).items()
        if (environment := environments[name])
        and not remedy.plan
        and may_change(environment.path)
        and commands_for(remedy, environment) is not None
    }


def environment_of(state: State, way: str) -> Environment | None:
    """Return the environment that a remedy is for: the one that the log names, if it stands here, else this setup's.

    What helps against findings is for this setup's in any case, and what helps a cell is for its kernel's, whatever
    paths the cell printed. Returns None where there is none here.
    """
    if way.partition("#")[0] not in {cause.key for cause in state.diagnosed.diagnoses}:
        return state.environment
    if state.diagnosed.source.elsewhere:
        return None
    if state.failed_cell:
        return state.environment
    python = Path(state.diagnosed.source.interpreter.path)
    if not state.diagnosed.source.interpreter.path or (state.environment and python == Path(state.environment.python)):
        return state.environment
    folder = python.parent.parent
    return (
        Environment(path=str(folder), python=str(python))
        if python.is_file() and EnvironmentFolder(folder).exists
        else None
    )


def commands_for(remedy: Remedy, environment: Environment) -> tuple[Words, ...] | None:
    """Return a remedy's commands as argument lists, `python` being the environment's; None if one cannot be run so.

    No shell reads them: what needs one, another user's rights or another program is for the user to do.
    """
    found = [_words(command, environment.python) for command in remedy.commands]
    settable = bool(environment.kernel) and not any(value.startswith("/path/") for value in remedy.env.values())
    if None in found or (remedy.env and not settable) or not (found or remedy.env):
        return None
    return tuple(words for words in found if words)


def mended(state: State, tools: Tools) -> Mended:
    """Apply the remedy that the user chose, and judge the environment anew.

    Raises `BadInput` where the remedy cannot be applied here.
    """
    remedy, environment = ways(state).get(state.way), environment_of(state, state.way)
    if environment is None and state.diagnosed.source.elsewhere:
        raise BadInput(_("This log comes from another system."), hint=_("Copy the commands and run them there."))
    if remedy is None or environment is None:
        raise BadInput(_("This fix can't be applied here."), hint=_("Copy its commands into a terminal."))
    outcome = _apply(remedy, environment, tools)
    raised = _anew(state, environment, tools) if environment == state.environment else None
    found, before = (
        required(state.detection),
        state.environments.survey and state.environments.survey.of(environment.path),
    )
    listed = looked_into(environment.path, tools.host, found.machine, before)[0] if before else None
    return Mended(way=state.way, outcome=outcome, text=remedy.text, raised=raised, summary=listed)


def _anew(state: State, environment: Environment, tools: Tools) -> tuple[Finding, ...] | None:
    """Judge this setup's environment as it stands now; None where its Python does not answer."""
    try:
        site = Site.ask(Path(environment.python), tools.host)
    except BadInput:
        return None
    return judged_site(site, tools.host, required(state.detection).machine, guarded=False)


def _apply(remedy: Remedy, environment: Environment, tools: Tools) -> Outcome:
    """Run a remedy's commands, set its variables in the environment's kernel, then run its check.

    Raises `WorkFailed` when a command fails.
    """
    sink, cancel = tools.sink, tools.cancel
    variables = {**tools.sources.environment, **remedy.env}  # uv reads from them where packages come from
    commands = commands_for(remedy, environment) or ()
    changes = tuple(takewhile(lambda words: words[1:2] == ("pip",) and words[2] != "check", commands))
    changed = bool(changes) and _changed(changes, environment, tools)
    for words in commands[len(changes) :] if changed else commands:
        sink(Progress(step=Step.DIAGNOSE, text=_("Running {command}", command=command_line(words))))
        code = _run(words, sink, cancel, variables, LIMIT)
        if code:
            message = _("{command} ended with exit code {code}.", command=command_line(words), code=code)
            raise WorkFailed(message, hint=_("See the log for the reason, or try another fix."))
    if remedy.env and environment.kernel:
        EnvironmentFolder(Path(environment.path)).set_kernel_variables(environment.kernel, remedy.env)
    checks = [_words(check, environment.python) for check in remedy.check]
    if not checks or None in checks:
        return Outcome.DONE
    sink(Progress(step=Step.DIAGNOSE, text=_("Checking")))
    passed = all(_run(words, sink, cancel, variables, CHECK_LIMIT) == 0 for words in checks if words)
    return Outcome.FIXED if passed else Outcome.NOT_FIXED


def _changed(commands: tuple[Words, ...], environment: Environment, tools: Tools) -> bool:
    """Change packages as commands ask for, all or none, so that it can be undone; False where that cannot be done."""
    try:
        site = Site.ask(Path(environment.python), tools.host)
        change = change_of(commands, site)
        if change is None:
            return False
        difference = change.work_out(site, tools, all_else=False)
        if difference.moves:
            difference.make(lambda _made, _lock: None, tools)
        lines = [move.words for move in difference.moves]
    except (BadInput, Unsolved) as error:
        if isinstance(error, Unsolved) and (error.only_source or len(commands) > 1):
            raise  # of several commands the first would have changed something before the one that fails
        change, lines = None, [_("What follows cannot be undone later: {reason}", reason=error.message)]
    for line in lines:
        tools.sink(LogLine(step=Step.DIAGNOSE, text=line))
    return change is not None


def change_of(commands: Iterable[Words], site: Site) -> ChangeRequest | None:
    """Return the change of packages that commands ask for; None where one also says how it is to be made."""
    removes, requires, versions = dict[str, str](), dict[str, str](), site.versions
    for _uv, _pip, verb, _option, _python, *rest in commands:
        words = [word for word in rest if word != "--upgrade"]
        try:
            named: dict[str, str] = {canonicalize_name(Requirement(word).name): word for word in words}
        except InvalidRequirement:
            return None
        if len(words) < len(rest):
            newer = {name for name, word in named.items() if name in versions and not Requirement(word).specifier}
            named |= {name: f"{named[name]}>{Version(versions[name]).public}" for name in newer}
        (removes if verb == "uninstall" else requires).update(named)
    again = tuple(name for name in removes if name in requires and name in versions)
    return ChangeRequest(tuple(requires.values()), tuple(name for name in removes if name not in requires), again)


def _run(words: Words, sink: Sink, cancel: CancelToken, variables: Mapping[str, str], limit: float) -> int:
    cleaned = Lines(Policy.USABLE)

    def tell(line: str) -> None:
        sink(LogLine(step=Step.DIAGNOSE, text=cleaned(line)))

    tell(f"$ {command_line(words)}")
    return stream(words, tell, cancel=cancel, environment=variables, limit=limit)


def _words(command: str, python: str) -> Words | None:
    """Split a command as a shell does; None where it needs a shell, or a program that is not run here.

    python -m pip uninstall -y torch    becomes    uv pip uninstall --python /env/bin/python torch
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = tuple(lexer)
    except ValueError:
        return None
    # What follows -c is a program's text, whatever stands in it.
    seen = [word for place, word in enumerate(words) if place == 0 or words[place - 1] != "-c"]
    if any(set(word) <= _SHELL or set(word) & set("$`\\") for word in seen):
        return None
    match words:
        case ("python", "-m", "pip", "install" | "uninstall" | "check" as verb, *rest):  # uv's environments have no pip
            return (
                find_uv(),
                "pip",
                verb,
                "--python",
                python,
                *(new for old in rest for new in UV_OPTIONS.get(old, (old,))),
            )
        case ("python", "-c", *_rest) | ("python", "-W", "error", "-c", *_rest):
            return (python, *words[1:])
        case ("test", *_rest):
            return words
        case _:
            return None


def is_current(state: State) -> bool:
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
    keys = [cause.key for cause in state.diagnosed.diagnoses[:1]] if is_current(state) else []
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
    if not is_current(state) or not state.diagnosed.diagnoses:
        return ""
    cause = state.diagnosed.diagnoses[0]
    return best(state) or (f"{cause.key}#1" if cause.remedies else "")


def launches(state: State) -> list[Launch]:
    """Return how the program that a log names is to be started, where that belongs to another fix than the first."""
    if not is_current(state) or not state.diagnosed.diagnoses or not state.diagnosed.source.program:
        return []
    cause, shown = state.diagnosed.diagnoses[0], first(state)
    fixes = (fix for number, fix in enumerate(cause.remedies, 1) if f"{cause.key}#{number}" != shown)
    return [launch for fix in fixes for launch in fix.launch]


def others(state: State) -> dict[str, Remedy]:
    """Return the likeliest cause's other fixes, by their names, without those that only say how to start a program."""
    if not is_current(state) or not state.diagnosed.diagnoses:
        return {}
    cause, starts = state.diagnosed.diagnoses[0], launches(state)
    hidden = {first(state), *state.mended}
    every = ((f"{cause.key}#{number}", fix) for number, fix in enumerate(cause.remedies, 1))
    return {
        name: fix
        for name, fix in every
        if name not in hidden and not (starts and fix.launch and not (fix.plan or fix.commands or fix.env))
    }
