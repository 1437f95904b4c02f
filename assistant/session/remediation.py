"""Applies one remedy of a diagnosis to the environment of this setup, then runs the remedy's check."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.diagnose import UV_OPTIONS
from assistant.host.process import CancelToken, stream
from assistant.i18n import _
from assistant.install import (
    Site,
    Tools,
    Unsolved,
    Wanted,
    carry_out,
    find_uv,
    is_environment,
    look_at,
    set_aside,
    set_variables,
    work_out,
)
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import LogLine, Progress, Sink, Step
from assistant.model.finding import Diagnosis, Finding, Remedy
from assistant.model.report import Environment
from assistant.model.shell import command_line
from assistant.privacy import Lines, Policy
from assistant.session.doctor import still_true
from assistant.session.environments import judged_site, looked_into, may_change
from assistant.session.state import Mended, Outcome, State, known
from assistant.session.survey import move_words

Words = tuple[str, ...]
LIMIT = 3600.0  # seconds for one command: 2 GB of PyTorch over a line of 5 Mbit/s
CHECK_LIMIT = 300.0  # chosen: far more than `import torch` takes from a slow disk
_SHELL = frozenset("();<>|&")  # a word of nothing but these was not quoted


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
    return Environment(path=str(folder), python=str(python)) if python.is_file() and is_environment(folder) else None


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
    found, before = known(state.detection), state.environments.survey and state.environments.survey.of(environment.path)
    listed = looked_into(environment.path, tools.host, found.machine, before)[0] if before else None
    still = still_true(found, tools.host)
    return Mended(way=state.way, outcome=outcome, text=remedy.text, raised=raised, detected=still, known=listed)


def _anew(state: State, environment: Environment, tools: Tools) -> tuple[Finding, ...] | None:
    """Judge this setup's environment as it stands now; None where its Python does not answer."""
    try:
        site = look_at(Path(environment.python), tools.host)
    except BadInput:
        return None
    return judged_site(site, tools.host, known(state.detection).machine, guarded=False)


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
        set_variables(environment.kernel, remedy.env)
    checks = [_words(check, environment.python) for check in remedy.check]
    if not checks or None in checks:
        return Outcome.DONE
    sink(Progress(step=Step.DIAGNOSE, text=_("Checking")))
    passed = all(_run(words, sink, cancel, variables, CHECK_LIMIT) == 0 for words in checks if words)
    return Outcome.FIXED if passed else Outcome.NOT_FIXED


def _changed(commands: tuple[Words, ...], environment: Environment, tools: Tools) -> bool:
    """Change packages as commands ask for, all or none, so that it can be undone; False where that cannot be done."""
    try:
        site = look_at(Path(environment.python), tools.host)
        wanted = wanted_by(commands, site)
        if wanted is None:
            return False
        difference = work_out(site, wanted, tools, all_else=False)
        kept = carry_out(difference, lambda _made, _lock: None, tools)[1] if difference.moves else ()
        lines = [*map(move_words, difference.moves), *(set_aside(folder).text for folder in kept)]
    except (BadInput, Unsolved) as error:
        if isinstance(error, Unsolved) and len(commands) > 1:
            raise  # of several commands the first would have changed something before the one that fails
        wanted, lines = None, [_("What follows cannot be undone later: {reason}", reason=error.message)]
    for line in lines:
        tools.sink(LogLine(step=Step.DIAGNOSE, text=line))
    return wanted is not None


def wanted_by(commands: Iterable[Words], site: Site) -> Wanted | None:
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
    return Wanted(tuple(requires.values()), tuple(name for name in removes if name not in requires), again)


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
