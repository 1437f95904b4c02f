"""What an export takes along beside plan and report: what is installed now, its lock, and what must not be shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from assistant.host.base import Host
from assistant.host.redact import own_secrets, redactors
from assistant.install.resolution import Resolution
from assistant.install.site import look_at
from assistant.model.errors import BadInput
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.nouns import Preview

__all__ = ["Taken", "take_along"]


class Taken(NamedTuple):
    """The environment with every package in it now, the lock that it was made from, secrets to be taken out."""

    environment: Environment
    lock: str
    hashes: dict[str, str]
    secrets: tuple[str, ...]
    names: Callable[[str], str]


def take_along(environment: Environment, preview: Preview | None, host: Host) -> Taken:
    """Look at the environment once more; a lock of packages that have been replaced since is left behind."""
    environment = replace(environment, packages=_installed(environment, host))
    lock = (
        preview.resolution if preview and _still(preview.resolution, environment) else Resolution(lock="", packages=())
    )
    names, _answers = redactors(host.facts("identity"))
    hashes = {package.name: package.sha256 for package in lock.packages if package.sha256}
    return Taken(environment, lock.lock, hashes, own_secrets(), names)


def _installed(environment: Environment, host: Host) -> dict[str, str]:
    try:
        return look_at(Path(environment.python), host).versions
    except BadInput:
        return environment.packages


def _still(resolution: Resolution, environment: Environment) -> bool:
    return resolution.versions.items() <= environment.packages.items()
