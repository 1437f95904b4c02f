"""A container that computes on the same device: `Dockerfile` and `devcontainer.json`, with what reaches the GPU."""

from __future__ import annotations

import re
import shlex
from functools import cache

from assistant.catalog.tables import Table, read_tables
from assistant.export.bundle import Bundle, Unsuited
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.i18n import _
from assistant.model.plan import Backend
from assistant.model.record import Record


class Container(Record, frozen=True):
    """What a container needs for a backend: its base image ("{python}" is filled in), drivers from Debian, variables.

    `run` are the options of `docker run` that hand the device over; `wsl` rows hold under WSL, where it is another one.
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


def dockerfile_text(bundle: Bundle) -> str:
    """Write a `Dockerfile` that installs `requirements.txt` and ends by telling which device `device.py` finds."""
    row = _row(bundle)
    return filled(
        "Dockerfile",
        {"docker": _quoted},
        image=row.image.format(python=bundle.plan.python),
        apt=row.apt,
        env={**row.env, **variables(bundle)},
        run=shlex.join(row.run),
        tag=f"torch-{bundle.plan.variant}".replace("/", "-").lower(),
    )


def devcontainer_text(bundle: Bundle) -> str:
    """Write `devcontainer.json`: the Dockerfile above, opened in VS Code or Codespaces with the same device."""
    row = _row(bundle)
    told = {
        "name": f"PyTorch {bundle.plan.torch} ({bundle.plan.variant})",
        "build": {"dockerfile": "../Dockerfile", "context": ".."},
        "runArgs": list(row.run),
        "containerEnv": {**row.env, **variables(bundle)},
        "remoteUser": "root",
        "customizations": {"vscode": {"extensions": ["ms-python.python", "ms-toolsai.jupyter"]}},
    }
    if bundle.plan.backend is Backend.CUDA:
        told["hostRequirements"] = {"gpu": "optional"}
    return filled("devcontainer.json", told=told)


def _row(bundle: Bundle) -> Container:
    """Find the row; raise `Unsuited` where no container reaches the device."""
    machine, plan = bundle.machine, bundle.plan
    if (machine.os or "linux") != "linux":
        why = _("A container runs Linux, and these packages are for {system}.", system=machine.os)
    elif not re.fullmatch(r"\d\.\d+", plan.python):
        why = _("There is no base image with Python {python}.", python=plan.python)
    else:
        rows = [row for row in _rows() if row.backend is plan.backend]
        fitting = [row for row in rows if row.wsl == bool(machine.wsl)] or [row for row in rows if not row.wsl]
        if fitting:
            return fitting[0]
        why = _("No container reaches the device of the backend {backend} on this system.", backend=plan.backend.value)
    raise Unsuited(why, hint=_("Choose another format, requirements.txt say."))


def _quoted(value: str) -> str:
    """Quote as a Dockerfile reads it: within double quotes it expands $ and takes backslashes."""
    return '"{}"'.format(re.sub(r'([\\"$])', r"\\\1", value))


@cache
def _rows() -> tuple[Container, ...]:
    return read_tables("containers", ContainerTables).containers.rows
