"""Image applications: how each is started on a backend, and where their environments and others' usually are."""

from __future__ import annotations

import re

from assistant.catalog.tables import Row, load_table, rows
from assistant.model.plan import Backend
from assistant.model.record import Record


class Launcher(Record, frozen=True):
    """One application: `marks` name it in a log, `choosing` are its arguments that choose a backend.

    `files` and `lines` tell by system where the arguments stand and how; without a file they are typed. `backends`
    gives the arguments that each backend needs; one that is not listed is not offered by the application.
    """

    key: str
    name: str
    marks: tuple[str, ...]
    files: dict[str, str]
    lines: dict[str, str]
    choosing: tuple[str, ...]
    backends: dict[Backend, tuple[str, ...]]


def launchers() -> tuple[Launcher, ...]:
    """Return the applications that are known."""
    return load_table("launchers.launchers", Launcher).rows


def correct_arguments(launcher: Launcher, arguments: tuple[str, ...], backend: Backend) -> tuple[str, ...] | None:
    """Return the arguments with those that choose a backend, and their values, replaced by what `backend` needs.

    All others are kept, before the new ones; if nothing but the order would change, `arguments` as they are. None if
    the application does not offer the backend.
    """
    added = launcher.backends.get(backend)
    if added is None:
        return None
    others, dropping = [], False
    for word in arguments:
        dropping = re.split("[=:]", word)[0] in launcher.choosing or (dropping and not word.startswith("-"))
        if not dropping:
            others.append(word)
    result = (*others, *(word for word in added if word not in others))
    return arguments if sorted(result) == sorted(arguments) else result


def launch_line(launcher: Launcher, arguments: tuple[str, ...], system: str) -> str | None:
    """Return the line that gives an application its arguments on a system ("linux", "windows", "macos").

    It is a command, or the line of its file of settings; None if the table has none for the system. Words with spaces
    are quoted as that line needs it.
    """
    line = launcher.lines.get(system)
    if line is None:
        return None
    mark = '\\"' if '="' in line else '"'  # inside the quotes of an assignment
    quoted = (f"{mark}{word}{mark}" if " " in word else word for word in arguments)
    return line.format(arguments=" ".join(quoted)).rstrip()


def environment_places() -> tuple[Row, ...]:
    """Return where tools and applications keep environments; `kind` is "venv", "conda" or "application".

    `paths` begin with "~" or a variable, and "*" stands for any one folder. `lists` are files that name an environment
    in each line. `settings` are JSON files whose `key` names a folder, and `below` are paths in that folder.
    """
    return rows("places.places")
