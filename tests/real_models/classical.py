"""Brings torchvision, also beside a torch for another device than its compiled part, of which networks need one thing.

That is the non-maximum suppression, which is defined here where the compiled part does not load.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor


def _suppressed(boxes: Tensor, scores: Tensor, most: float) -> Tensor:
    """Return which boxes are left, the best first, when those that overlap a better one by more than `most` go."""
    left, kept = scores.argsort(descending=True), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        low, high = torch.maximum(boxes[best, :2], boxes[left, :2]), torch.minimum(boxes[best, 2:], boxes[left, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        left = left[shared <= most * (area[best] + area[left] - shared)]
    return torch.stack(kept)


def _brought() -> ModuleType:
    try:
        return import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torch.library.impl("torchvision::nms", "CPU", _suppressed)
        return import_module("torchvision")


torchvision = _brought()
