"""Two flavours of ONNX Runtime in one environment."""

from assistant_addons.labs.workspace import Workspace


def breaks(space: Workspace) -> None:
    """Install the flavour that the program wants, then the plain one over it."""
    space.report("onnxruntime-openvino: 80 MB")
    space.install("onnxruntime-openvino")
    space.install("onnxruntime")
