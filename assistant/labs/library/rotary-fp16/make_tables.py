"""Work out the tables of rotary.py for short and long texts, and keep them in tables.json."""

import importlib.util
import json
from pathlib import Path

import torch

CASES = [(64, 10000.0, 17), (128, 10000.0, 7), (128, 500000.0, 31)]
LENGTH = 16384

spec = importlib.util.spec_from_file_location("rotary", "rotary.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
tables = []
for size, base, step in CASES:
    with torch.no_grad():
        found = module.rotary(torch.arange(0, LENGTH, step), size, base)
    kinds = [str(table.dtype) for table in found]
    tables.append({"kinds": kinds, "values": [table.float().tolist() for table in found]})
Path("tables.json").write_text(json.dumps(tables), encoding="utf-8")
