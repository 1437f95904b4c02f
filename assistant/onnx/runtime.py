"""Opens models in ONNX Runtime on the CPU, for what is learned from a run here."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from assistant.onnx.graph import KNOWN_IR
from assistant.onnx.inputs import Feeds


def opened(model: ModelProto, *, in_order: bool = False) -> Any:  # noqa: ANN401 - the library has no types
    """Open a model in ONNX Runtime on the CPU, unoptimised, so that no value is left out.

    With `in_order` the nodes run as they stand, so that what only looks at a value does so before it is needed no more.
    """
    import onnxruntime  # noqa: PLC0415 - a tenth of a second, and optional

    if model.ir_version > KNOWN_IR:
        known = ModelProto()
        known.CopyFrom(model)
        known.ir_version = KNOWN_IR
        model = known
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Threads that wait in circles for the next run would take the processor from whoever prepares it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    if in_order:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: Any, given: Feeds, names: list[str] | None = None) -> list[Any]:  # noqa: ANN401 - likewise
    """Return the values of these names, of the outputs without any.

    Inputs that nothing in the model takes, and the session lacks, are left out.
    """
    wanted = {info.name for info in (*session.get_inputs(), *session.get_overridable_initializers())}
    return list(session.run(names, {name: content for name, content in given.items() if name in wanted}))
