"""What the labs on the pretended device share: an environment where torch finds it, and the program that judges."""

from __future__ import annotations

from assistant.i18n import _, say
from assistant.labs.scene import RUNTIME, Outcome, Scene
from assistant.labs.stand_ins import CODE
from assistant.labs.wheels import wheel
from assistant.model.errors import BadInput

MODEL = "import torch\n\n\ndef solve(systems, sides):\n    return {solved}\n"
_PLAYS = {"mps": "as_mps", "directml": "as_directml"}
_WHEEL = "pretend-1.0-py3-none-any.whl"
_NEEDED = """
import torch
from torch.utils import backend_registration
print(torch.__version__, hasattr(backend_registration, "_setup_privateuseone_for_python_backend"))"""


def offer_device(scene: Scene, plays: str) -> None:
    """Make an environment where `import torch` brings the device, with the program and the fallback beside the model.

    The device plays "mps" or "directml". Raises `BadInput` where the torch at hand is too old for it.
    """
    version, _space, able = scene.call(scene.torch, "-c", _NEEDED).last.partition(" ")
    if able != "True":
        raise BadInput(
            _("This lab needs torch 2.10 or newer, and {version} is installed.", version=version),
            hint=_("Run `assistant setup`, which installs the newest, and start the lab again."),
        )
    scene.venv(beside_torch=True)
    scene.write("fallback.py", (RUNTIME / "fallback.py").read_bytes())
    _put(scene, plays)


def _put(scene: Scene, plays: str) -> None:
    """Install the device and write the program, whatever has become of their files."""
    files = {"pretend.py": (CODE / "pretend.py").read_text("utf-8")}
    entry_points = f"[torch.backends]\npretend = pretend:{_PLAYS[plays]}\n"
    scene.write(_WHEEL, wheel("pretend", "1.0", files, entry_points=entry_points))
    scene.install("--no-deps", "--reinstall", f"./{_WHEEL}")
    scene.write("solve.py", (CODE / "solve.py").read_bytes())


def solve(scene: Scene, plays: str, *most: str) -> Outcome:
    """Run the program with the learner's model; `most` copies are allowed, any number by default."""
    _put(scene, plays)
    return scene.call(scene.python(), "solve.py", "model.py", *most)


def solve_fault(scene: Scene, plays: str, *most: str) -> str:
    """Return what is still wrong with the model; "" when nothing is."""
    done = solve(scene, plays, *most)
    right = not done.status and done.last == "the solution is right"
    return "" if right else say("The program still fails: {reason}", reason=done.last)
