"""Exports networks with one of torch's exporters: `exporting.py dynamo|script FOLDER NAME…`, or names all of them.

Each model lies in a folder of its name as `model.onnx`, beside it the inputs to run it on, in the order of its own.
"""

from __future__ import annotations

import contextlib
import json
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


def one(name: str, exporter: str, folder: Path) -> None:
    """Export one network and write inputs for it."""
    torch.manual_seed(0)
    made = NETWORKS[name]
    module, draw = made.make()
    module = settled(module, draw())
    path = folder / "model.onnx"
    with torch.no_grad():
        try:
            export(module, draw(), path, exporter, made.open)
        except Exception:
            if not made.open or exporter == "script":
                raise
            export(module, draw(), path, exporter, {})  # what does not export with open sizes does with fixed ones
    order = [info.name for info in inputs_of(onnx.load(path, load_external_data=False))]
    for number in range(DRAWS):
        torch.manual_seed(100 + number)
        given = draw()
        np.savez(folder / f"inputs{number}.npz", **{str(at): given[one].numpy() for at, one in enumerate(order)})


def main(exporter: str, folder: Path, names: list[str]) -> None:
    """Export networks one after the other, and note and tell of each what went wrong, and the seconds."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # one fused operator, which the older exporter does not know
    for name in names:
        place, start, error = folder / name, time.perf_counter(), ""
        place.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(sys.stderr):
            try:
                one(name, exporter, place)
            except Exception as raised:  # noqa: BLE001 - whatever an exporter raises is its answer
                error = f"{type(raised).__name__}: {raised}"[:300]
        told = {"name": name, "exported": not error, "error": error, "seconds": time.perf_counter() - start}
        (place / "told.json").write_text(json.dumps(told), "utf-8")
        tell(**told)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        tell(names=sorted(NETWORKS))
    else:
        main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
