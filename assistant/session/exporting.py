"""Exports a setup: what is installed now, its lock as long as that still holds, and nothing private."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from assistant.export import Setup, export
from assistant.host.base import Host
from assistant.host.live import known_here
from assistant.i18n import _
from assistant.install import Resolution, Tools, look_at
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.record import Record, replace
from assistant.model.report import Environment
from assistant.session.state import Exported, State, known


def exported(state: State, tools: Tools) -> Exported:
    """Write the files; the lock is left out where packages have been replaced since."""
    made, report = known(state.environment), known(state.report)
    chosen = state.choices.folder
    folder = Path(chosen).expanduser().absolute() if chosen else Path(made.path) / "assistant-export"
    tools.sink(Progress(step=Step.EXPORT, text=_("Writing the files")))
    environment = replace(made, packages=_installed(made, tools.host))
    lock = state.preview.resolution if state.preview else Resolution(lock="", packages=())
    if not lock.versions.items() <= environment.packages.items():
        lock = Resolution(lock="", packages=())
    question = _("{folder} holds files that the assistant did not write: {names}. Replace them?")
    detection = known(state.detection)
    setup = Setup(
        machine=detection.machine,
        findings=detection.findings,
        plan=known(state.plan),
        environment=environment,
        report=report,
        lock=lock.lock,
        hashes={package.name: package.sha256 for package in lock.packages if package.sha256},
    )
    written = export(
        setup,
        folder,
        state.choices.formats,
        purpose=state.choices.purpose,
        known=known_here(),
        overwrite=lambda paths: (
            state.choices.overwrite
            or tools.ask(question.format(folder=folder, names=", ".join(path.name for path in paths)))
        ),
    )
    return Exported(files=tuple(str(path) for path in written))


def _installed(environment: Environment, host: Host) -> dict[str, str]:
    """Return what an environment holds now; pip is its tool, and no part of what is rebuilt elsewhere."""
    try:
        found = look_at(Path(environment.python), host).versions
    except BadInput:
        found = environment.packages
    return {name: version for name, version in found.items() if name != "pip"}


class Download(Record, frozen=True):
    """An exported file with its content, for a browser that cannot reach the disk; `fault` says why it has none."""

    name: str
    path: str
    content: bytes = b""
    fault: str = ""


def packed(paths: Iterable[str]) -> bytes:
    """Put exported files into one zip, by their places in the folder of all; one that is gone is left out."""
    files = [file for file in downloads(paths) if not file.fault]
    root = Path(os.path.commonpath([Path(file.path).parent for file in files])) if files else Path()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as pack:
        for file in files:
            pack.writestr(Path(file.path).relative_to(root).as_posix(), file.content)
    return written.getvalue()


def downloads(paths: Iterable[str]) -> Iterator[Download]:
    """Read each file that was exported; one that is gone is named with the reason."""
    for path in map(Path, paths):
        try:
            yield Download(name=path.name, path=str(path), content=path.read_bytes())
        except OSError as error:
            yield Download(name=path.name, path=str(path), fault=error.strerror or str(error))
