"""A stand-in for an image program: it computes on DirectML where its launch settings say so, else on the CPU."""

import json

with open("launch.json", encoding="utf-8") as file:
    arguments = json.load(file)["arguments"]
import torch

device = torch.device("cpu")
if "--directml" in arguments:
    import torch_directml

    device = torch_directml.device()
image = torch.ones(3, 3, device=device) @ torch.ones(3, 3, device=device)
assert image.sum().item() == 27
print(f"an image was made on {device}")
