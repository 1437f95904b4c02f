"""A module that was compiled for NumPy 1, with NumPy 2."""

from assistant_addons.labs.workspace import Workspace


def breaks(space: Workspace) -> None:
    """Install the last ONNX Runtime that was built for NumPy 1, with a newer NumPy."""
    space.install("--no-deps", "onnxruntime==1.18.1", "numpy==2.1.3")
    space.install("coloredlogs", "flatbuffers", "packaging", "protobuf", "sympy")
