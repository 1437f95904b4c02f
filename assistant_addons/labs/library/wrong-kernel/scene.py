"""A kernel that starts another Python than the one that torch was installed for."""

import json

from assistant_addons.labs.workspace import Workspace


def breaks(space: Workspace) -> None:
    """Make two environments; torch is in `work`, and the kernel starts the other one."""
    space.install("ipykernel")
    space.venv("work", space.torch)
    space.install("ipykernel", name="work")
    argv = [str(space.python()), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "lab", "language": "python"}
    space.write(space.folder / "kernels" / "lab" / "kernel.json", json.dumps(kernel, indent=2))
