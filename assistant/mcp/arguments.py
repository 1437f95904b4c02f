"""The arguments of the tools, described for agents, and what is read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from assistant.catalog.bundles import bundle_of
from assistant.host.base import Host
from assistant.host.files import open_plain
from assistant.host.live import LiveHost
from assistant.host.recording import ReplayHost
from assistant.i18n import _
from assistant.install import check_requirement
from assistant.machines import load
from assistant.model.errors import BadInput, unreadable
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Request
from assistant.model.record import from_plain
from assistant.model.requirement import plain_requirement
from assistant.parsers.decode import text_pieces

LOG_LIMIT = 100 * 10**6  # chosen, as in the terminal: bytes of a log, which is held in memory
_LINE = r"^[^\x00-\x1f\x7f]*$"  # no path and no name holds a character that steers

Line = Annotated[str, Field(max_length=4096, pattern=_LINE)]
Path_ = Annotated[str, Field(max_length=4096, pattern=_LINE, description="The folder of an environment, or its Python")]
Pins = Annotated[list[Line], Field(max_length=100, description="Requirements that must hold, such as torch==2.6.0")]
Log = Annotated[str, Field(max_length=LOG_LIMIT, description="What the program printed, whole, with its traceback")]
LogFile = Annotated[
    str, Field(max_length=4096, pattern=_LINE, description="Instead of `log`: a file on this machine that holds it")
]
RemedyName = Annotated[
    str, Field(max_length=200, pattern=_LINE, description="A remedy by its cause's key and its number, such as oom#1")
]
Replay = Annotated[
    str, Field(max_length=200, pattern=_LINE, description="A recorded machine by its name, in place of this one")
]
Described = Annotated[
    dict[str, Any] | None, Field(description="Another machine, as `detect` answers it; missing keys mean unknown")
]
BackendName = Annotated[Backend | None, Field(description="By default the best for the machine")]
PythonVersion = Annotated[str, Field(max_length=20, pattern=_LINE, description="A Python version, such as 3.12")]
Recipe = Annotated[
    str,
    Field(max_length=100, pattern=_LINE, description="A name of `list_recipes`, or a purpose such as course"),
]
Project = Annotated[
    str,
    Field(
        max_length=4096,
        pattern=_LINE,
        description="What a project needs: its requirements.txt, pyproject.toml, notebook or folder of code",
    ),
]


def request_of(
    *, backend: Backend | None, pins: list[str], python: str, nightly: bool, recipe: str, project: str = ""
) -> Request:
    """Return what is asked for; raise `BadInput` for what is no requirement, names a source, or is no known recipe."""
    return Request(
        backend=backend,
        pins=tuple(map(_pin, pins)),
        python=python or None,
        nightly=nightly,
        bundle=bundle_of(recipe).key if recipe else "",
        project=project,
    )


def _pin(text: str) -> str:
    """Return a requirement; where packages come from is for the user's settings, and not for an agent to say."""
    if (need := plain_requirement(check_requirement(text))) and need.url:
        message = _("A requirement may not say where its package comes from: {name}.", name=need.name)
        raise BadInput(message, hint=_("Leave the address out, or have the user install it in a terminal."))
    return text


def host_of(replay: str) -> Host:
    """Return the machine at hand, or a recorded one; raise `BadInput` for a name that none has."""
    return ReplayHost(load(replay)) if replay else LiveHost()


def machine_of(described: dict[str, Any]) -> Machine:
    """Return a machine that was described; raise `BadInput` that names the key at fault."""
    return from_plain(described, Machine, "machine")


def log_of(log: str, log_file: str) -> bytes | str:
    """Return the log, or read its file; raise `BadInput` where neither or both are given, or it cannot be read."""
    if bool(log.strip()) == bool(log_file):
        raise BadInput(_("Pass either a log or the name of its file."), hint=_("Pass what the program printed."))
    if not log_file:
        return log
    try:
        with open_plain(Path(log_file).expanduser(), follow=True) as file:
            data = file.read(LOG_LIMIT + 1)
    except (OSError, RuntimeError) as error:
        raise unreadable(log_file, error if isinstance(error, OSError) else OSError(str(error))) from error
    if len(data) > LOG_LIMIT:
        text = _("{file} is longer than {limit} MB.", file=log_file, limit=LOG_LIMIT // 10**6)
        raise BadInput(text, hint=_("Pass only the part that matters."))
    return data


def log_text(log: str, log_file: str) -> str:
    """Return the log, or the text of its file, whatever program has saved it; raise as `log_of` does."""
    given = log_of(log, log_file)
    return given if isinstance(given, str) else "".join(text_pieces(given))
