"""A container that computes on the same device, for Docker and VS Code, with what reaches the GPU."""

from __future__ import annotations

import re
import shlex
from functools import cache

from assistant.catalog.tables import Table, read_tables
from assistant.export.setup import Setup, Unsuited
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.i18n import _
from assistant.model.plan import Backend
from assistant.model.record import Record


class Container(Record, frozen=True):
    """What a container needs for a backend: its base image ("{python}" is filled in), drivers from Debian, variables.

    `run` are the options of `docker run` that hand over the device. Under WSL the device is another one: where a
    backend has a row with `wsl`, that row holds there.
    """

    backend: Backend
    image: str
    run: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    env: dict[str, str] = {}
    wsl: bool = False
    note: str = ""


class ContainerTables(Record, frozen=True):
    """The file of containers."""

    containers: Table[Container]


def dockerfile_text(setup: Setup) -> str:
    """Write a `Dockerfile` that installs `requirements.txt`; the container prints which device `device.py` finds."""
    row = _container_of(setup)
    return filled(
        "Dockerfile",
        {"docker": _quoted},
        image=row.image.format(python=setup.plan.python),
        apt=row.apt,
        env={**row.env, **variables(setup)},
        run=shlex.join(row.run),
        tag=f"torch-{setup.plan.variant}".replace("/", "-").lower(),
    )


def devcontainer_text(setup: Setup) -> str:
    """Write `devcontainer.json`: the same Dockerfile, opened in VS Code or Codespaces with the same device."""
    row = _container_of(setup)
    settings = {
        "name": f"PyTorch {setup.plan.torch} ({setup.plan.variant})",
        "build": {"dockerfile": "../Dockerfile", "context": ".."},
        "runArgs": list(row.run),
        "containerEnv": {**row.env, **variables(setup)},
        "remoteUser": "root",
        "customizations": {"vscode": {"extensions": ["ms-python.python", "ms-toolsai.jupyter"]}},
    }
    if setup.plan.backend is Backend.CUDA:
        settings["hostRequirements"] = {"gpu": "optional"}
    return filled("devcontainer.json", settings=settings)


def _container_of(setup: Setup) -> Container:
    """Return the row for this setup; raise `Unsuited` where no container reaches its device."""
    machine, plan = setup.machine, setup.plan
    if (machine.os or "linux") != "linux":
        why = _("A container runs Linux, and these packages are for {system}.", system=machine.os)
    elif not re.fullmatch(r"\d\.\d+", plan.python):
        why = _("There is no base image with Python {python}.", python=plan.python)
    else:
        rows = [row for row in _rows() if row.backend is plan.backend]
        fitting = [row for row in rows if row.wsl == bool(machine.wsl)] or [row for row in rows if not row.wsl]
        if fitting:
            return fitting[0]
        why = _("On this system no container can reach a device of the backend {backend}.", backend=plan.backend.title)
    raise Unsuited(why, hint=_("Choose another format, such as requirements.txt."))


def _quoted(value: str) -> str:
    """Quote a value for `ENV`, which expands `$` and reads backslashes within double quotes.

    https://docs.docker.com/reference/dockerfile/#environment-replacement
    """
    return '"{}"'.format(re.sub(r'([\\"$])', r"\\\1", value))


@cache
def _rows() -> tuple[Container, ...]:
    return read_tables("containers", ContainerTables).containers.rows
