"""Proves a conversion: the original in FP32 beside a run that rounds each FP16 value; finds what must stay FP32.

Imports nothing of the assistant, as a child in another Python needs it, too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from assistant_addons.onnx.graph import KNOWN_IR, subgraphs, unique_name
from assistant_addons.onnx.inputs import Draw, Feeds, Inputs, Size
from assistant_addons.onnx.prepare import FLOAT, HALF, LARGEST, MOVES, Content, Prepared, replace_nodes, scopes

# They hand FP16 on as it is, or make it themselves; every other operator computes in FP32 here, as ONNX Runtime has no
# FP16 kernel for most of them on the CPU, and drops the casts that it puts around those it lacks.
PASSES = MOVES | {
    "Cast", "CastLike", "Constant", "ConstantOfShape", "If", "Loop", "Range", "Scan", "SequenceAt", "SequenceConstruct",
    "Shape", "Size",
}  # fmt: skip
# Chosen on the models of tests/addons/onnx/traps.py and on onnx's own test models.
CLOSE = 4e-3  # of the largest number: what an output may differ by
CLOSE_WIDE = 5e-2  # likewise, for inputs that are there to find what overflows
SMALLEST_SCALE = 1e-3  # outputs that are all smaller count as this large: their last digits are noise
MOST_CHANGED = 0.005  # of integers and truths, which change as a whole
MARGIN = 4.0  # how much larger real values may be than those of made-up inputs, except for inputs that are wide already
LEAST_RUNS, RUN_SECONDS = 2, 0.5  # as long as the original's runs are shorter, they go on with the next draw (chosen)
SURE = 0.5  # of what a result may differ by: where that is not reached, inputs are drawn once more
# They add up squares inside, which leave FP16's range before the numbers do.
SQUARES = frozenset({
    "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "RMSNormalization",
    "SimplifiedLayerNormalization", "SkipLayerNormalization",
})  # fmt: skip
AT_RANDOM = frozenset({
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
MOST_GAUGED = 10_000  # values: the time in which ONNX Runtime opens a model grows with their square (measured)
SEARCHED = 0.75  # the share of what a result may differ by that is to be reached where something has to stay FP32
SEARCH_SECONDS = 3.0  # chosen: for which it is tried to give operations back to FP16, once the result is right
STEPS = 32  # parts of a model in which it is searched: a trial takes as long as a run, and finer ones win little
SHARES = 16  # of what stays FP32, each of which is tried by itself
LOAD_SECONDS = 300.0  # chosen: a large model is optimised for a minute
LOADED = "loaded"  # what the child says then

# Why no run tells: no ONNX Runtime, a model that is too large or that it cannot run, or one that draws at random.
Obstacle = Literal["", "missing", "size", "run", "random"]


# ------------------------------------------------------------------ running


def opened(model: ModelProto, content: Content = lambda _tensor: None, *, in_order: bool = False) -> Any:  # noqa: ANN401 - the library has no types
    """Open a model in ONNX Runtime on the CPU, unoptimised, so that no value is left out.

    `content` gives the numbers of weights that have none in the model. With `in_order` the nodes run as they stand, so
    that what only looks at a value does so before it is needed no more.
    """
    import onnxruntime  # noqa: PLC0415 - a tenth of a second, and optional

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Threads that wait in circles for the next run would take the processor from whoever prepares it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1")  # a copy of the weights for a run or two
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    options.enable_mem_reuse = False  # to plan it takes ten times as long as all else, and grows with the square
    if in_order:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    given, model = model, ModelProto()
    model.CopyFrom(given)
    model.ir_version = min(given.ir_version, KNOWN_IR)
    names, values = [], []
    for tensor in model.graph.initializer:
        if (array := content(tensor)) is not None:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="given")
            names.append(tensor.name)
            values.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
    options.add_external_initializers(names, values)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: Any, given: Feeds, names: list[str] | None = None) -> list[Any]:  # noqa: ANN401 - likewise
    """Return the values of these names, of the outputs without any.

    Inputs that nothing in the model takes, and the session lacks, are left out.
    """
    wanted = {info.name for info in session.get_inputs()}
    return list(session.run(names, {name: content for name, content in given.items() if name in wanted}))


def rounded(model: ModelProto, halves: set[str] | None = None) -> ModelProto:
    """Return a model that computes in FP32 and rounds each value that `model` has in FP16, which `halves` may name."""
    result = ModelProto()
    result.CopyFrom(model)
    if halves is None:
        with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
            result = onnx.shape_inference.infer_shapes(result)
        halves = {name for scope in scopes(result) for name, kind in scope.types.items() if kind == HALF}
    _round(result.graph, halves, set(halves))
    return result


def _round(graph: GraphProto, halves: set[str], taken: set[str]) -> None:
    wide: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            _round(inner, halves, taken)
        nodes.append(node)
        if node.op_type in PASSES and not node.domain:
            continue
        for at, name in enumerate(node.input):
            if name in halves:
                if name not in wide:
                    wide[name] = unique_name(f"{name}_wide", taken)
                    nodes.insert(-1, helper.make_node("Cast", [name], [wide[name]], to=FLOAT))
                node.input[at] = wide[name]
        for at, name in enumerate(node.output):
            if name in halves:
                node.output[at] = unique_name(f"{name}_exact", taken)
                nodes.append(helper.make_node("Cast", [node.output[at]], [name], to=HALF))
    replace_nodes(graph, nodes)
    del graph.value_info[:]


def loading(model: bytes | str) -> Callable[[], str | None]:
    """Begin to load a model, or file, in ONNX Runtime with its own settings; return what waits for the answer.

    That is why it does not load, "" where it does, "died" for a crash; None says that it was not tried, or took too
    long. It is loaded in a process of its own, on Linux a fork of this one (20 ms, else 400).
    """
    if not importlib.util.find_spec("onnxruntime"):
        return lambda: None
    if sys.platform != "linux":
        return lambda: _loads_in_new_process(model)
    import onnxruntime  # noqa: F401, PLC0415 - as above, and once for all forks

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, (load(model) or LOADED).encode()[:4000])
        finally:
            os._exit(0)
    os.close(writing)

    def answer() -> str | None:
        """Wait for the child to answer or die, or end it."""
        with os.fdopen(reading, "rb") as pipe:
            in_time = bool(select.select([pipe], [], [], LOAD_SECONDS)[0])
            told = pipe.read().decode() if in_time else ""
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "" if told == LOADED else (told or "died") if in_time else None

    return answer


def load(model: bytes | str) -> str:
    """Load a model, or file, in ONNX Runtime with its own settings; return why that fails, or ""."""
    import onnxruntime  # noqa: PLC0415 - as above

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # threads are made for runs, and may hang in a fork
    try:
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
        return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return ""


def _loads_in_new_process(model: bytes | str) -> str | None:
    """Answer as `loading` does, with a Python started for it."""
    program = "import json, sys; sys.path[:], file = json.loads(sys.argv[1])\n"
    program += "from assistant_addons.onnx.proof import load; print(load(file))"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(model) if isinstance(model, str) else Path(folder, "model.onnx")
        if isinstance(model, bytes):
            file.write_bytes(model)
        command = [sys.executable, "-c", program, json.dumps([sys.path, str(file)])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
    return "died" if done.returncode else done.stdout.strip()


# ------------------------------------------------------------------ comparing


def distance(expected: Any, found: Any) -> float:  # noqa: ANN401 - arrays, and numbers
    """Return how far an array is from the one that was expected.

    Of floats it is the largest difference, relative to the largest number expected or to `SMALLEST_SCALE`; of
    other types the share that changed. It is infinite where the shapes, or the places of NaN or infinity, are others.
    """
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return math.inf
    if not _are_floats(one, other):
        return float(np.mean(one != other)) if one.size else 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return math.inf
    finite = np.isfinite(one)
    one, other = one[finite], other[finite]
    return float(np.abs(one - other).max(initial=0)) / max(SMALLEST_SCALE, float(np.abs(one).max(initial=0)))


def differs(expected: Any, found: Any, limit: float = CLOSE) -> bool:  # noqa: ANN401 - arrays, lists
    """Return whether two results lie further apart than `limit`, or `MOST_CHANGED` where they are no floats."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) != len(found) or any(differs(one, other, limit) for one, other in pairs)
    if expected is None or found is None or isinstance(expected, dict):
        return False
    return distance(expected, found) > (limit if _are_floats(expected, found) else MOST_CHANGED)


def _are_floats(*arrays: object) -> bool:
    return all(np.asarray(array).dtype.kind in "fc" for array in arrays)


# ------------------------------------------------------------------ measuring


class Run(NamedTuple):
    """Inputs, what the original made of them, and by how much a result may differ."""

    given: Feeds
    results: list[Any]
    limit: float

    def agrees(self, found: list[Any], share: float = 1.0) -> bool:
        """Return whether these results are as good as the original's, within a share of the limit."""
        limit = share * self.limit
        return not any(differs(one, other, limit) for one, other in zip(self.results, found, strict=True))


class Original:
    """A model in FP32 and its `runs` on `samples`, or else on the first made-up inputs that it takes.

    `outside` are the values, and nodes, that may leave FP16's range. `obstacle` says why there are no results that a
    conversion could be held against.
    """

    def __init__(self, source: Prepared, samples: Sequence[Feeds] = ()) -> None:
        self.runs: list[Run] = []
        self.outside: set[str] = set()
        self._size: Size | None = None  # of made-up inputs
        self.obstacle: Obstacle = "run" if importlib.util.find_spec("onnxruntime") else "missing"
        self.names = [info.name for info in source.model.graph.output]
        if source.is_giant:
            self.obstacle = "size"
            return
        with contextlib.suppress(Exception):  # the runtime's own errors share no base
            model, self._gauged = _gauged(source)
            self._session, self._inputs = opened(model, source.content, in_order=True), Inputs(source)
            for sample in samples:
                self._run(sample)
            if not samples:
                self._size = next(filter(self._takes, self._inputs.sizes()))
                self.draw()
        if self.runs:
            ops = {node.op_type for scope in source.scopes for node in scope.graph.node}
            random = ops & AT_RANDOM and not self.runs[0].agrees(run(self._session, self.runs[0].given, self.names))
            self.obstacle = "random" if random else ""

    def draw(self, turn: int = 0) -> None:
        """Run on more inputs, drawn in several ways, as long as there is time; on none where samples were given."""
        started, first = time.thread_time(), len(self.runs)  # not how busy the machine is otherwise
        for draw in self._inputs.draws[0 if turn else 1 :]:
            needed = len(self.runs) < max(first, LEAST_RUNS) or time.thread_time() - started < RUN_SECONDS
            if needed and self._size is not None:
                self._run(self._made(self._size, draw, turn), wide=draw == "wide")

    def _made(self, size: Size, draw: Draw, turn: int = 0) -> Feeds:
        """Make inputs; where no axis is long enough for tones, they are normal once more, and start elsewhere."""
        return self._inputs.make(size, draw, 2 * turn + (draw == "tones"))

    def _takes(self, size: Size) -> bool:
        """Run on the first inputs of a size; return whether the model takes them."""
        with contextlib.suppress(Exception):  # other sizes may do
            self._run(self._made(size, self._inputs.draws[0]))
            return True
        return False

    def _run(self, given: Feeds, *, wide: bool = False) -> None:
        found = run(self._session, given, [info.name for info in self._session.get_outputs()])
        most = LARGEST / (1 if wide else MARGIN)
        for (what, squares), peak in zip(self._gauged, found[len(self.names) :], strict=True):
            size = float(peak.ravel()[0])
            if most < (size * size if squares else size) < math.inf:
                self.outside.add(what)
        self.runs.append(Run(given, found[: len(self.names)], CLOSE_WIDE if wide else CLOSE))


def _gauged(source: Prepared) -> tuple[ModelProto, list[tuple[str, bool]]]:
    """Return the model with more outputs: how large the largest number of each FP32 value is.

    Beside it: what each is of, a value or a node that adds up squares of its input. What computes an output stands
    right behind the node that makes the value, which is not kept for longer.
    """
    model, types = ModelProto(), source.scopes[0].types
    model.CopyFrom(source.model)
    graph, gauged, nodes = model.graph, list[tuple[str, bool]](), list[NodeProto]()
    prefix = unique_name("gauge", {name for scope in source.scopes for name in scope.types})

    def gauge(value: str, what: str) -> None:
        made = f"{prefix}_{len(nodes)}"
        nodes.append(helper.make_node("Abs", [value], [f"{made}_sizes"]))
        nodes.append(helper.make_node("ReduceMax", [f"{made}_sizes"], [made]))
        graph.output.append(helper.make_tensor_value_info(made, FLOAT, None))
        gauged.append((what, what != value))

    for name in (info.name for info in graph.input if types[info.name] == FLOAT):
        gauge(name, name)
    for node in graph.node:
        if node.op_type in SQUARES and types.get(node.input[0]) == FLOAT:
            gauge(node.input[0], node.name)
        nodes.append(node)
        for name in (one for one in node.output if types.get(one) == FLOAT):
            gauge(name, name)
    if len(gauged) > MOST_GAUGED:
        return source.model, []
    replace_nodes(graph, nodes)
    return model, gauged


# ------------------------------------------------------------------ searching


def fewest(items: Sequence[str], holds: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return few items that are enough for `holds`: the shorter of beginning and end, less what can be given back.

    All of them are taken where fewer are not enough.
    """
    found = _beginning(list(items), len(items), holds)
    end = list(items)[::-1]
    if len(found) > 1 and holds(end[: len(found) - 1]):
        found = _beginning(end, len(found) - 1, holds)
    deadline, size = time.monotonic() + SEARCH_SECONDS, max(1, len(found) // SHARES)
    for start in range(0, len(found), size)[::-1]:
        fewer = found[:start] + found[start + size :]
        if len(found) > 1 and time.monotonic() < deadline and holds(fewer):
            found = fewer
    return found


def _beginning(items: list[str], high: int, holds: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a short beginning that is enough, by halving; of `high` items, that is known."""
    low, step = 0, max(1, len(items) // STEPS)
    while low + step < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(items[:middle]) else (middle, high)
    return items[:high]
