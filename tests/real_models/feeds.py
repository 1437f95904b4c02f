"""Makes a model's inputs by rules of the benchmark's own, and runs the model on them: `feeds.py NAME MODEL FOLDER`.

An input is drawn by what `onnx_real.toml` says of it. Without a word there, a size that is left open is 1 in front and
`OPEN` elsewhere, whole numbers are places in the table that a Gather takes them for, else 0 and 1, and all others are
normally distributed. Arrays are kept by their place, since names may hold anything.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from children import limit_memory, tell
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

TABLE = Path(__file__).parents[1] / "benchmarks" / "onnx_real.toml"
OPEN = 16
RATE = 16_000  # of sounds
DRAWS = ("typical", "typical", "normal")
MOVES = {"Cast", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
SAME = 1e-5  # of the largest number: what two runs of one model may differ by

Told = dict[str, Any]


def told_of(name: str) -> dict[str, Told]:
    """Return what the table says of a model's inputs; a later pattern adds to an earlier one."""
    table: dict[str, dict[str, Told]] = tomllib.loads(TABLE.read_text("utf-8"))["feed"]
    found: dict[str, Told] = {}
    for pattern, inputs in table.items():
        if fnmatchcase(name, pattern):
            for one, told in inputs.items():
                found[one] = {**found.get(one, {}), **told}
    return found


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs that a caller has to give."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [info for info in model.graph.input if info.name not in weights]


def shape_of(info: ValueInfoProto, told: Told) -> list[int]:
    """Return the told sizes, else the model's own with numbers for the open ones."""
    dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    return told.get("shape") or [dim if dim > 0 else OPEN if axis else 1 for axis, dim in enumerate(dims)]


def most(model: ModelProto, name: str) -> int:
    """Return below which number an input's places lie: the length of the shortest table that they are looked up in."""
    sizes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    sizes |= {node.output[0]: list(node.attribute[0].t.dims) for node in model.graph.node if node.op_type == "Constant"}
    makers = {made: node for node in model.graph.node for made in node.output}
    found, todo = [], [name]
    while todo:
        at = todo.pop()
        for node in model.graph.node:
            if node.op_type == "Gather" and node.input[1] == at:
                table = node.input[0]
                while table not in sizes and table in makers and makers[table].input:
                    table = makers[table].input[0]
                axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
                found += [sizes[table][axis]] if sizes.get(table) else []
            elif node.op_type in MOVES and node.input[0] == at:
                todo += node.output
    return min(found, default=2)


def sound(shape: list[int], random: np.random.Generator) -> np.ndarray:
    """Make tones as a voice has them, with some noise, along the longest axis."""
    length, axis = max(shape), int(np.argmax(shape))
    time = np.arange(length) / RATE
    pitch = random.uniform(90, 280)
    tones = sum(np.sin(2 * math.pi * pitch * number * time) / number for number in range(1, 6))
    swell = 0.5 + 0.5 * np.sin(2 * math.pi * random.uniform(1, 4) * time)
    wave = 0.25 * tones * swell + 0.005 * random.standard_normal(length)
    wide = [length if at == axis else 1 for at in range(len(shape))]
    return np.clip(np.broadcast_to(wave.reshape(wide), shape), -1, 1).copy()


def numbers(told: Told, shape: list[int], random: np.random.Generator, draw: str) -> np.ndarray:
    """Draw numbers with a fraction."""
    kind = told.get("is", "") if draw == "typical" else ""
    if kind == "sound":
        return sound(shape, random)
    low, high = {"image": (0, 1), "signed": (-1, 1), "mel": (-4, 4)}.get(kind, (0, 0))
    return random.uniform(low, high, shape) if high else random.standard_normal(shape)


def drawn(model: ModelProto, tells: dict[str, Told], random: np.random.Generator, draw: str) -> list[np.ndarray]:
    """Draw an array for each input, in order."""
    infos, found = inputs_of(model), {}
    for info in infos:
        told, kind = tells.get(info.name, {}), info.type.tensor_type.elem_type
        shape, what = shape_of(info, told), told.get("is")
        whole = kind not in {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16}
        if kind == TensorProto.STRING:
            found[info.name] = np.full(shape, "a")
            continue
        if what == "length":
            array = np.full(shape, tells[told["of"]]["shape"][-1])
        elif isinstance(what, int | float):
            array = np.full(shape, what)
        elif what == "ones":
            array = np.ones(shape)
        elif what == "ids" or whole:
            array = random.integers(0, told.get("below") or most(model, info.name), shape)
        else:
            array = numbers(told, shape, random, draw)
        found[info.name] = np.asarray(array * told.get("times", 1)).astype(helper.tensor_dtype_to_np_dtype(kind))
    return [found[info.name] for info in infos]


def offered(name: str, path: Path) -> list[list[np.ndarray]]:
    """Return the inputs to run: those that lie beside an exported model, else drawn ones."""
    beside = sorted(path.parent.glob("inputs*.npz"))
    if beside:
        return [[file[key] for key in sorted(file, key=int)] for file in map(np.load, beside)]
    model, tells = onnx.load(path, load_external_data=False), told_of(name)
    return [drawn(model, tells, np.random.default_rng(11 + number), draw) for number, draw in enumerate(DRAWS)]


def main(name: str, path: Path, folder: Path) -> None:
    """Write inputs and what the model makes of them, and tell on how many it runs."""
    limit_memory()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]
    folder.mkdir(parents=True, exist_ok=True)
    kept, random, why = 0, False, ""
    for arrays in offered(name, path):
        given = dict(zip(names, arrays, strict=True))
        try:
            made, again = session.run(None, given), session.run(None, given)
        except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
            why = f"{error}"[:300]
            continue
        random |= any(apart(one, other) > SAME for one, other in zip(made, again, strict=True))
        np.savez(folder / f"given{kept}.npz", **{str(at): array for at, array in enumerate(arrays)})
        np.savez(folder / f"made{kept}.npz", **{str(at): array for at, array in enumerate(made)})
        kept += 1
    (folder / "names.json").write_text(json.dumps(names), "utf-8")
    tell(runs=kept, random=random, why=why)


def apart(expected: np.ndarray, found: np.ndarray) -> float:
    """Return how far two results lie apart: of floats relative to the largest number, else the share that changed.

    It is infinite where the shapes, or the places of NaN or infinity, are others.
    """
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return math.inf
    if one.dtype.kind != "f" or other.dtype.kind != "f":
        return float(np.mean(one != other)) if one.size else 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return math.inf
    fine = np.isfinite(one)
    largest = np.abs(one[fine]).max(initial=0)
    return float(np.abs(one[fine] - other[fine]).max(initial=0) / max(largest, 1e-6))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
