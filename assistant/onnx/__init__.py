"""The onnx room."""
