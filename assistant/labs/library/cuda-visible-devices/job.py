"""Start a job with the variables of a file; usage: job.py FILE CARDS.

The cards of the machine are pretended, as many as CARDS says. Which of them a program may see is worked out by
PyTorch's own code from the variable, as on any machine with NVIDIA's driver.
"""

import os
import sys

import torch

path, cards = sys.argv[1], int(sys.argv[2])
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
with open(path, encoding="utf-8") as file:
    lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
for name, _sign, value in (line.removeprefix("export ").partition("=") for line in lines):
    print(f"{name}={value}", flush=True)
    os.environ[name] = value

torch.cuda._raw_device_count_nvml = lambda: cards
seen = torch.cuda._device_count_nvml()
if seen == 0:
    raise RuntimeError("No CUDA GPUs are available")
if seen < cards:
    raise RuntimeError(f"CUDA error: invalid device ordinal: cuda:{cards - 1}, and {seen} of {cards} cards can be seen")
print(f"the job runs on {seen} cards")
