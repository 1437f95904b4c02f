"""A kernel that starts another Python than the one that torch was installed for."""

import json
from importlib.util import find_spec

from assistant.api import BadInput, _
from assistant_addons.labs.workspace import Workspace


def breaks(space: Workspace) -> None:
    """Make a second environment with torch, `project`; the kernel starts the first one, which sees the assistant's own.

    Raises `BadInput` where that has torch, too.
    """
    if find_spec("torch"):
        raise BadInput(
            _("torch is in the assistant's own environment, so this lab's kernel would find it."),
            hint=_("Choose another lab, or start the assistant from an environment of its own."),
        )
    space.venv("project", space.torch)
    if space.call(space.python("project"), "-c", "import ipykernel").status:
        space.install("ipykernel", name="project")
    argv = [str(space.python()), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "lab", "language": "python"}
    space.write(space.folder / "kernels" / "lab" / "kernel.json", json.dumps(kernel, indent=2))
