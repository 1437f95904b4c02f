"""What the labs on the pretended device share: an environment where torch finds it, and the program that judges."""

from __future__ import annotations

from assistant.host.files import write_whole
from assistant.i18n import _, say
from assistant.labs.scene import PROGRAMS, RUNTIME, Outcome, Scene
from assistant.labs.wheels import wheel
from assistant.model.errors import BadInput

PLAYS = {"mps": "as_mps", "directml": "as_directml"}
_NEEDED = """
import torch
from torch.utils import backend_registration
print(torch.__version__, hasattr(backend_registration, "_setup_privateuseone_for_python_backend"))"""


def offer_device(scene: Scene, plays: str) -> None:
    """Make an environment where `import torch` brings the device, with the program and the fallback beside the model.

    Raises `BadInput` where the torch at hand is too old for the device.
    """
    version, _space, able = scene.call(scene.torch, "-c", _NEEDED).last.partition(" ")
    if able != "True":
        raise BadInput(
            _("This lab needs torch 2.10 or newer, and {version} is installed.", version=version),
            hint=_("Run `assistant setup`, which installs the newest, and start the lab again."),
        )
    scene.venv(beside_torch=True)
    files = {"pretend.py": (PROGRAMS / "pretend.py").read_text("utf-8")}
    entry_points = f"[torch.backends]\npretend = pretend:{PLAYS[plays]}\n"
    file = scene.folder / "pretend-1.0-py3-none-any.whl"
    write_whole(file, wheel("pretend", "1.0", files, entry_points=entry_points))
    scene.install("--no-deps", str(file))
    for path in (PROGRAMS / "solve.py", RUNTIME / "fallback.py"):
        scene.write(path.name, path.read_text("utf-8"))


def solve(scene: Scene, *most: str) -> Outcome:
    """Run the program with the learner's model; `most` copies are allowed, any number by default."""
    return scene.program("solve.py", str(scene.folder / "model.py"), *most)


def solve_fault(scene: Scene, *most: str) -> str:
    """Return what is still wrong with the model; "" when nothing is."""
    done = solve(scene, *most)
    if done.status or done.last != "the solution is right":
        return say("The program still fails: {reason}", reason=done.last)
    return ""
