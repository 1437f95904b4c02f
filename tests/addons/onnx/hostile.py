"""Models that somebody made to hang, to break or to fill the memory of what reads them; each is a few kB or no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import FunctionProto, ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

__all__ = ["HOSTILE"]

OWN = "own"
CALLS = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]


def model(
    *nodes: onnx.NodeProto, weights: tuple[TensorProto, ...] = (), functions: tuple[FunctionProto, ...] = ()
) -> ModelProto:
    """Make a model from x to y; without nodes y = x + w."""
    made = nodes or (helper.make_node("Add", ["x", "w"], ["y"]),)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    graph = helper.make_graph(list(made), "g", [x], [y], list(weights))
    return helper.make_model(graph, opset_imports=CALLS, ir_version=8, functions=list(functions))


def function(name: str, *callees: str, domain: str = OWN, of: str = OWN, overload: str = "") -> FunctionProto:
    """Make a function that calls others in a row; one that calls none copies its input."""
    names = ["x", *(f"v{number}" for number in range(1, len(callees))), "y"]
    steps = [
        helper.make_node(callee, [names[index]], [names[index + 1]], domain=of) for index, callee in enumerate(callees)
    ] or [helper.make_node("Relu", ["x"], ["y"])]
    for step in steps:
        step.overload = overload if callees else ""
    made = helper.make_function(domain, name, ["x"], ["y"], steps, CALLS)
    made.overload = overload
    return made


def doubling(count: int, domain: str = OWN, of: str = OWN, overload: str = "") -> tuple[FunctionProto, ...]:
    """Make functions each of which calls the previous one twice."""
    first = function("f0", domain=domain, overload=overload)
    more = (
        function(f"f{n}", f"f{n - 1}", f"f{n - 1}", domain=domain, of=of, overload=overload) for n in range(1, count)
    )
    return (first, *more)


def call(name: str, domain: str = OWN, overload: str = "") -> onnx.NodeProto:
    """Call a function from x to y."""
    node = helper.make_node(name, ["x"], ["y"], domain=domain)
    node.overload = overload
    return node


def tensor(*dims: int, values: int = 4, kind: int = TensorProto.FLOAT) -> TensorProto:
    """Make weights of some shape that hold another number of values."""
    made = TensorProto(name="w", data_type=kind, dims=dims)
    field = helper.tensor_dtype_to_field(kind)
    getattr(made, field).extend([1] * values)
    return made


def apart(**entries: str) -> Callable[[Path], ModelProto]:
    """Make a model whose weights lie in a file of its own, at a place that is told wrongly."""

    def make(folder: Path) -> ModelProto:
        (folder / "w.bin").write_bytes(bytes(16))
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
        for key, value in {"location": "w.bin", "offset": "0", "length": "16", **entries}.items():
            weights.external_data.add(key=key, value=value)
        return model(weights=(weights,))

    return make


def piped(folder: Path) -> ModelProto:
    """Make a model whose weights are a pipe."""
    made = apart(location="pipe")(folder)
    os.mkfifo(folder / "pipe")
    return made


def heavy(_folder: Path) -> ModelProto:
    """Make few functions that hold much: 1 MB, doubled 12 times."""
    first = function("f0")
    ones = numpy_helper.from_array(np.ones(2**18, np.float32))
    first.node.insert(0, helper.make_node("Constant", [], ["c"], value=ones))
    return model(call("f12"), functions=(first, *doubling(13)[1:]))


def with_input(*dims: int) -> ModelProto:
    """Make a model whose input has a shape."""
    made = model(helper.make_node("Relu", ["x"], ["y"]))
    del made.graph.input[:]
    made.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    return made


def scattered(*dims: int) -> ModelProto:
    """Make a model with sparse weights of a shape."""
    values, indices = (
        numpy_helper.from_array(np.ones(1, np.float32), "w"),
        numpy_helper.from_array(np.zeros(1, np.int64)),
    )
    made = model()
    made.graph.sparse_initializer.append(SparseTensorProto(values=values, indices=indices, dims=dims))
    return made


def field(number: int, content: bytes) -> bytes:
    """Encode a field of bytes as protobuf does."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Encode a number as protobuf does."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def nested(_folder: Path) -> bytes:
    """Write an If in an If, 3,000 deep, which no library would write."""
    graph = b""
    for _level in range(3000):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"  # its type is GRAPH
        graph = field(1, field(4, b"If") + field(5, attribute))
    return model().SerializeToString() + field(7, graph)


def crowded(_folder: Path) -> bytes:
    """Write 1,000,001 nodes of two bytes each."""
    return model(weights=(tensor(2, 2),)).SerializeToString() + field(7, b"\x0a\x00" * 1_000_001)


def pipe(folder: Path) -> None:
    """Let the model itself be a pipe that nobody writes to."""
    os.mkfifo(folder / "model.onnx")


def endless(folder: Path) -> None:
    """Let the model be a link to a device that never ends."""
    (folder / "model.onnx").symlink_to("/dev/zero")


def loop(folder: Path) -> None:
    """Let the model be a link to itself."""
    (folder / "model.onnx").symlink_to("model.onnx")


def place(folder: Path) -> None:
    """Let the model be a folder."""
    (folder / "model.onnx").mkdir()


def sparse_file(folder: Path) -> None:
    """Let the model be 3 GB of nothing."""
    with (folder / "model.onnx").open("wb") as file:
        file.truncate(3 << 30)


def chained(count: int) -> tuple[FunctionProto, ...]:
    """Make functions each of which calls the previous one."""
    return (function("f0"), *(function(f"f{number}", f"f{number - 1}") for number in range(1, count)))


LARGER, SHAPE, LONG, PLAIN = "larger than any network", "an impossible shape", "not as long as", "not a regular file"
# What each is, how it is made in a folder, and what the refusal says.
HOSTILE: dict[str, tuple[Callable[[Path], ModelProto | bytes | None], str]] = {
    "functions that double": (lambda _: model(call("f25"), functions=doubling(26)), LARGER),
    "functions that double by two names of one domain": (
        lambda _: model(call("f25", domain="ai.onnx"), functions=doubling(26, domain="", of="ai.onnx")),
        LARGER,
    ),
    "functions that double in the shade of a harmless one": (
        lambda _: model(
            call("f25", overload="b"), functions=(*doubling(26, overload="b"), *(function(f"f{n}") for n in range(26)))
        ),
        LARGER,
    ),
    "functions that are heavy": (heavy, LARGER),
    "functions 5,000 deep": (
        lambda _: model(call("f4999"), functions=chained(5000)),
        LARGER,
    ),
    "a function that calls itself": (lambda _: model(call("f"), functions=(function("f", "f"),)), "in a cycle"),
    "graphs 3,000 deep": (nested, "not an ONNX model"),
    "a million nodes": (crowded, LARGER),
    "a pipe": (pipe, PLAIN),
    "a device": (endless, PLAIN),
    "a link to itself": (loop, "cannot be read"),
    "a folder": (place, PLAIN),
    "3 GB of nothing": (sparse_file, "over 2 GB"),
    "a pipe of weights": (piped, "are missing"),
    "an offset of 5,000 digits": (apart(offset="9" * 5000), LONG),
    "an offset at the end of the world": (apart(offset="9" * 19), LONG),
    "an offset in other digits": (apart(offset="١"), LONG),
    "a negative offset": (apart(offset="-1"), LONG),
    "a length of 5,000 digits": (apart(length="9" * 5000), LONG),
    "weights of negative sizes": (lambda _: model(weights=(tensor(-2, -2),)), SHAPE),
    "weights of no memory's size": (lambda _: model(weights=(tensor(2**40, 2**40, values=0),)), SHAPE),
    "empty weights of no memory's size": (lambda _: model(weights=(tensor(0, 2**62, values=0),)), SHAPE),
    "weights of 100 dimensions": (lambda _: model(weights=(tensor(*[1] * 100, values=1),)), SHAPE),
    "more weights than there are": (lambda _: model(weights=(tensor(2**40, kind=TensorProto.INT32),)), LONG),
    "more halves than there are": (lambda _: model(weights=(tensor(2**40, kind=TensorProto.FLOAT16),)), LONG),
    "weights of no type": (
        lambda _: model(weights=(TensorProto(name="w", dims=[2, 2], raw_data=bytes(16)),)), "an unknown number type",
    ),
    "an input of negative size": (lambda _: with_input(-5, 2), SHAPE),
    "an input of no memory's size": (lambda _: with_input(2**40, 2**40), SHAPE),
    "sparse weights of no memory's size": (lambda _: scattered(2**40, 2**40), SHAPE),
    "sparse weights of negative size": (lambda _: scattered(-4), SHAPE),
}  # fmt: skip
