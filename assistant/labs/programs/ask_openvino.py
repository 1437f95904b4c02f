"""A program that wants ONNX Runtime's OpenVINO provider and nothing less."""

import onnxruntime

found = onnxruntime.get_available_providers()
if "OpenVINOExecutionProvider" not in found:
    raise SystemExit(f"OpenVINOExecutionProvider is not in the available providers {found}")
print("the OpenVINO provider is there")
