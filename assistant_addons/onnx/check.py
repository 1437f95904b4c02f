"""Checks a model for a provider: where each node runs, what stands in the way with its remedies, and a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onnx import ModelProto, TensorProto

from assistant.api import Message, Text, _, ngettext
from assistant.api.records import Finding, Remedy, Severity
from assistant.api.texts import command_line
from assistant_addons.onnx.answers import TITLES, Checked, Placed, Provider
from assistant_addons.onnx.defects import Defect, Part, met
from assistant_addons.onnx.graph import opsets, plain_domain, tensors
from assistant_addons.onnx.inputs import dims_by_input
from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.operators import (
    Release,
    Types,
    is_foreign,
    match,
    remedy,
    runtime,
    runtimes,
    since,
    tensor_type,
    unknown,
)
from assistant_addons.onnx.placement import Node, place
from assistant_addons.onnx.program import Program, Value, attribute, constant_input

MOST_NAMES = 5  # of nodes, sizes or operators in one sentence
ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)

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
    """A model as it was read, analysed and placed, with the runtime's limits and the file's name."""

    model: ModelProto
    program: Program
    nodes: Sequence[Node]
    provider: Provider
    release: Release
    file: str

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return opsets(self.model).get("", 1)

    @cached_property
    def computing(self) -> list[Node]:
        """The nodes without constants, which are weights once the model is loaded."""
        return [node for node in self.nodes if node.op != "Constant"]

    @cached_property
    def copies(self) -> int:
        """The values that are copied between device and CPU in every run, once each way, without inputs and outputs."""
        owners = {id(node.step): node for node in self.nodes}
        return sum(_copied(node, owners) for node in self.nodes)

    @cached_property
    def on_device(self) -> list[Node]:
        """The nodes that the device takes."""
        return [node for node in self.computing if node.device == self.provider]

    @cached_property
    def defects(self) -> list[tuple[Defect, list[Part]]]:
        """What this release of the runtime is known to do wrong with the model, each with the parts concerned."""
        return list(met(self.program, self.provider, self.release.version))

    @cached_property
    def open_sizes(self) -> tuple[str, ...]:
        """The names of the sizes that the inputs leave open."""
        dims = dims_by_input(self.program.model).values()
        return tuple(dict.fromkeys(dim for one in dims for dim in one if isinstance(dim, str)))

    def ops(self, *names: str) -> list[Node]:
        """Return the nodes with one of these operators of ONNX's own."""
        return [node for node in self.computing if node.op in names and not plain_domain(node.step.node.domain)]


def check_model(model: ModelProto | str | Path, provider: Provider = "dml") -> Checked:
    """Check a model, or a model's file, for a provider; raise `BadInput` for a file that nothing could load.

    Where the model does not load at all, no node runs anywhere.
    """
    exam = examine(model, provider)
    stop = obstacle(exam)
    nodes = (
        Placed(name=node.name, op=node.op, device="none" if stop else node.device, why=stop or node.why)
        for node in exam.nodes
    )
    return Checked(provider=provider, nodes=tuple(nodes), findings=find(exam), verdict=_verdict(exam, stop))


def examine(model: ModelProto | str | Path, provider: Provider = "dml") -> Examination:
    """Place a model's nodes by a provider's table and the limits of the ONNX Runtime that is or would be used."""
    file = "model.onnx" if isinstance(model, ModelProto) else str(model)
    loaded = model if isinstance(model, ModelProto) else load_model(model, weights=False)
    program, nodes = place(loaded, provider)
    return Examination(loaded, program, nodes, provider, runtime(provider), file)


def _verdict(exam: Examination, stop: Text) -> Message:
    counts = Counter(node.device for node in exam.nodes if node.op != "Constant" and not node.preferred)
    total = counts.total()
    if exam.release.is_newer and (stop or counts["none"]):
        message = _("It may or may not load: ONNX Runtime {version} is newer than any release known here.")
        return message.format(version=exam.release.version)
    if stop:
        return _("It does not load as it is: {why}", why=stop)
    if counts["none"]:
        message = _("It does not load: {nodes} of {all} can run nowhere.")
        return message.format(nodes=_count_nodes(counts["none"]), all=total)
    for defect, parts in exam.defects:
        if defect.effect != "fallback":
            return _("It does not load as it is: {why}", why=defect.told(len(parts)))
    if counts[exam.provider] == total:
        message = _("{device} takes every node that computes ({nodes}).")
        return message.format(device=TITLES[exam.provider], nodes=_count_nodes(total))
    message = _("DirectML takes {count} of {all} nodes that compute, the CPU {rest}, with {copies} in every run.")
    copies = ngettext("{count} copy", "{count} copies", exam.copies)
    return message.format(count=counts["dml"], all=total, rest=counts["cpu"], copies=copies)


def _copied(node: Node, owners: dict[int, Node]) -> int:
    """Count the outputs of a node that are taken elsewhere than where they lie."""
    found: set[int] = set()
    on_host = node.device == "cpu" or node.op in {"Shape", "Size"} or (node.kernel is not None and node.kernel.host)
    for index, value in enumerate(node.step.outputs):
        for taker in value.takers if value is not None else ():
            other = owners.get(id(taker))
            if other is None or node.op == "Constant" or "none" in {node.device, other.device}:
                continue
            kernel = other.kernel if other.device != "cpu" else None
            places = (place for place, taken in enumerate(taker.inputs) if taken is value)
            on_device = kernel is not None and not kernel.host and any(one not in kernel.cpu_inputs for one in places)
            if on_device == on_host:
                found.add(index)
    return len(found)


def find(exam: Examination) -> tuple[Finding, ...]:
    """Return everything worth knowing: what stops the model first, then by what it would gain."""
    rules = (
        _loads,
        _nowhere,
        _foreign,
        _defects,
        _newer_release,
        *((_cpu_halves,) if exam.provider == "cpu" else DIRECTML),
    )
    found = [entry for rule in rules for entry in rule(exam)]
    found.sort(key=lambda entry: (ORDER.index(entry[1].severity), -entry[0]))
    return tuple(finding for _gain, finding in found)


def obstacle(exam: Examination) -> Text:
    """Return why this ONNX Runtime does not load the model; "" where nothing is known to stop it."""
    version = runtimes().releases[-1].version if exam.release.is_newer else exam.release.version
    if exam.model.ir_version > exam.release.ir:
        message = _("ONNX Runtime {version} loads IR versions up to {most}, and the model's is {found}.")
        return message.format(version=version, most=exam.release.ir, found=exam.model.ir_version)
    if exam.opset > exam.release.opset:
        message = _("ONNX Runtime {version} loads opsets up to {most}, and the model's is {found}.")
        return message.format(version=version, most=exam.release.opset, found=exam.opset)
    return ""


def _loads(exam: Examination) -> Iterator[Found]:
    text = obstacle(exam)
    if text:
        yield _finding(_severity(exam), "load", text, exam.computing, _convert(exam))


def _nowhere(exam: Examination) -> Iterator[Found]:
    lost = [node for node in exam.computing if node.device == "none" and not is_foreign(node.step.node.domain)]
    if lost:
        text = _("{nodes} can run nowhere, so the model does not load; the first: {why}")
        remedy = _advice(_("Export the model for another opset, or replace these operators."))
        yield _finding(
            _severity(exam), "not-implemented", text.format(nodes=_count(lost), why=lost[0].why), lost, remedy
        )


def _foreign(exam: Examination) -> Iterator[Found]:
    domains: dict[str, list[Node]] = {}
    for node in exam.computing:
        if is_foreign(node.step.node.domain):
            domains.setdefault(node.step.node.domain, []).append(node)
    for domain, nodes in domains.items():
        text = _("{nodes} can run nowhere, so the model does not load as it is: {why}")
        advice, commands = remedy(domain)
        text = text.format(nodes=_count(nodes), why=unknown(domain))
        yield _finding(_severity(exam), "unknown-domain", text, nodes, _advice(advice, *commands))


def _defects(exam: Examination) -> Iterator[Found]:
    """Tell what the runtime is known to do wrong, and how to go round it."""
    by_step = {id(node.step): node for node in exam.nodes}
    for defect, parts in exam.defects:
        nodes = [by_step[id(step)] for step in dict.fromkeys(part[0] for part in parts) if id(step) in by_step]
        severity = Severity.WARNING if defect.effect == "fallback" else Severity.ERROR
        without = _("Or create the session with disabled_optimizers={names}.", names=list(defect.optimizers))
        way = _advice(_(defect.way), *_convert(exam).commands * defect.converts)
        yield _finding(severity, defect.key, defect.told(len(nodes)), nodes, way, _advice(without))


def _severity(exam: Examination) -> Severity:
    """Return how bad it is not to load: a release newer than those known here may load it after all."""
    return Severity.WARNING if exam.release.is_newer else Severity.ERROR


def _newer_release(exam: Examination) -> Iterator[Found]:
    if exam.release.is_newer and (obstacle(exam) or any(node.device == "none" for node in exam.computing)):
        text = _(
            "ONNX Runtime {version} is newer than {known}, the newest release known here: "
            "it may run more than this check says.",
            version=exam.release.version,
            known=runtimes().releases[-1].version,
        )
        remedy = _advice(_("Load the model with that ONNX Runtime to find out, or update the assistant."))
        yield _finding(Severity.WARNING, "newer-runtime", text, (), remedy)


def _cpu_halves(exam: Examination) -> Iterator[Found]:
    wide = [node for node in exam.computing if node.widened]
    if wide:
        text = _("The CPU has no FP16 kernel for {nodes}: they run in FP32, between casts.")
        remedy = _advice(_("Keep the FP32 model for the CPU: it is faster there."))
        yield _finding(Severity.INFO, "fp16-on-cpu", text.format(nodes=_count(wide)), wide, remedy)


def _wrong_pads(exam: Examination) -> Iterator[Found]:
    # From opset 11 on, as a comment at `QueryPad` in ONNX Runtime's DmlOperatorPadding.cpp says.
    bad = [node for node in exam.ops("Pad") if node.device == "dml" and _has_negative_pads(node)]
    if bad:
        text = _("DirectML computes wrong values for negative pads ({nodes}).", nodes=_count(bad))
        yield _finding(Severity.ERROR, "pad-negative", text, bad, _convert(exam))


def _opset(exam: Examination) -> Iterator[Found]:
    changed = [node for node in exam.computing if node.changed]
    low, high = runtimes().best_opsets  # at these, rows match 150 to 153 of ONNX's operators; at 22, 116
    best = _best_opset(exam, (exam.opset, *range(low, high + 1))) if changed else exam.opset
    if best != exam.opset:
        text = _("At opset {found}, DirectML has no kernel for the version of {nodes}; opset {best} suits it better.")
        text = text.format(nodes=_count(changed), found=exam.opset, best=best)
        remedies = (_convert(exam), _advice(_("Or export the model with opset_version={best}.", best=best)))
        yield _finding(Severity.WARNING, "opset", text, changed, *remedies)


def _best_opset(exam: Examination, candidates: Iterable[int]) -> int:
    """Find the opset at which DirectML's table matches the most nodes; of several the one nearest to the model's."""
    kinds = Counter(
        (node.op, _types(node.step.inputs), _types(node.step.outputs))
        for node in exam.computing
        if not plain_domain(node.step.node.domain)
    )

    def matched(opset: int) -> int:
        versions = {op: since("", op, opset) for op, _inputs, _outputs in kinds}
        return sum(
            count
            for (op, inputs, outputs), count in kinds.items()
            if (version := versions[op]) is not None and match("dml", "", op, version, inputs, outputs)[0]
        )

    return max(candidates, key=lambda opset: (matched(opset), -abs(opset - exam.opset)))


def _shapes(exam: Examination) -> Iterator[Found]:
    found = exam.open_sizes
    if found:
        text = _("DirectML does not compile what has open sizes ({names}), and runs several times slower uncompiled.")
        remedies = (
            _advice(_FIX_SIZES),
            _advice(_("Or fix them for the session, with SessionOptions.add_free_dimension_override_by_name.")),
        )
        text = text.format(names=", ".join(found[:MOST_NAMES]))
        yield _finding(Severity.WARNING, "dynamic-shape", text, (), *remedies, gain=len(exam.on_device) / 2)


def _control_flow(exam: Examination) -> Iterator[Found]:
    flow = [node for node in exam.computing if node.step.inner]
    if flow:
        text = _("Branches and loops ({operators}) keep DirectML from compiling the graph that holds them.")
        remedy = _advice(_("Unroll loops of fixed length, keep the one branch that is used, or export without them."))
        text = text.format(operators=_operators(flow))
        yield _finding(Severity.WARNING, "control-flow", text, flow, remedy, gain=len(exam.on_device) / 3)


def _fallbacks(exam: Examination) -> Iterator[Found]:
    """Group what falls to the CPU by its reason, without what another opset would mend."""
    groups: dict[Text, list[Node]] = {}
    for node in exam.computing:
        if node.device == "cpu" and not node.preferred and not node.changed:
            groups.setdefault(node.why, []).append(node)
    for why, nodes in groups.items():
        text = _("{nodes} on the CPU: {why}", nodes=_count(nodes), why=why)
        double = all(TensorProto.DOUBLE in _kinds(node) for node in nodes)
        remedy = (
            _("Cast FP64 to FP32 where it enters, and compare the results.")
            if double
            else _INSTEAD.get(nodes[0].op, _("Replace them with other operators, or accept the copies."))
        )
        yield _finding(Severity.WARNING, "fp64" if double else "no-kernel", text, nodes, _advice(remedy))


def _single_precision(exam: Examination) -> Iterator[Found]:
    size = sum(4 * math.prod(tensor.dims) for tensor in tensors(exam.model) if tensor.data_type == TensorProto.FLOAT)
    if size:
        text = _("The weights are FP32 ({size:.2g} MB): in FP16 they take half the memory and traffic.")
        yield _finding(Severity.INFO, "fp32", text.format(size=size / 1e6), (), _convert(exam))


def _normalised_halves(exam: Examination) -> Iterator[Found]:
    # It ignores the attribute stash_type: https://github.com/microsoft/onnxruntime/issues/17692
    found = [node for node in exam.on_device if node.op == "LayerNormalization" and TensorProto.FLOAT16 in _kinds(node)]
    if found:
        text = _("On DirectML, layer normalisation ({nodes}) sums in FP16 and overflows where a variance passes 65504.")
        remedy = _advice(_("Keep them FP32 if the results hold NaN or Inf."))
        yield _finding(Severity.INFO, "layernorm-fp16", text.format(nodes=_count(found)), found, remedy)


def _integers(exam: Examination) -> Iterator[Found]:
    found = [node for node in exam.on_device if any(out and out.kind == TensorProto.INT64 for out in node.step.outputs)]
    if found:
        text = _("Not every device computes in int64 ({nodes}); what it cannot compute moves to the CPU.")
        remedy = _advice(_("Use int32 inside the model if the device leaves them to the CPU."))
        yield _finding(Severity.INFO, "int64", text.format(nodes=_count(found)), found, remedy)


def _copies(exam: Examination) -> Iterator[Found]:
    if exam.copies:
        text = _("Values copied between device and CPU in every run, besides inputs and outputs: {count}.")
        yield _finding(Severity.INFO, "copies", text.format(count=exam.copies), gain=exam.copies)


DIRECTML = (
    _wrong_pads,
    _opset,
    _shapes,
    _control_flow,
    _fallbacks,
    _single_precision,
    _normalised_halves,
    _integers,
    _copies,
)


def _finding(
    severity: Severity,
    key: str,
    text: Text,
    nodes: Sequence[Node] = (),
    *remedies: Remedy,
    gain: float | None = None,
) -> Found:
    """Return a finding about nodes, with what it would gain: as many as there are, unless it is told."""
    names = tuple(node.name for node in nodes[:MOST_NAMES])
    return len(nodes) if gain is None else gain, Finding(
        key=key, severity=severity, text=text, evidence=names, remedies=remedies
    )


def _advice(text: Message, *commands: str) -> Remedy:
    return Remedy(text=text, commands=commands)


def _convert(exam: Examination) -> Remedy:
    """Point to the conversion, which does by itself what can be done."""
    text = _("Convert it: the result is written beside the model.")
    return _advice(text, command_line(["assistant", "onnx", "convert", exam.file]))


def _count_nodes(count: int) -> Message:
    """Return a number of nodes in words: "1 node", "2 nodes"."""
    return ngettext("{count} node", "{count} nodes", count)


def _count(nodes: Sequence[Node]) -> Message:
    return _count_nodes(len(nodes))


def _operators(nodes: Sequence[Node]) -> str:
    names = sorted({node.op for node in nodes})
    return ", ".join(names[:MOST_NAMES]) + ("…" if len(names) > MOST_NAMES else "")


def _has_negative_pads(node: Node) -> bool:
    pads = constant_input(node.step, 1) or attribute(node.step.node, "pads")
    return isinstance(pads, list) and min(pads, default=0) < 0


def _kinds(node: Node) -> set[int]:
    return {value.kind for value in (*node.step.inputs, *node.step.outputs) if value}


def _types(values: Sequence[Value | None]) -> Types:
    return tuple("" if value is None else tensor_type(value.kind) if value.kind > 0 else None for value in values)
