"""Detect something in a video, which TorchCodec reads."""

import lab_detector
import torch
import torchcodec

needed = {"1": "2.10", "2": "2.11"}[lab_detector.__version__[0]]
if not torch.__version__.startswith(needed):
    raise SystemExit(f"lab-detector {lab_detector.__version__} needs torch {needed}, and this is {torch.__version__}")
print(f"read by {torchcodec.__name__} beside torch {torch.__version__}")
