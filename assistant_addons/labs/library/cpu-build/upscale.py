"""Compute a little on the GPU with a package that needs torch."""

import torch
import upscaler

numbers = torch.ones(1000, device="cuda")
assert (numbers + numbers).sum().item() == 2000
print(f"upscaled on {torch.cuda.get_device_name(0)} with torch {torch.__version__} and {upscaler.__name__}")
