"""A program that wants ONNX Runtime's OpenVINO provider and nothing less; a model would ask for it in the same way."""

import warnings

import onnxruntime
from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args

warnings.simplefilter("error")  # ONNX Runtime warns, and would go on with the CPU
check_and_normalize_provider_args(["OpenVINOExecutionProvider"], None, onnxruntime.get_available_providers())
print("the OpenVINO provider is there")
