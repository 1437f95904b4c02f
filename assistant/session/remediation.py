"""The diagnosis of a setup: the causes of what was pasted or failed, which remedies can be applied, and how one is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from assistant.diagnose import UV_OPTIONS, load_rules, read_log
from assistant.host.extras import find_uv
from assistant.host.files import is_own_environment
from assistant.host.live import LiveHost
from assistant.host.process import running
from assistant.i18n import Message, _, render, sentences
from assistant.install import ChangeRequest, EnvironmentFolder, Site, Tools, Unsolved
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Diagnosis, Finding, Launch, Remedy
from assistant.model.plan import Backend, Plan, name_of
from assistant.model.report import Environment, LogLine, Progress, Step
from assistant.model.shell import command_line
from assistant.privacy import Lines, Policy
from assistant.session.diagnosis import (
    add_rule_remedies,
    explain_unknown,
    find_causes_and_lines,
    log_origin,
    log_report,
    log_source,
    machine_of_log,
    offer_torch_for_kernel,
    places_in_log,
)
from assistant.session.environments import findings_still_true, inspect, is_changeable, site_findings
from assistant.session.state import Diagnosed, Mended, Outcome, Pasted, Source, State, Unexplained, required, unique
from assistant.session.store import read_whole_log

Words = tuple[str, ...]
LIMIT = 3600.0  # seconds for one command: 2 GB of PyTorch over a line of 5 Mbit/s
CHECK_LIMIT = 300.0  # chosen: far more than `import torch` takes from a slow disk
_SHELL = frozenset("();<>|&")  # a word of nothing but these was not quoted


def diagnose_setup(state: State, tools: Tools) -> Diagnosed:
    """Find the causes of a pasted log, else of what failed, with remedies, and remedies for findings that still hold.

    Without either text there are only the findings.
    """
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Looking for causes")))
    machine, pasted = required(state.detection).machine, state.pasted
    text = read_whole_log(pasted) or "\n".join(map(render, state.failures))
    still = state.findings
    if not state.machine:  # what has been mended since is left out; of the setup's environment only its own tasks know
        still = unique(findings_still_true(required(state.detection), tools.host), state.raised)
    findings = add_rule_remedies(still, machine)
    if not text:
        return Diagnosed(findings=findings, explained=pasted)
    log = read_log(text)
    origin = (pasted.whose or log_origin(log, machine)) if pasted.text else "same"
    log_machine = machine_of_log(log, machine, origin) if pasted.text else machine
    causes = find_causes_and_lines(log, log_machine)
    diagnoses, lines = tuple(cause for cause, _line in causes), [line for _cause, line in causes]
    if state.failed_cell and state.environment:
        takes = partial(takes_plan, state.environment)
        diagnoses = offer_torch_for_kernel(diagnoses, log, machine, takes)
    return Diagnosed(
        findings=findings,
        diagnoses=diagnoses,
        places=places_in_log(log, lines),
        explained=pasted,
        source=log_source(
            log, log_machine, lines[0] if lines else None, elsewhere=origin == "other" and not state.failed_cell
        ),
        unexplained=Unexplained()
        if diagnoses and diagnoses[0].sure
        else explain_unknown(log, log_machine, guessing=not diagnoses),
        markdown=log_report(log, log_machine, zip(diagnoses, lines, strict=True)),
    )


class Fix(NamedTuple):
    """A remedy of what was found, the environment that it is for, and what one press can do of it.

    `commands` are the argument lists that apply it there, None where they cannot be run so. It is `offered` where one
    press can apply it: a plan to make, or commands that need no shell and no other rights.
    """

    remedy: Remedy
    environment: Environment | None
    commands: tuple[Words, ...] | None
    offered: bool


def all_fixes(state: State) -> dict[str, Fix]:
    """Return every fix, also those not offered, by its cause's key and number among its remedies, as in "oom#1".

    What helps against findings is for this setup's environment; what helps against a log's cause is for the one that
    the log names.
    """
    diagnosed, found = state.diagnosed, dict[str, Fix]()
    foreign, of_log = diagnosed.source.elsewhere, _environment_of_log(state)
    causes: list[Diagnosis | Finding] = [*diagnosed.diagnoses, *state.findings]
    for cause in causes:
        is_cause = isinstance(cause, Diagnosis)
        environment = of_log if is_cause else state.environment
        changeable = environment is not None and not state.machine and is_changeable(environment.path)
        for number, remedy in enumerate(cause.remedies, 1):
            commands = runnable_commands(remedy, environment) if environment else None
            offered = not (is_cause and foreign) if remedy.plan else changeable and commands is not None
            found.setdefault(f"{cause.key}#{number}", Fix(remedy, environment, commands, offered))
    return found


def _environment_of_log(state: State) -> Environment | None:
    """Return the environment of the Python that a log names, or this setup's if it names none.

    None for another computer's log, and if that Python is not in an environment here. The log of a failed cell is
    always of the setup's.
    """
    source, own = state.diagnosed.source, state.environment
    python = Path(source.interpreter.path)
    if source.elsewhere:
        return None
    if state.failed_cell or not source.interpreter.path or (own and python == Path(own.python)):
        return own
    folder = EnvironmentFolder(python).folder
    return (
        Environment(path=str(folder), python=str(python))
        if python.is_file() and EnvironmentFolder(folder).exists
        else None
    )


def runnable_commands(remedy: Remedy, environment: Environment) -> tuple[Words, ...] | None:
    """Return a remedy's commands as argument lists, `python` being the environment's; None if one cannot be run so.

    No shell reads them. None also if the remedy sets variables and the environment has no kernel to set them in or a
    value is a place to fill in ("/path/…"), and if it has neither commands nor variables; () if it has variables only.
    """
    found = [_split_command(command, environment.python) for command in remedy.commands]
    settable = bool(environment.kernel) and not any(value.startswith("/path/") for value in remedy.env.values())
    if None in found or (remedy.env and not settable) or not (found or remedy.env):
        return None
    return tuple(words for words in found if words)


def apply_chosen_fix(state: State, tools: Tools) -> Mended:
    """Apply the fix that the user chose (`State.way`), and judge the environment anew that it was applied to.

    Raises `BadInput` if the fix cannot be applied here, and `WorkFailed` if one of its commands fails.
    """
    fix = all_fixes(state).get(state.way)
    if fix and fix.environment is None and state.diagnosed.source.elsewhere:
        raise BadInput(_("This log comes from another system."), hint=_("Copy the commands and run them there."))
    if fix is None or not fix.offered or fix.remedy.plan or fix.environment is None:
        raise BadInput(_("This fix can't be applied here."), hint=_("Copy its commands into a terminal."))
    environment, machine = fix.environment, required(state.detection).machine
    outcome = _run_fix(fix, environment, tools)
    raised = None
    if environment == state.environment:
        with suppress(BadInput):  # its Python does not answer
            raised = site_findings(Site.ask(Path(environment.python), tools.host), tools.host, machine, guarded=False)
    listed = inspect(environment.path, state, tools)[0] if state.survey.summary_at(environment.path) else None
    return Mended(way=state.way, outcome=outcome, text=fix.remedy.text, raised=raised, summary=listed)


def _run_fix(fix: Fix, environment: Environment, tools: Tools) -> Outcome:
    """Run a fix's commands, set its kernel's variables, run its checks; return what these show, `DONE` without any.

    Changes of packages that come first are made so that they can be undone, if possible. Raises `WorkFailed` if a
    command fails.
    """
    remedy, commands = fix.remedy, fix.commands or ()
    variables = {**tools.sources.environment, **remedy.env}  # uv reads from them where packages come from
    cleaned = Lines(Policy.USABLE)

    def run(words: Words, limit: float) -> int:
        """Run a command for at most `limit` seconds, log it and its output, and return its exit code."""
        with running(words, cancel=tools.cancel, environment=variables, limit=limit) as child:
            for line in chain([f"$ {command_line(words)}"], child):
                tools.sink(LogLine(step=Step.DIAGNOSE, text=cleaned(line)))
        return child.returncode

    changes = tuple(takewhile(lambda words: words[1:2] == ("pip",) and words[2] != "check", commands))
    changed = bool(changes) and _change_packages(changes, environment, tools)
    for words in commands[len(changes) :] if changed else commands:
        tools.sink(Progress(step=Step.DIAGNOSE, text=_("Running {command}", command=command_line(words))))
        if code := run(words, LIMIT):
            message = _("{command} ended with exit code {code}.", command=command_line(words), code=code)
            raise WorkFailed(message, hint=_("See the log for the reason, or try another fix."))
    if remedy.env and environment.kernel:
        EnvironmentFolder(Path(environment.path)).set_kernel_variables(environment.kernel, remedy.env)
    checks = [_split_command(check, environment.python) for check in remedy.check]
    if not checks or None in checks:
        return Outcome.DONE
    tools.sink(Progress(step=Step.DIAGNOSE, text=_("Checking")))
    return Outcome.FIXED if all(run(words, CHECK_LIMIT) == 0 for words in checks if words) else Outcome.NOT_FIXED


def _change_packages(commands: tuple[Words, ...], environment: Environment, tools: Tools) -> bool:
    """Change packages as commands of uv ask for, so that it can be undone; return whether that was done.

    If not, nothing was changed, and the commands are to be run as they are. Raises `Unsolved` if these must not run
    either: one would build a package, or one would change something before another fails; `WorkFailed` if the change
    fails and was rolled back.
    """
    try:
        site = Site.ask(Path(environment.python), tools.host)
        change = requested_change(commands, site)
        if change is None:
            return False
        difference = change.resolve_change(site, tools, all_else=False)
        if difference.moves:
            with difference.apply(tools):
                pass
        lines = [move.words for move in difference.moves]
    except (BadInput, Unsolved) as error:
        if isinstance(error, Unsolved) and (error.only_source or len(commands) > 1):
            raise  # of several commands the first would have changed something before the one that fails
        change, lines = None, [_("What follows cannot be undone later: {reason}", reason=error.message)]
    for line in lines:
        tools.sink(LogLine(step=Step.DIAGNOSE, text=line))
    return change is not None


def requested_change(commands: Iterable[Words], site: Site) -> ChangeRequest | None:
    """Return the change that the pip commands of `_split_command` ask for; None if one has options beside --upgrade.

    What is to be upgraded without a version must become newer; what is removed and required is installed again.
    """
    removes, requires, versions = dict[str, str](), dict[str, str](), site.versions
    for _uv, _pip, verb, _option, _python, *rest in commands:
        words = [word for word in rest if word != "--upgrade"]
        try:
            named: dict[str, str] = {name_of(word): word for word in words}
        except InvalidRequirement:
            return None
        if len(words) < len(rest):
            newer = {name for name, word in named.items() if name in versions and not Requirement(word).specifier}
            named |= {name: f"{named[name]}>{Version(versions[name]).public}" for name in newer}
        (removes if verb == "uninstall" else requires).update(named)
    again = tuple(name for name in removes if name in requires and name in versions)
    return ChangeRequest(tuple(requires.values()), tuple(name for name in removes if name not in requires), again)


def _split_command(command: str, python: str) -> Words | None:
    """Return a command's arguments, those of pip as uv's; None if it needs a shell, or is none of those below.

    These are `python -m pip` (install, uninstall, check), `python -c` and `test`; `python` is the path to put in.

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


def is_diagnosis_current(state: State) -> bool:
    """Return whether the diagnoses are of what the user sees: the text in the box, or, without any, what failed."""
    if state.edited or state.diagnosed.explained != state.pasted:
        return False
    return bool(state.pasted.text or state.failures)


def headline(cause: Diagnosis, source: Source) -> Message:
    """Return a cause as a sentence, after the program and the computer that a log is of, as far as they are known.

    That the GPU is fine is added if the cause is sure and lies in software alone.
    """
    rule = load_rules().by_key.get(cause.key) if cause.sure else None
    said = None
    if rule and rule.asks and source.program:  # what the user's program did tells more than the cause's title
        started = any(rule.asks.argument in word for word in source.arguments)
        said = _(rule.asks.started if started else rule.asks.asks).format(program=source.program)
    elif rule and rule.asks:
        said = _(rule.asks.unnamed)
    if rule and rule.software_only and source.gpu and source.best not in {None, Backend.CPU}:
        text = _("The {gpu} of that computer is fine.") if source.elsewhere else _("Your {gpu} is fine.")
        title = _("{program}: {cause}").format(program=source.program, cause=cause.title)
        return sentences((text.format(gpu=source.gpu), said or (title if source.program else cause.title)))
    if said:
        return said
    where = ", ".join(filter(None, (source.gpu, source.system)))
    named, unnamed = _("{program}: {cause}"), Message("{cause}")
    if where and source.elsewhere:
        named = _("{program} on another computer ({where}): {cause}")
        unnamed = _("On another computer ({where}): {cause}")
    elif source.gpu:
        named, unnamed = _("{program} on your {gpu}: {cause}"), _("On your {gpu}: {cause}")
    elif where:
        named, unnamed = _("{program} on your computer ({where}): {cause}"), _("On your computer ({where}): {cause}")
    text = named if source.program else unnamed
    return text.format(where=where, gpu=source.gpu, program=source.program, cause=cause.title)


def best_fix_name(state: State) -> str:
    """Return the name, as in "oom#1", of the fix to begin with; "" for none.

    It is the first for the likeliest cause that is offered and was not tried; without a cause and without a pasted log,
    the first for a finding. What a fix has solved gets no other.
    """
    keys = [cause.key for cause in state.diagnosed.diagnoses[:1]] if is_diagnosis_current(state) else []
    keys = keys or ([finding.key for finding in state.findings if finding.wrong] if state.pasted == Pasted() else [])
    fixed = {name.partition("#")[0] for name, done in state.mended.items() if done.outcome is Outcome.FIXED}
    able = [name for name, fix in all_fixes(state).items() if fix.offered and name not in state.mended]
    return next((name for key in keys if key not in fixed for name in able if name.partition("#")[0] == key), "")


def fix_folder(fix: Fix, state: State) -> str:
    """Return the existing environment to install a fix's plan into; "" for a new one, or if the fix has no plan.

    It is the fix's environment, if that has the plan's version of Python, by its files, is not the assistant's own, and
    is not the setup's, unless a cell failed.
    """
    plan, environment = fix.remedy.plan, fix.environment
    if plan is None or environment is None or (environment == state.environment and not state.failed_cell):
        return ""
    return environment.path if takes_plan(environment, plan) else ""


def takes_plan(environment: Environment, plan: Plan) -> bool:
    """Return whether a plan can go into an environment: of its version of Python, and not the assistant's own."""
    if is_own_environment(environment.path):
        return False
    return Site.read(Path(environment.path), LiveHost(), with_packages=False).minor == plan.python


class Help(NamedTuple):
    """What helps against the likeliest cause: the fix shown first ("" for none), how to start its program, the rest."""

    first: str = ""
    launches: tuple[Launch, ...] = ()
    others: dict[str, Fix] = {}


def help_for_first_cause(state: State) -> Help:
    """Return what helps against the likeliest cause of what the user sees; an empty `Help` without a cause.

    The first is `best_fix_name`, else the cause's first fix. How the others start a known program is in `launches`;
    `others` are without fixes that say nothing beyond that, and without those that were tried.
    """
    if not is_diagnosis_current(state) or not state.diagnosed.diagnoses:
        return Help()
    cause, every = state.diagnosed.diagnoses[0], all_fixes(state)
    names = [f"{cause.key}#{number}" for number, _remedy in enumerate(cause.remedies, 1)]
    first = best_fix_name(state) or next(iter(names), "")
    rest = {name: every[name] for name in names if name != first}
    starts = rest.values() if state.diagnosed.source.program else ()
    launches = tuple(launch for fix in starts for launch in fix.remedy.launch)
    others = {
        name: fix
        for name, fix in rest.items()
        if name not in state.mended
        and not (launches and fix.remedy.launch and not (fix.remedy.plan or fix.remedy.commands or fix.remedy.env))
    }
    return Help(first, launches, others)
