"""A compiled extension of torch that was built for another release."""

from assistant.labs.scene import Outcome, Scene

PACKAGE = "fbgemm-gpu-cpu"
OTHER, ANOTHER = "1.7.0", "1.9.0"
AHEAD = 5  # fbgemm 1.N is built for torch 2.(N + 5): https://docs.pytorch.org/FBGEMM/general/Releases.html
_MINOR = "import torch; print(torch.__version__.split('.')[1])"


def breaks(scene: Scene) -> None:
    """Install a release of the extension that does not go with the torch that is there."""
    scene.venv(beside_torch=True)
    release = f"1.{int(scene.call(scene.torch, '-c', _MINOR).last) - AHEAD}.0"
    scene.install("--no-deps", f"{PACKAGE}=={ANOTHER if release == OTHER else OTHER}")
    scene.names = {"{fitting}": release}


def symptom(scene: Scene) -> Outcome:
    """Compute with the extension."""
    return scene.program("sum_up.py")


def fault(scene: Scene) -> str:
    """Want the extension as its makers built it, and a right result."""
    return scene.wrong("altered") if scene.altered(PACKAGE) else scene.fails(symptom(scene))
