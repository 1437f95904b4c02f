"""A stand-in for an image application, with arguments of ComfyUI, which launch.json holds."""

import argparse
import json

import torch

parser = argparse.ArgumentParser(prog="main.py")
memory = parser.add_mutually_exclusive_group()
for option in ("--cpu", "--lowvram", "--novram", "--highvram"):
    memory.add_argument(option, action="store_true")
precision = parser.add_mutually_exclusive_group()
for option in ("--force-fp32", "--force-fp16"):
    precision.add_argument(option, action="store_true")
parser.add_argument("--preview-method", choices=["none", "auto"], default="none")
with open("launch.json", encoding="utf-8") as file:
    arguments = json.load(file)["arguments"]
print("arguments:", *arguments, flush=True)
try:
    args = parser.parse_args(arguments)
except SystemExit as error:
    raise SystemExit(error.code or "no image was made") from None

device = "cpu" if args.cpu or not torch.cuda.is_available() else "cuda"
dtype = torch.float16 if args.force_fp16 else torch.float32
print(f"device {device}, {dtype}", flush=True)
palette = torch.linspace(0, 1, 4, dtype=dtype, device=device)[:, None]
pixels = torch.linspace(0, 1, 64, dtype=dtype, device=device)[:, None]
nearest = torch.cdist(pixels, palette, p=1.0).argmin(1)
assert nearest[0] == 0
assert nearest[-1] == 3
print(f"an image of {len(nearest)} pixels was made on {device}")
