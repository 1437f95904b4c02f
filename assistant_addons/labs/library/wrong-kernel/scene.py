"""A kernel that starts another Python than the one that torch was installed for."""

import json
import sys

from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Make two environments; torch is in `work`, and the kernel starts the other one."""
    scene.venv()
    scene.install("ipykernel")
    scene.venv("work", beside_torch=True)
    scene.install("ipykernel", name="work")
    argv = [str(scene.python()), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "lab", "language": "python"}
    scene.write("kernels/lab/kernel.json", json.dumps(kernel))


def symptom(scene: Scene) -> Outcome:
    """Run a program in the kernel; jupyter's own runner ends with 0 whatever the program does, so its words count."""
    done = scene.program("notebook_kernel.py", "lab", python=sys.executable)
    return Outcome(0 if done.last == "torch computes in this kernel" else 1, done.text)
