"""Takes a setup along: configuration, variables, requirements and a report, written to a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from assistant.export.bundle import MARKER, Bundle, Unsuited, clean
from assistant.export.config import Config, read_config
from assistant.export.formats import FORMATS, NEEDS
from assistant.export.trust import plain
from assistant.export.write import write_all
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Detection
from assistant.model.plan import Plan
from assistant.model.report import Environment, Report
from assistant.model.visible import visible
from assistant.privacy import NOBODY, Known

__all__ = ["FORMATS", "MARKER", "Bundle", "Config", "export", "read_config", "texts"]


def export(  # noqa: PLR0913 - what each of the other steps gave, and how to write it
    detection: Detection,
    plan: Plan,
    environment: Environment,
    report: Report,
    folder: Path,
    formats: Sequence[str] = (),
    *,
    figures: Mapping[str, str] | None = None,
    lock: str = "",
    hashes: Mapping[str, str] | None = None,
    known: Known = NOBODY,
    overwrite: Callable[[tuple[Path, ...]], bool] = lambda _foreign: False,
) -> tuple[Path, ...]:
    """Write the chosen formats into `folder`, all or none; answer the paths written. No choice means all that suit.

    `figures` maps file names to the SVG texts that the report shows; `lock` and `hashes` are as in `Bundle`, `known` is
    what only this machine knows. Raises `BadInput` for an unknown format or one that this setup cannot have, and
    `WorkFailed` when files of somebody else stand in the way (unless `overwrite` agrees) or the folder cannot be
    written.
    """
    chosen = [_named(name) for name in formats]
    pictures = figures or {}
    bundle = clean(
        Bundle(
            machine=detection.machine,
            findings=detection.findings,
            plan=plan,
            environment=environment,
            report=report,
            figures=tuple(pictures),
            lock=lock,
            hashes=dict(hashes or {}),
        ),
        known,
    )
    written = texts(bundle, chosen)
    if "report.md" in written:
        written |= {name: f"<!-- {MARKER} -->\n{visible(picture)}" for name, picture in pictures.items()}
    return write_all(folder, written, overwrite)


def texts(bundle: Bundle, formats: Sequence[str] = ()) -> dict[str, str]:
    """Give the chosen formats' files by path and what these read, or those of all formats that suit the setup.

    Nothing hidden is left in any of them, whatever the machine or the plan hold.
    """
    written: dict[str, str] = {}
    wanted = [needed for name in formats for needed in (name, *NEEDS.get(name, ()))]
    for name in dict.fromkeys(wanted or FORMATS):
        try:
            written |= {path: visible(text) for path, text in FORMATS[name].files(bundle).items()}
        except Unsuited:
            if formats:
                raise
    return written


def _named(name: str) -> str:
    """Find a format by its path, its file's name, or that without its ending: `dockerfile`, `report`, `env`."""
    wanted = name.lower()
    spelled = {path: (path.lower(), path.lower().strip("."), Path(path.lower()).name) for path in FORMATS}
    exact = [path for path, names in spelled.items() if wanted in names]
    loose = [path for path, names in spelled.items() if wanted in {names[2].partition(".")[0], *Path(names[1]).parts}]
    found = exact[:1] or (loose if len(loose) == 1 else [])
    if not found:
        raise BadInput(
            _("There is no format called {format}.", format=plain(name)),
            hint=_("Choose from: {formats}.", formats=", ".join(FORMATS)),
        )
    return found[0]
