"""Makes a model's inputs by rules of the benchmark's own, and runs the model on them: `feeds.py NAME MODEL FOLDER`.

An input is drawn by what `onnx_real.toml` says of it. Without a word there, a size that is left open is 1 in front and
for a batch, `OPEN` elsewhere, whole numbers are places in the table that a Gather takes them for, else 0 and 1, and all
others are normally distributed. Arrays are kept by their place, since names may hold anything.
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

TABLE = Path(__file__).parents[3] / "benchmarks" / "onnx_real.toml"
OPEN = 16
RATE = 16_000  # of sounds
PATCH = 12  # pixels of a picture that are about as bright
DRAWS = ("typical", "typical", "other")
MOVES = {"Cast", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
SAME = 1e-5  # of the largest number: what two runs of one model may differ by
LEAST = 1e-3  # outputs that are all smaller count as this large: they say "no" with any digits (chosen)

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
    """Return the told sizes, else the model's own with numbers for the open ones: a batch is one of one."""
    if "shape" in told:
        return told["shape"]
    dims = info.type.tensor_type.shape.dim
    alone = [not axis or "batch" in dim.dim_param for axis, dim in enumerate(dims)]
    return [dim.dim_value if dim.dim_value > 0 else 1 if one else OPEN for dim, one in zip(dims, alone, strict=True)]


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


def sound(shape: list[int], random: np.random.Generator, draw: str) -> np.ndarray:
    """Make tones as a voice has them, with some noise, or noise alone, along the longest axis."""
    length, axis = max(shape), int(np.argmax(shape))
    time, noise = np.arange(length) / RATE, random.standard_normal(length)
    pitch = random.uniform(90, 280)
    tones = sum(np.sin(2 * math.pi * pitch * number * time) / number for number in range(1, 6))
    swell = 0.5 + 0.5 * np.sin(2 * math.pi * random.uniform(1, 4) * time)
    wave = 0.2 * noise if draw == "other" else 0.25 * tones * swell + 0.005 * noise
    wide = [length if at == axis else 1 for at in range(len(shape))]
    return np.clip(np.broadcast_to(wave.reshape(wide), shape), -1, 1).copy()


def picture(shape: list[int], random: np.random.Generator) -> np.ndarray:
    """Make patches of one brightness with a little noise, from 0 to 1, over the two longest axes."""
    longest = np.argsort(shape)[-2:]
    patches = random.uniform(
        0.05, 0.95, [-(-size // PATCH) if at in longest else size for at, size in enumerate(shape)]
    )
    for axis in longest:
        patches = patches.repeat(PATCH, axis).take(range(shape[axis]), axis)
    return patches + random.uniform(-0.05, 0.05, shape)


def numbers(kind: str, shape: list[int], random: np.random.Generator, draw: str) -> np.ndarray:
    """Draw numbers with a fraction; the last draw is noise alone for a sound, and a darker picture."""
    if kind == "sound":
        return sound(shape, random, draw)
    if kind == "mel":
        return random.uniform(-4, 4, shape)
    if kind:
        made = picture(shape, random) ** (3 if draw == "other" else 1)
        return 2 * made - 1 if kind == "signed" else made
    return random.standard_normal(shape)


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
            array = numbers(what or "", shape, random, draw)
        array = np.maximum(array * told.get("times", 1), told.get("least", -math.inf))
        found[info.name] = np.asarray(array).astype(helper.tensor_dtype_to_np_dtype(kind))
    return [found[info.name] for info in infos]


def offered(name: str, path: Path) -> list[list[np.ndarray]]:
    """Return the inputs to run."""
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
    return float(np.abs(one[fine] - other[fine]).max(initial=0) / max(largest, LEAST))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
