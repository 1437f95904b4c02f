"""Compare the tables in tables.json with those in double precision."""

import json
import sys
from pathlib import Path

import torch

CASES = [(64, 10000.0, 17), (128, 10000.0, 7), (128, 500000.0, 31)]
LENGTH, MOST = 16384, 0.002  # half precision holds numbers up to 1 to 0.0005

for (size, base, step), told in zip(CASES, json.loads(Path("tables.json").read_text(encoding="utf-8")), strict=True):
    positions = torch.arange(0, LENGTH, step)
    angles = positions.double()[:, None] / base ** (torch.arange(0, size, 2).double() / size)
    rows = zip(("cos", "sin"), (angles.cos(), angles.sin()), told["kinds"], told["values"], strict=True)
    for name, right, kind, values in rows:
        if kind != "torch.float16":
            sys.exit(f"{name} is {kind}, and the model wants torch.float16")
        found = torch.tensor(values, dtype=torch.float64)
        if found.shape != right.shape:
            sys.exit(f"{name} has the shape {tuple(found.shape)} in place of {tuple(right.shape)}")
        wrong = (found - right).abs().amax(1)
        if not bool((wrong < MOST).all()):
            for place in (17, 255, 2040, 4097, 15997):
                at = min(place // step, len(wrong) - 1)
                print(f"position {int(positions[at]):5d}: {name} is off by {float(wrong[at]):.4f}")
            sys.exit(f"{name} is off by up to {float(wrong.max()):.2f}, with base {base:.0f} and {size} channels")
print("the tables are right up to position", LENGTH)
