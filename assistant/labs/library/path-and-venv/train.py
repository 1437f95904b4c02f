"""Compute with torch; usage: train.py NUMBER."""

import sys

import torch

print(int(torch.full((2,), int(sys.argv[1])).sum()))
