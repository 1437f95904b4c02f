"""Exports a setup: with what is installed now, its lock as long as that still tells it, and nothing private."""

from __future__ import annotations

from pathlib import Path

from assistant.export import export
from assistant.host.base import Host
from assistant.host.identity import known_here
from assistant.host.parallel import Ahead
from assistant.i18n import _
from assistant.install import Resolution, Tools, look_at
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.nouns import Exported, State, known
from assistant.verify import figures


def exported(state: State, tools: Tools) -> Exported:
    """Write the files; a lock of packages that have been replaced since is left behind."""
    made, report = known(state.environment), known(state.report)
    folder = Path(state.folder).expanduser().absolute() if state.folder else Path(made.path) / "assistant-export"
    tools.sink(Progress(step=Step.EXPORT, text=_("Writing the files")))
    looking = Ahead(lambda: _installed(made, tools.host))  # its Python takes as long as the pictures
    drawn = figures(report)
    environment = replace(made, packages=looking.result())
    resolution = state.preview.resolution if state.preview else None
    lock = resolution if resolution and _still(resolution, environment) else Resolution(lock="", packages=())
    question = _("Files that the assistant did not write stand in {folder}: {names}. Replace them?")
    written = export(
        known(state.detection),
        known(state.plan),
        environment,
        report,
        folder,
        formats=state.formats,
        figures=drawn,
        lock=lock.lock,
        hashes={package.name: package.sha256 for package in lock.packages if package.sha256},
        known=known_here(),
        overwrite=lambda paths: (
            state.overwrite or tools.ask(question.format(folder=folder, names=", ".join(path.name for path in paths)))
        ),
    )
    return Exported(files=tuple(str(path) for path in written))


def _installed(environment: Environment, host: Host) -> dict[str, str]:
    try:
        return look_at(Path(environment.python), host).versions
    except BadInput:
        return environment.packages


def _still(resolution: Resolution, environment: Environment) -> bool:
    return resolution.versions.items() <= environment.packages.items()
