"""Carries out one way out of a diagnosis in the environment of this setup, and tells whether its check then holds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from assistant.host.process import CancelToken, stream
from assistant.i18n import _
from assistant.install import Tools, find_uv, set_variables
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import LogLine, Progress, Sink, Step
from assistant.model.finding import Diagnosis, Finding, Remedy
from assistant.model.report import Environment
from assistant.privacy import Lines, Policy
from assistant.session.nouns import Mended, Outcome, State, known

Words = tuple[str, ...]
LIMIT = 3600.0  # seconds for one command: PyTorch over a slow line
CHECK_LIMIT = 300.0
_SHELL = frozenset("();<>|&")  # a word of nothing but these was not quoted
_FLAGS = {"-y": (), "--no-cache-dir": ("--no-cache",), "--force-reinstall": ("--reinstall",)}  # pip's word, uv's words


def named(state: State) -> dict[str, Remedy]:
    """Give every way out by the cause's key and its number among its ways, as in "oom#1"."""
    causes: list[Diagnosis | Finding] = [*state.diagnoses, *state.findings]
    return {f"{cause.key}#{number}": way for cause in causes for number, way in enumerate(cause.remedies, 1)}


def ways(state: State) -> dict[str, Remedy]:
    """Give those of the `named` ways out that can be carried out here; one that is a plan is for the install step."""
    environment = state.environment
    if environment is None or state.machine or state.elsewhere:
        return {}
    return {
        name: way for name, way in named(state).items() if not way.plan and commands_for(way, environment) is not None
    }


def way_chosen(state: State) -> Remedy:
    """Give the way out that was chosen; raise `BadInput` when it cannot be carried out here."""
    if state.elsewhere:
        raise BadInput(
            _("This log comes from another system."), hint=_("Do there what is said here: copy the commands.")
        )
    way = ways(state).get(state.way)
    if way is None:
        raise BadInput(_("This way out cannot be carried out here."), hint=_("Copy its commands into a terminal."))
    return way


def commands_for(way: Remedy, environment: Environment) -> tuple[Words, ...] | None:
    """Give a way's commands as argument lists, its `python` the environment's; None when one cannot be run so.

    No shell reads them: what needs one, another user's rights or another program is for the user to do.
    """
    found = [_words(command, environment.python) for command in way.commands]
    settable = bool(environment.kernel) and not any(value.startswith("/path/") for value in way.env.values())
    if None in found or (way.env and not settable) or not (found or way.env):
        return None
    return tuple(words for words in found if words)


def mended(state: State, tools: Tools) -> Mended:
    """Carry out the way out that the user chose, and tell whether its check then holds."""
    settings = tools.sources.environment
    outcome = carry_out(way_chosen(state), known(state.environment), tools.sink, tools.cancel, settings)
    return Mended(way=state.way, outcome=outcome)


def carry_out(
    way: Remedy, environment: Environment, sink: Sink, cancel: CancelToken, settings: Mapping[str, str]
) -> Outcome:
    """Run a way's commands, set its variables in the environment's kernel, then run its check.

    `settings` are variables that tell uv where packages come from. Raises `WorkFailed` when a command fails.
    """
    variables = {**settings, **way.env}
    for words in commands_for(way, environment) or ():
        sink(Progress(step=Step.DIAGNOSE, text=_("Running {command}", command=shlex.join(words))))
        code = _run(words, sink, cancel, variables, LIMIT)
        if code:
            message = _("{command} ended with exit code {code}.", command=shlex.join(words), code=code)
            raise WorkFailed(message, hint=_("The log tells why; the other ways out are still open."))
    if way.env and environment.kernel:
        set_variables(environment.kernel, way.env)
    checks = [_words(check, environment.python) for check in way.check]
    if not checks or None in checks:
        return Outcome.DONE
    sink(Progress(step=Step.DIAGNOSE, text=_("Checking")))
    passed = all(_run(words, sink, cancel, variables, CHECK_LIMIT) == 0 for words in checks if words)
    return Outcome.FIXED if passed else Outcome.NOT_FIXED


def _run(words: Words, sink: Sink, cancel: CancelToken, variables: Mapping[str, str], limit: float) -> int:
    cleaned = Lines(Policy.USABLE)

    def tell(line: str) -> None:
        sink(LogLine(step=Step.DIAGNOSE, text=cleaned(line)))

    tell(f"$ {shlex.join(words)}")
    return stream(words, tell, cancel=cancel, environment=variables, limit=limit)


def _words(command: str, python: str) -> Words | None:
    """Read a command as a shell would that knows no variables, pipes or files; None where that does not do."""
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
                *(new for old in rest for new in _FLAGS.get(old, (old,))),
            )
        case ("python", "-c", *rest):
            return (python, "-c", *rest)
        case ("test", *_rest):
            return words
        case _:
            return None
