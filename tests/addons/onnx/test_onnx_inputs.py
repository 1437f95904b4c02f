"""Inputs that are made up: sizes that the weights ask for, integers by what they are for, positions of long texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tables import each

from assistant_addons.onnx import convert
from assistant_addons.onnx.inputs import FARTHEST, Inputs
from assistant_addons.onnx.prepare import prepare

Written = Callable[..., ModelProto]
POSITIONS = (0, 500, 2_000, 8_000, 31_000)


def first(model: ModelProto, draw: str = "normal") -> dict[str, Any]:
    """Return the first inputs that the model runs on."""
    inputs = Inputs(prepare(model))
    tried = (inputs.make(size, draw) for size in inputs.sizes())  # type: ignore[arg-type]
    return next(given for given in tried if runs(model, given))


def runs(model: ModelProto, given: dict[str, Any]) -> bool:
    """Tell whether ONNX Runtime takes the inputs."""
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    except Exception:  # noqa: BLE001 - its errors share no base
        return False
    return True


@pytest.mark.parametrize(
    ("body", "weights", "shape"),
    [
        ("y = MatMul(x, w)", {"w": (80, 4)}, (None, None, 80)),
        ("y = Gemm<transB = 1>(x, w)", {"w": (4, 40)}, (None, 40)),
        ("y = Conv(x, w)", {"w": (8, 12, 3)}, (None, 12, None)),
        ("z = Transpose<perm = [0, 2, 1]>(x)\n y = MatMul(z, w)", {"w": (33, 4)}, (None, 33, None)),
        ("y, h = GRU<hidden_size = 7>(x, w, r)", {"w": (1, 21, 11), "r": (1, 21, 7)}, (None, None, 11)),
    ],
)
def test_open_sizes_are_what_the_weights_ask_for(
    written: Written, body: str, weights: dict[str, tuple[int, ...]], shape: tuple[int | None, ...]
) -> None:
    """The model runs on inputs that are tried, whichever size its weights tell."""
    open_sizes = ", ".join("abcd"[: len(shape)])
    model = written(f"g (float[{open_sizes}] x) => (float y) {{ {body} }}")
    arrays = {name: np.ones(size, np.float32) for name, size in weights.items()}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    model.graph.output[0].type.tensor_type.ClearField("shape")
    given = first(model)
    assert all(want in {None, have} for want, have in zip(shape, given["x"].shape, strict=True))


def test_integers_are_drawn_by_what_they_are_for(written: Written) -> None:
    """Places go over the whole table, a mask hides no text whole, and positions come to those of long texts."""
    model = written(
        """g (int64[1, 500] ids, int64[1, 6] attention_mask, int64[1, 6] at, int64[1] length)
        => (float y, float m, float p, bool l) {
        y = Gather(table, ids)
        m = Cast<to = 1>(attention_mask)
        p = Cast<to = 1>(at)
        six = Constant<value_ints = [6]>()
        l = Less(length, six)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((300, 2), np.float32), "table"))
    normal, wide, long = (first(model, draw) for draw in ("normal", "wide", "long"))
    assert normal["ids"].max() > 250
    assert normal["ids"].min() >= 0
    assert normal["attention_mask"].all()
    assert wide["attention_mask"][..., 0].all()
    assert normal["at"].tolist() == [[0, 1, 2, 3, 4, 5]]
    assert long["at"][0, -1] == FARTHEST - 1
    assert long["length"].max() < 10


@each("seed", range(6))
def test_a_step_is_never_zero(written: Written, seed: int) -> None:
    """ONNX Runtime's process ends where an STFT moves on by nothing."""
    model = written(
        """g (float[1, 128, 1] x, int64 step, int64 length) => (float[a, b, c, d] y) {
        y = STFT(x, step, , length)
        }"""
    )
    inputs = Inputs(prepare(model))
    given = inputs.make(next(iter(inputs.sizes())), "normal", seed)
    assert given["step"] > 0
    assert runs(model, given)


def rotary() -> ModelProto:
    """Make a block as language models have it: queries and keys are turned by their positions before they meet."""
    random, size = np.random.default_rng(0), 16
    weights = {
        "table": random.normal(size=(300, size)),
        "rates": 10000.0 ** -(np.arange(0, size, 2) / size),
        "turns": np.block([[np.zeros((8, 8)), np.eye(8)], [-np.eye(8), np.zeros((8, 8))]]),
        "words": random.normal(size=(size, 300)),
    }
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("Cast", ["positions"], ["at"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["at", "last"], ["column"]),
        helper.make_node("Mul", ["column", "rates"], ["half"]),
        helper.make_node("Concat", ["half", "half"], ["phase"], axis=-1),
        helper.make_node("Cos", ["phase"], ["cos"]),
        helper.make_node("Sin", ["phase"], ["sin"]),
        helper.make_node("Mul", ["x", "cos"], ["straight"]),
        helper.make_node("MatMul", ["x", "turns"], ["turned"]),
        helper.make_node("Mul", ["turned", "sin"], ["across"]),
        helper.make_node("Add", ["straight", "across"], ["q"]),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "x"], ["seen"]),
        helper.make_node("MatMul", ["seen", "words"], ["logits"]),
    ]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "text"]) for name in ("ids", "positions")]
    made = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "text", 300])]
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    tensors.append(numpy_helper.from_array(np.array([-1]), "last"))
    graph = helper.make_graph(nodes, "rotary", given, made, tensors)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.process
def test_rotary_positions_stay_right_in_long_texts(tmp_path: Path) -> None:
    """Converted, the block is off by less than one per cent of its largest number up to 31,000 words."""
    onnx.save(rotary(), tmp_path / "rotary.onnx")
    done = convert(tmp_path / "rotary.onnx")
    wide, half = (onnxruntime.InferenceSession(str(path)) for path in (done.source, done.output))
    for start in POSITIONS:
        given = {
            "ids": np.random.default_rng(1).integers(0, 300, (1, 8)),
            "positions": np.arange(start, start + 8)[None],
        }
        expected, found = wide.run(None, given)[0], half.run(None, given)[0]
        assert np.abs(expected - found).max() < 0.01 * np.abs(expected).max()
    assert done.converted > 5
