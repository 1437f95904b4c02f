"""A module that was compiled for NumPy 1, with NumPy 2."""

from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Install the last ONNX Runtime that was built for NumPy 1, with a newer NumPy."""
    scene.venv()
    scene.install("--no-deps", "onnxruntime==1.18.1", "numpy==2.1.3")
    scene.install("coloredlogs", "flatbuffers", "packaging", "protobuf", "sympy")


def symptom(scene: Scene) -> Outcome:
    """Import it: Python goes on after the complaint with half a module, so any other output is a failure."""
    done = scene.call(scene.python(), "-c", "import onnxruntime; print(len(onnxruntime.get_available_providers()) > 0)")
    return Outcome(0, "") if done.text.strip() == "True" else Outcome(1, done.text.strip().removesuffix("True"))


def fault(scene: Scene) -> str:
    """Want packages as their makers built them, and an import without a complaint."""
    if any(scene.altered(name) for name in ("onnxruntime", "numpy")):
        return scene.wrong("altered")
    return scene.fails(symptom(scene))
