"""Exports one network with one of torch's exporters: `exporting.py NAME dynamo|script FOLDER`, or names all of them.

The model lies in the folder as `model.onnx`, beside it the inputs to run it on, in the order of its own.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from children import tell
from feeds import inputs_of
from networks_other import lstm  # noqa: F401 - what these modules define enters itself
from networks_sound import vits  # noqa: F401 - likewise
from networks_text import bert  # noqa: F401 - likewise
from networks_vision import resnet  # noqa: F401 - likewise
from torch import Tensor, nn
from whole import NETWORKS, Open

DRAWS = 3
SETTLING = 4  # batches that a normalisation sees before its figures are kept


def settled(module: nn.Module, inputs: dict[str, Tensor]) -> nn.Module:
    """Let normalisations by batches learn the figures of what they see, which random weights do not have."""
    norms = [one for one in module.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    module.eval()
    for norm in norms:
        norm.train()
        norm.momentum = 0.7
    with torch.no_grad():
        for _number in range(SETTLING if norms else 0):
            module(*inputs.values())
    return module.eval()


def export(module: nn.Module, inputs: dict[str, Tensor], path: Path, exporter: str, sizes: Open) -> None:
    """Write the model with the exporter's own defaults, weights inside."""
    names = list(inputs)
    if exporter == "script":
        torch.onnx.export(
            module, tuple(inputs.values()), path, input_names=names, dynamo=False, dynamic_axes=sizes or None
        )
        return
    shapes = tuple(dict.fromkeys(sizes.get(name, {}), torch.export.Dim.DYNAMIC) or None for name in names)
    torch.onnx.export(
        module,
        tuple(inputs.values()),
        path,
        input_names=names,
        dynamo=True,
        external_data=False,
        verbose=False,
        dynamic_shapes=_nested(module, shapes) if sizes else None,
    )


def _nested(module: nn.Module, shapes: tuple[dict[int, object] | None, ...]) -> tuple[object, ...]:
    """Return the shapes as `forward` takes its inputs: those of `*names` as a tuple in their place."""
    code = module.forward.__code__
    plain = code.co_argcount - 1
    return (*shapes[:plain], shapes[plain:]) if code.co_flags & 0x04 else shapes


def main(name: str, exporter: str, folder: Path) -> None:
    """Export the network and write inputs for it; tell what went wrong, and the seconds."""
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    made, start = NETWORKS[name], time.perf_counter()
    module, draw = made.make()
    module = settled(module, draw())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    with torch.no_grad():
        try:
            export(module, draw(), path, exporter, made.open)
        except Exception as error:
            if not made.open or exporter == "script":
                raise
            tell(closed=f"{type(error).__name__}")  # what does not export with open sizes does with fixed ones
            export(module, draw(), path, exporter, {})
    order = [info.name for info in inputs_of(onnx.load(path, load_external_data=False))]
    for number in range(DRAWS):
        torch.manual_seed(100 + number)
        given = draw()
        np.savez(folder / f"inputs{number}.npz", **{str(at): given[one].numpy() for at, one in enumerate(order)})
    tell(exported=True, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        tell(names=sorted(NETWORKS))
    else:
        main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
