"""Exports small models with torch, run by a Python that has it: models.py FOLDER OPSET OPSET and so on."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from torch import nn


class MobileNet(nn.Module):
    """Depthwise and pointwise convolutions, batch normalisation, ReLU6, a pooled head."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, stride in ((3, 16, 2), (16, 24, 2), (24, 24, 1)):
            layers += [nn.Conv2d(before, before, 3, stride, 1, groups=before), nn.BatchNorm2d(before), nn.ReLU6()]
            layers += [nn.Conv2d(before, after, 1), nn.BatchNorm2d(after), nn.ReLU6()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify an image of 3 by 32 by 32."""
        return self.head(nn.functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


class Transformer(nn.Module):
    """An embedding and a block of attention and feed-forward with layer normalisation and GELU; the length is open."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.norm, self.last = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.feed = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens of shape (batch, length)."""
        x = self.embed(tokens)
        batch, length, _ = x.shape
        parts = self.qkv(self.norm(x)).reshape(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(parts[0] @ parts[1].transpose(-1, -2) / 8**0.5, -1)
        x = x + self.out((scores @ parts[2]).transpose(1, 2).reshape(batch, length, 32))
        return x + self.feed(self.last(x))


class Recurrent(nn.Module):
    """An LSTM after a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.lstm = nn.LSTM(16, 12, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read a sequence of shape (batch, 5, 8)."""
        return self.lstm(self.gru(x)[0])[0]


class Vocoder(nn.Module):
    """1-D convolutions and an upsampling one, as in a vocoder."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.up = nn.Conv1d(8, 16, 7, padding=3), nn.ConvTranspose1d(16, 8, 8, 4, 2)
        self.after = nn.Conv1d(8, 1, 7, padding=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Turn frames of shape (batch, 8, frames) into sound."""
        x = nn.functional.leaky_relu(self.up(nn.functional.leaky_relu(self.before(x), 0.1)), 0.1)
        return torch.tanh(self.after(x + torch.sin(x) ** 2))


class Suppress(torch.autograd.Function):
    """Non-maximum suppression, which torch alone does not have, as ONNX's operator."""

    @staticmethod
    def forward(_context: object, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Keep nothing: only the shape counts while tracing."""
        del boxes
        return torch.zeros(scores.shape[-1], 3, dtype=torch.int64)

    @staticmethod
    def symbolic(graph: torch._C.Graph, boxes: torch.Value, scores: torch.Value) -> torch.Value:
        """Write the operator."""
        limits = (torch.tensor([5]), torch.tensor([0.5]), torch.tensor([0.01]))
        constants = [graph.op("Constant", value_t=limit) for limit in limits]
        return graph.op("NonMaxSuppression", boxes, scores, *constants)


class Detector(nn.Module):
    """Convolutions, then boxes and scores from which the best are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 4, 1), nn.ReLU(), nn.Conv2d(8, 6, 3, 2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give the boxes that are kept, (kept, 4)."""
        cells = self.body(x).flatten(2).transpose(1, 2)
        middle, size = cells[..., :2], torch.exp(cells[..., 2:4])
        boxes = torch.cat([middle - size / 2, middle + size / 2], -1)
        kept = Suppress.apply(boxes, torch.sigmoid(cells[..., 4:]).transpose(1, 2))
        return boxes[0].index_select(0, kept[:, 2])


EXAMPLES = {
    "mobilenet": (MobileNet, torch.rand(1, 3, 32, 32), {}),
    "transformer": (Transformer, torch.arange(6)[None], {"tokens": {1: "length"}}),
    "recurrent": (Recurrent, torch.rand(1, 5, 8), {}),
    "vocoder": (Vocoder, torch.rand(1, 8, 20), {}),
    "detector": (Detector, torch.rand(1, 3, 64, 64), {}),
}


def export(folder: Path, opsets: list[int]) -> None:
    """Write NAME-OPSET.onnx for each model and opset, the weights always the same."""
    for name, (kind, example, axes) in EXAMPLES.items():
        torch.manual_seed(0)
        model = kind().eval()
        for opset in opsets:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the older exporter announces its end; the newer one needs onnxscript
                torch.onnx.export(
                    model,
                    (example,),
                    str(folder / f"{name}-{opset}.onnx"),
                    opset_version=opset,
                    dynamo=False,
                    input_names=["tokens" if name == "transformer" else "x"],
                    dynamic_axes=axes,
                )


if __name__ == "__main__":
    export(Path(sys.argv[1]), [int(opset) for opset in sys.argv[2:]])
