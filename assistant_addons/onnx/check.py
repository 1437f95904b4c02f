"""Checks a model for a provider: where each node runs, what stands in the way with its remedies, and a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onnx import ModelProto, TensorProto, helper

from assistant.api import BadInput, Message, Text, _, ngettext
from assistant.api.records import Finding, Remedy, Severity
from assistant.api.texts import command_line
from assistant_addons.onnx.answers import TITLES, Checked, Placed, Provider
from assistant_addons.onnx.graph import given_inputs, opsets, subgraphs, tensors
from assistant_addons.onnx.inputs import dims_of
from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.operators import ask, has_runtime, is_foreign, table, unknown_domain
from assistant_addons.onnx.placement import Node, place
from assistant_addons.onnx.prepare import best_opset, prepare

MOST_NAMES = 5  # of nodes, sizes or operators in one sentence
ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)
GELU_OPSET = 20  # from here on ONNX has a Gelu of its own, into which the optimiser fuses what is written out

_AFTERWARDS = _("Cut the post-processing off the model and run it outside.")
_NO_TRAINING = _("Export the model in evaluation mode, without unused outputs.")
_FIX_SIZES = _(
    "Write fixed sizes into the model with ONNX Runtime's own tool, a model for each size that you need: "
    "`python -m onnxruntime.tools.make_dynamic_shape_fixed --dim_param NAME --dim_value SIZE MODEL.onnx FIXED.onnx`."
)
_UNROLL = _("Unroll loops of fixed length, or run the whole model on the CPU.")
# What to do about an operator that falls to the CPU.
_INSTEAD = {
    **dict.fromkeys(("NonMaxSuppression", "Unique", "Compress"), _AFTERWARDS),
    **dict.fromkeys(("Dropout", "BatchNormalization", "LayerNormalization"), _NO_TRAINING),
    **dict.fromkeys(("Loop", "Scan"), _UNROLL),
    "Gelu": _("Use opset 19 or lower, where Gelu is written in simpler operators."),
    "Einsum": _("Rewrite it as products of two operands each."),
}

Found = tuple[float, Finding]  # what it would gain, in nodes, and the finding


@dataclass
class Examination:
    """A model as it was read, its placed nodes, and the file's name."""

    model: ModelProto
    nodes: Sequence[Node]
    provider: Provider
    file: str

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return opsets(self.model).get("", 1)

    @cached_property
    def obstacle(self) -> Text:
        """Why ONNX Runtime, for DirectML its last release known, does not load the model; "" where nothing stops it."""
        if self.provider == "cpu":
            graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [])
            for side, name in ((graph.input, "x"), (graph.output, "y")):
                side.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
            imports = [helper.make_opsetid("", self.opset)]
            empty = helper.make_model(graph, ir_version=self.model.ir_version, opset_imports=imports)
            return ask(empty.SerializeToString())[1]
        loads = table()["loads"]
        for found, most, text in (
            (self.model.ir_version, "ir", _("ONNX Runtime {version} loads IR versions up to {most}, not {found}.")),
            (self.opset, "opset", _("ONNX Runtime {version} loads opsets up to {most}, not {found}.")),
        ):
            if found > loads[most]:
                return text.format(version=loads["version"], most=loads[most], found=found)
        return ""


def check_model(model: ModelProto | str | Path, provider: Provider = "dml") -> Checked:
    """Check a model, or a model's file, for a provider; raise `BadInput` for a file that nothing could load.

    Where the model does not load at all, no node runs anywhere. The CPU is asked through ONNX Runtime: without it
    `BadInput` is raised for that provider.
    """
    exam = examine(model, provider)
    stop = exam.obstacle
    nodes = (
        Placed(name=node.proto.name, op=node.op, device="none" if stop else node.device, why=stop or node.why)
        for node in exam.nodes
    )
    found = [*_stopping(exam), *(_on_cpu(exam) if provider == "cpu" else _on_directml(exam))]
    found.sort(key=lambda entry: (ORDER.index(entry[1].severity), -entry[0]))
    findings = tuple(finding for _gain, finding in found)
    return Checked(provider=provider, nodes=tuple(nodes), findings=findings, verdict=_verdict(exam))


def examine(model: ModelProto | str | Path, provider: Provider = "dml") -> Examination:
    """Place a model's nodes; raise what `check_model` does."""
    if provider == "cpu" and not has_runtime():
        message = _("What the CPU runs is asked of ONNX Runtime, which is not installed beside the assistant.")
        raise BadInput(message, hint=_("Install it: {command}", command="python -m pip install onnxruntime"))
    file = "model.onnx" if isinstance(model, ModelProto) else str(model)
    loaded = model if isinstance(model, ModelProto) else load_model(model, weights=False)
    return Examination(loaded, place(prepare(loaded), provider), provider, file)


def _verdict(exam: Examination) -> Message:
    counts = Counter(node.device for node in exam.nodes if not node.preferred)
    total = counts.total()
    if exam.obstacle:
        return _("It does not load as it is: {why}", why=exam.obstacle)
    if counts["none"]:
        message = _("It does not load: {nodes} of {all} can run nowhere.")
        return message.format(nodes=_count(counts["none"]), all=total)
    if counts[exam.provider] == total:
        message = _("{device} takes every node that computes ({nodes}).")
        return message.format(device=TITLES[exam.provider], nodes=_count(total))
    message = _("DirectML takes {count} of {all} nodes that compute, the CPU {rest}: values are copied in every run.")
    return message.format(count=counts["dml"], all=total, rest=counts["cpu"])


def _stopping(exam: Examination) -> Iterator[Found]:
    """Yield what keeps the model from loading."""
    if not has_runtime() and (rest := [node for node in exam.nodes if node.device == "cpu" and not node.preferred]):
        text = _("Whether the CPU takes {nodes} was not asked: ONNX Runtime is not installed.", nodes=_count(len(rest)))
        yield _finding(Severity.INFO, "not-asked", text, rest)
    nowhere, foreign = list[Node](), dict[str, list[Node]]()
    for node in (node for node in exam.nodes if node.device == "none"):
        domain = node.proto.domain
        (foreign.setdefault(domain, []) if is_foreign(domain) else nowhere).append(node)
    if exam.obstacle:
        yield _finding(Severity.ERROR, "load", exam.obstacle, exam.nodes, _convert(exam))
    if nowhere:
        text = _("{nodes} can run nowhere, so the model does not load; the first: {why}")
        remedy = _advice(_("Export the model for another opset, or replace these operators."))
        text = text.format(nodes=_count(len(nowhere)), why=nowhere[0].why)
        yield _finding(Severity.ERROR, "not-implemented", text, nowhere, remedy)
    for domain, nodes in foreign.items():
        text = _("{nodes} can run nowhere, so the model does not load as it is: {why}")
        why, advice, commands = unknown_domain(domain)
        text = text.format(nodes=_count(len(nodes)), why=why)
        yield _finding(Severity.ERROR, "unknown-domain", text, nodes, Remedy(text=advice, commands=commands))


def _on_cpu(exam: Examination) -> Iterator[Found]:
    if half := [node for node in exam.nodes if _computes_in(node, "tensor(float16)")]:
        text = _("The CPU has FP16 kernels for few operators: most of {nodes} run in FP32, between casts.")
        remedy = _advice(_("Keep the FP32 model for the CPU: it is faster there."))
        yield _finding(Severity.INFO, "fp16-on-cpu", text.format(nodes=_count(len(half))), half, remedy)


def _on_directml(exam: Examination) -> Iterator[Found]:
    yield from _opset(exam)
    size = sum(4 * math.prod(tensor.dims) for tensor in tensors(exam.model) if tensor.data_type == TensorProto.FLOAT)
    on_device = sum(node.device == "dml" for node in exam.nodes)
    if names := _open_sizes(exam.model):
        text = _("DirectML does not compile what has open sizes ({names}), and runs several times slower uncompiled.")
        advice = _("Or fix them for the session, with SessionOptions.add_free_dimension_override_by_name.")
        text = text.format(names=", ".join(names[:MOST_NAMES]))
        ways = (_advice(_FIX_SIZES), _advice(advice))
        yield _finding(Severity.WARNING, "dynamic-shape", text, (), *ways, gain=on_device / 2)
    if flow := [node for node in exam.nodes if any(subgraphs(node.proto))]:
        text = _("Branches and loops ({operators}) keep DirectML from compiling the graph that holds them.")
        advice = _("Unroll loops of fixed length, keep the one branch that is used, or export without them.")
        text = text.format(operators=", ".join(sorted({node.op for node in flow})))
        yield _finding(Severity.WARNING, "control-flow", text, flow, _advice(advice), gain=on_device / 3)
    yield from _fallbacks(exam)
    if size:
        text = _("The weights are FP32 ({size:.2g} MB): in FP16 they take half the memory and traffic.")
        yield _finding(Severity.INFO, "fp32", text.format(size=size / 1e6), (), _convert(exam))
    for key, severity, concerns, text, way in ON_DEVICE:
        if found := [node for node in exam.nodes if node.device == "dml" and concerns(node, exam.opset)]:
            remedy = _convert(exam) if way is None else _advice(way)
            yield _finding(severity, key, text.format(nodes=_count(len(found))), found, remedy)


def _opset(exam: Examination) -> Iterator[Found]:
    """Yield the opset whose versions DirectML's table matches best, where the model's own leaves nodes to the CPU."""
    changed, best = [node for node in exam.nodes if node.changed], best_opset(exam.model)
    if changed and best != exam.opset:
        text = _("At opset {found}, DirectML has no kernel for the version of {nodes}; opset {best} suits it better.")
        text = text.format(nodes=_count(len(changed)), found=exam.opset, best=best)
        remedies = (_convert(exam), _advice(_("Or export the model with opset_version={best}.", best=best)))
        yield _finding(Severity.WARNING, "opset", text, changed, *remedies)


def _open_sizes(model: ModelProto) -> list[str]:
    """Return the names of the sizes that the inputs leave open."""
    names = (dim for info in given_inputs(model.graph) for dim in dims_of(info) if isinstance(dim, str))
    return list(dict.fromkeys(names))


def _fallbacks(exam: Examination) -> Iterator[Found]:
    """Group what falls to the CPU by its reason, without what another opset would mend."""
    groups: dict[Text, list[Node]] = {}
    for node in exam.nodes:
        if node.device == "cpu" and not node.preferred and not node.changed:
            groups.setdefault(node.why, []).append(node)
    for why, nodes in groups.items():
        double = all(_computes_in(node, "tensor(double)") for node in nodes)
        remedy = _INSTEAD.get(nodes[0].op, _("Replace them with other operators, or accept the copies."))
        if double:
            remedy = _("Cast FP64 to FP32 where it enters, and compare the results.")
        text = _("{nodes} on the CPU: {why}", nodes=_count(len(nodes)), why=why)
        yield _finding(Severity.WARNING, "fp64" if double else "no-kernel", text, nodes, _advice(remedy))


def _computes_in(node: Node, kind: str) -> bool:
    return any(kind in side for side in node.types)


# What DirectML takes, but not well: key, severity, which nodes at which opset, a sentence, what to do (None: convert).
ON_DEVICE: tuple[tuple[str, Severity, Callable[[Node, int], bool], Message, Message | None], ...] = (
    (  # from opset 11 on, as a comment at `QueryPad` in ONNX Runtime's DmlOperatorPadding.cpp says
        "pad-negative",
        Severity.ERROR,
        lambda node, _opset: node.op == "Pad" and not node.proto.domain and node.has_negative_pads(),
        _("DirectML computes wrong values for negative pads ({nodes})."),
        None,
    ),
    (  # https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/optimizer/gelu_fusion.cc
        "gelu-fusion",
        Severity.WARNING,
        lambda node, opset: node.op == "Erf" and opset >= GELU_OPSET,
        _("From opset 20 on, ONNX Runtime fuses Erf ({nodes}) into a Gelu that DirectML has no kernel for."),
        None,
    ),
    (  # it ignores the attribute stash_type: https://github.com/microsoft/onnxruntime/issues/17692
        "layernorm-fp16",
        Severity.INFO,
        lambda node, _opset: node.op == "LayerNormalization" and _computes_in(node, "tensor(float16)"),
        _("On DirectML, layer normalisation ({nodes}) sums in FP16 and overflows where a variance passes 65504."),
        _("Keep them FP32 if the results hold NaN or Inf."),
    ),
    (
        "int64",
        Severity.INFO,
        lambda node, _opset: "tensor(int64)" in node.types[1],
        _("Not every device computes in int64 ({nodes}); what it cannot compute moves to the CPU."),
        _("Use int32 inside the model if the device leaves them to the CPU."),
    ),
)


def _finding(
    severity: Severity,
    key: str,
    text: Text,
    nodes: Sequence[Node] = (),
    *remedies: Remedy,
    gain: float | None = None,
) -> Found:
    """Return a finding about nodes, with what it would gain: as many as there are, unless it is given."""
    names = tuple(node.proto.name for node in nodes[:MOST_NAMES])
    return len(nodes) if gain is None else gain, Finding(
        key=key, severity=severity, text=text, evidence=names, remedies=remedies
    )


def _advice(text: Message) -> Remedy:
    return Remedy(text=text)


def _convert(exam: Examination) -> Remedy:
    """Point to the conversion, which does by itself what can be done."""
    text = _("Convert it: the result is written beside the model.")
    return Remedy(text=text, commands=(command_line(["assistant", "onnx", "convert", exam.file]),))


def _count(count: int) -> Message:
    """Return a number of nodes in words: "1 node", "2 nodes"."""
    return ngettext("{count} node", "{count} nodes", count)
