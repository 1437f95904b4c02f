"""The sixth step: a setup as files to take along: configuration, variables, requirements, a report.

This is the room's face: other rooms import from here, never from the modules behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from assistant.export.collect_env import stated_env_text
from assistant.export.config import Config, read_config
from assistant.export.drift import (
    DIFFERS,
    Drift,
    file_drift,
    machine_drift,
    package_drift,
    plan_drift,
    report_drift,
    same_hardware,
)
from assistant.export.editors import Uses, uses
from assistant.export.first_steps import first_notebook, write_first_notebook
from assistant.export.formats import FORMATS, NEEDS
from assistant.export.purposes import PURPOSES, Purpose
from assistant.export.setup import MARKER, Setup, Unsuited, clean
from assistant.export.write import write_all
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.visible import printable, visible
from assistant.privacy import NOBODY, Known

__all__ = [
    "DIFFERS",
    "FORMATS",
    "MARKER",
    "PURPOSES",
    "Config",
    "Drift",
    "Purpose",
    "Setup",
    "Uses",
    "clean",
    "export",
    "file_drift",
    "first_notebook",
    "machine_drift",
    "package_drift",
    "plan_drift",
    "read_config",
    "report_drift",
    "same_hardware",
    "stated_env_text",
    "texts",
    "uses",
    "write_first_notebook",
]


def export(
    setup: Setup,
    folder: Path,
    formats: Sequence[str] = (),
    *,
    purpose: str = "",
    known: Known = NOBODY,
    overwrite: Callable[[tuple[Path, ...]], bool] = lambda _foreign: False,
) -> tuple[Path, ...]:
    """Write the chosen formats, else those of a purpose that suit, into `folder`, all or none; return their paths.

    `known` is what only this machine knows. Raises `BadInput` for an unknown format or one that this setup cannot have,
    and `WorkFailed` if files of somebody else are in the way (unless `overwrite` agrees) or the folder cannot be
    written.
    """
    written = texts(clean(setup, known), [_named(name) for name in formats], purpose)
    return write_all(folder, written, overwrite)


def texts(setup: Setup, formats: Sequence[str] = (), purpose: str = "") -> dict[str, str]:
    """Return the texts of the chosen formats, else of a purpose's that suit, by path, with the files that they need.

    No text holds a hidden character, whatever the machine or the plan hold. Raises `Unsuited` for a chosen format that
    this setup cannot have.
    """
    written: dict[str, str] = {}
    chosen = formats or PURPOSES[purpose].formats
    wanted = [needed for name in chosen for needed in (name, *NEEDS.get(name, ()))]
    for name in dict.fromkeys(wanted or FORMATS):
        try:
            written |= {path: visible(text) for path, text in FORMATS[name].files(setup).items()}
        except Unsuited:
            if formats:
                raise
    return written


def _named(name: str) -> str:
    """Return the path of the format meant by a path, a file's name or its stem: `dockerfile`, `report`, `env`."""
    wanted = name.lower()
    spelled = {path: (path.lower(), path.lower().strip("."), Path(path.lower()).name) for path in FORMATS}
    exact = [path for path, names in spelled.items() if wanted in names]
    loose = [path for path, names in spelled.items() if wanted in {names[2].partition(".")[0], *Path(names[1]).parts}]
    found = exact[:1] or (loose if len(loose) == 1 else [])
    if not found:
        raise BadInput(
            _("There is no format called {format}.", format=printable(name)),
            hint=_("Choose from: {formats}.", formats=", ".join(FORMATS)),
        )
    return found[0]
