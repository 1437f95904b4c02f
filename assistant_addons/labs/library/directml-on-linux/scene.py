"""torch-directml on a Linux that is not WSL: the wheel installs, the library behind it is not there."""

from collections.abc import Mapping

from assistant_addons.labs.workspace import Workspace


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return a launch file that asks for DirectML."""
    return {"launch.json": '{"arguments": ["--directml"]}\n'}


def breaks(space: Workspace) -> None:
    """Install torch-directml beside torch."""
    space.install("--no-deps", "torch-directml==0.2.5.dev240914")
