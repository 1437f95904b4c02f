"""Compute a little on the GPU with whatever torch is installed."""

import torch

numbers = torch.ones(1000, device="cuda")
assert (numbers + numbers).sum().item() == 2000
print(f"computed on {torch.cuda.get_device_name(0)} with torch {torch.__version__}, CUDA {torch.version.cuda}")
