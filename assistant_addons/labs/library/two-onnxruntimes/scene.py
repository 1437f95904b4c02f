"""Two flavours of ONNX Runtime in one environment."""

from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Install the flavour that the program wants, then the plain one over it."""
    scene.venv()
    scene.install("onnxruntime-openvino")
    scene.install("onnxruntime")


def symptom(scene: Scene) -> Outcome:
    """Ask for the provider."""
    return scene.program("ask_openvino.py")


def fault(scene: Scene) -> str:
    """Want one flavour alone, and the provider."""
    listed = scene.uv("pip", "list", "--python", str(scene.python()), "--format", "freeze").text.splitlines()
    flavours = [line for line in listed if line.startswith("onnxruntime")]
    if len(flavours) != 1:
        return scene.wrong("flavours", count=len(flavours))
    return scene.fails(symptom(scene)) or (scene.wrong("altered") if scene.altered("onnxruntime-openvino") else "")
