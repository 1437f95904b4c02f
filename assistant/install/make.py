"""Make a new environment: begin, fill, register, mark finished; whatever stops it, what was begun is taken back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from assistant.host.base import Host
from assistant.i18n import _
from assistant.install.kernel import register_kernel
from assistant.install.resolution import Resolution
from assistant.install.target import BUILDING, MARKER, check_disk, check_target, interpreter
from assistant.install.uv import Installed, Installer, Transfer, install_command, read_line, venv_command
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Progress, Sink, Step
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, to_json
from assistant.model.report import Environment

__all__ = ["Marker", "commands", "make_environment", "read_marker", "reusable"]


class Marker(Record, frozen=True, kw_only=True):
    """What stands in a finished environment: the plan that it was made for, and what it holds."""

    schema: Literal[1] = 1
    plan: Plan
    environment: Environment


def commands(python: str, target: Path) -> tuple[tuple[str, ...], ...]:
    """List the commands that an installation runs, as they would be typed."""
    steps = (venv_command(python, target), install_command(interpreter(target), Path("pylock.toml")))
    return tuple((Path(step[0]).stem, *step[1:]) for step in steps)


def reusable(target: Path, resolution: Resolution) -> Environment | None:
    """Answer an environment of ours that already holds exactly what the resolution names, else None."""
    marker = read_marker(target)
    return marker.environment if marker and marker.environment.packages == _versions(resolution) else None


def read_marker(target: Path) -> Marker | None:
    """Read what an environment of ours says of itself; None for any other folder, or one whose Python is gone."""
    try:
        marker = from_json((target / MARKER).read_bytes(), Marker, MARKER)
    except (OSError, BadInput):
        return None
    return marker if interpreter(target).exists() and marker.environment.path == str(target) else None


def make_environment(plan: Plan, resolution: Resolution, target: Path, host: Host, installer: Installer) -> Environment:
    """Make `target` a finished environment holding the resolution, known to JupyterLab as a kernel.

    Raises `BadInput` or `WorkFailed` before anything is touched when the target cannot be used, and
    `WorkFailed` or `Cancelled` with everything taken back when the work stops midway.
    """
    check_target(target)
    check_disk(host, target, resolution.download)
    with _taken_back_on_failure(target):
        _fill(resolution, target, installer)
        kernel = register_kernel(plan, interpreter(target))
        made = Environment(
            path=str(target), python=str(interpreter(target)), kernel=kernel, packages=_versions(resolution)
        )
        _finish(target, plan, made)
    return made


@contextmanager
def _taken_back_on_failure(target: Path) -> Iterator[None]:
    """Hold the target as a building site; on any failure leave the file system as it was found."""
    made = [folder for folder in (target, *target.parents) if not folder.exists()]
    _begin(target)
    try:
        yield
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        for parent in made[1:]:
            with suppress(OSError):
                parent.rmdir()
        if target not in made:
            target.mkdir()
        raise


def _begin(target: Path) -> None:
    try:
        if target.exists():
            shutil.rmtree(target)
        target.mkdir(parents=True)
        (target / BUILDING).write_text(str(os.getpid()), encoding="utf-8")
    except OSError as error:
        raise WorkFailed(
            _("{path} cannot be made: {reason}.").format(path=target, reason=error.strerror),
            hint=_("Choose a folder of your own with --target."),
        ) from error


def _finish(target: Path, plan: Plan, made: Environment) -> None:
    (target / MARKER).write_text(to_json(Marker(plan=plan, environment=made), indent=1), encoding="utf-8")
    (target / BUILDING).unlink()


def _fill(resolution: Resolution, target: Path, installer: Installer) -> None:
    lock = target / "pylock.toml"
    progress = _Counted(resolution, installer.sink)
    for argv in (venv_command(installer.python, target), install_command(interpreter(target), lock)):
        if argv[1] == "pip":
            lock.write_text(resolution.lock, encoding="utf-8")
        if installer.run(argv, progress.line):
            raise WorkFailed(
                _("The installation stopped: {reason}").format(reason=progress.last_words()),
                hint=_("Everything was taken back. Mend the cause and start again; nothing is downloaded twice."),
            )


class _Counted:
    """Counts bytes while packages arrive, then packages while they are put in place."""

    def __init__(self, resolution: Resolution, sink: Sink) -> None:
        self._sizes = {_key(package.name): package.size or 0 for package in resolution.packages}
        self._total = len(resolution.packages)
        self._sink = sink
        self._expected = self._arrived = self._placed = 0
        self._lines: list[str] = []

    def line(self, line: str) -> None:
        """Take one line of uv's output."""
        self._lines.append(line)
        match read_line(line):
            case Transfer(name=name, finished=False):
                self._expected += self._sizes.get(_key(name), 0)
                self._tell_bytes(_("Downloading {package}").format(package=name))
            case Transfer(name=name):
                self._arrived += self._sizes.get(_key(name), 0)
                self._tell_bytes(_("Downloaded {package}").format(package=name))
            case Installed(name=name):
                self._placed += 1
                text = _("Installed {package}").format(package=name)
                self._sink(
                    Progress(step=Step.INSTALL, text=text, done=self._placed, total=self._total, unit="packages")
                )

    def last_words(self) -> str:
        """Give uv's last lines, as one."""
        return " ".join(line.strip() for line in self._lines[-6:] if line.strip())[:600]

    def _tell_bytes(self, text: str) -> None:
        total = self._expected or None
        self._sink(Progress(step=Step.INSTALL, text=text, done=self._arrived, total=total, unit="bytes"))


def _versions(resolution: Resolution) -> dict[str, str]:
    return {package.name: package.version for package in resolution.packages}


def _key(name: str) -> str:
    return name.lower().replace("_", "-")
