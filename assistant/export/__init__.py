"""Takes a setup along: configuration, variables, requirements and a report, written to a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from assistant.export.bundle import MARKER, Bundle, clean
from assistant.export.config import Config, read_config
from assistant.export.formats import FORMATS
from assistant.export.write import write_all
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Detection
from assistant.model.plan import Plan
from assistant.model.report import Environment, Report

__all__ = ["FORMATS", "MARKER", "Bundle", "Config", "export", "read_config"]


def export(  # noqa: PLR0913 - what each of the other steps gave, and how to write it
    detection: Detection,
    plan: Plan,
    environment: Environment,
    report: Report,
    folder: Path,
    formats: Sequence[str] = tuple(FORMATS),
    *,
    figures: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write the chosen formats into `folder`, all or none; answer the paths written.

    `figures` maps file names to SVG texts that the report shows. Raises `BadInput` for an unknown format, and
    `WorkFailed` when a file of somebody else stands in the way (unless `overwrite`) or the folder cannot be written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise BadInput(
            _("There is no format called {format}.").format(format=unknown[0]),
            hint=_("Choose from: {formats}.").format(formats=", ".join(FORMATS)),
        )
    pictures = figures or {}
    bundle = clean(
        Bundle(
            machine=detection.machine,
            findings=detection.findings,
            plan=plan,
            environment=environment,
            report=report,
            figures=tuple(pictures),
        )
    )
    texts = {name: FORMATS[name](bundle) for name in dict.fromkeys(formats)}
    return write_all(folder, {**texts, **_marked(pictures)}, overwrite=overwrite)


def _marked(pictures: Mapping[str, str]) -> dict[str, str]:
    return {name: f"<!-- {MARKER} -->\n{svg}" for name, svg in pictures.items()}
