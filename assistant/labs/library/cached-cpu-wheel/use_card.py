"""Use the card by torch."""

import torch

print("torch", torch.__version__, "built for CUDA", torch.version.cuda)
print("on the card:", torch.ones(2, device="cuda"))
