"""Checks a model for a provider: where each node runs, what stands in the way with its remedies, and a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onnx import ModelProto, TensorProto

from assistant.api import Message, Text, _, ngettext
from assistant.api.records import Finding, Remedy, Severity
from assistant.api.texts import command_line
from assistant_addons.onnx.answers import TITLES, Checked, Placed, Provider
from assistant_addons.onnx.graph import given_inputs, opsets, subgraphs, tensors
from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.operators import (
    Release,
    is_foreign,
    match,
    runtime,
    runtimes,
    since,
    unknown_domain,
)
from assistant_addons.onnx.placement import Node, count_copies, place

MOST_NAMES = 5  # of nodes, sizes or operators in one sentence
ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)
NAMELESS = {"", "?"}  # Paddle writes a question mark for any size that is open: two of them need not be equal
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
    """A model as it was read and placed, with the runtime's limits and the file's name."""

    model: ModelProto
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
        """The values that are copied between device and CPU in every run."""
        return count_copies(self.nodes)

    @cached_property
    def obstacle(self) -> Text:
        """Why this ONNX Runtime does not load the model; "" where nothing is known to stop it."""
        version = self.release.newest if self.release.is_newer else self.release.version
        if self.model.ir_version > self.release.ir:
            message = _("ONNX Runtime {version} loads IR versions up to {most}, and the model's is {found}.")
            return message.format(version=version, most=self.release.ir, found=self.model.ir_version)
        if self.opset > self.release.opset:
            message = _("ONNX Runtime {version} loads opsets up to {most}, and the model's is {found}.")
            return message.format(version=version, most=self.release.opset, found=self.opset)
        return ""


def check_model(model: ModelProto | str | Path, provider: Provider = "dml") -> Checked:
    """Check a model, or a model's file, for a provider; raise `BadInput` for a file that nothing could load.

    Where the model does not load at all, no node runs anywhere.
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
    """Place a model's nodes by a provider's table and the limits of the ONNX Runtime that is or would be used."""
    file = "model.onnx" if isinstance(model, ModelProto) else str(model)
    loaded = model if isinstance(model, ModelProto) else load_model(model, weights=False)
    return Examination(loaded, place(loaded, provider), provider, runtime(provider), file)


def _verdict(exam: Examination) -> Message:
    counts = Counter(node.device for node in exam.computing if not node.preferred)
    total = counts.total()
    if exam.release.is_newer and (exam.obstacle or counts["none"]):
        message = _("It may or may not load: ONNX Runtime {version} is newer than any release known here.")
        return message.format(version=exam.release.version)
    if exam.obstacle:
        return _("It does not load as it is: {why}", why=exam.obstacle)
    if counts["none"]:
        message = _("It does not load: {nodes} of {all} can run nowhere.")
        return message.format(nodes=_count(counts["none"]), all=total)
    if counts[exam.provider] == total:
        message = _("{device} takes every node that computes ({nodes}).")
        return message.format(device=TITLES[exam.provider], nodes=_count(total))
    message = _("DirectML takes {count} of {all} nodes that compute, the CPU {rest}, with {copies} in every run.")
    copies = ngettext("{count} copy", "{count} copies", exam.copies)
    return message.format(count=counts["dml"], all=total, rest=counts["cpu"], copies=copies)


def _stopping(exam: Examination) -> Iterator[Found]:
    """Yield what keeps the model from loading; a release newer than those known here may load it after all."""
    severity = Severity.WARNING if exam.release.is_newer else Severity.ERROR
    nowhere, foreign = list[Node](), dict[str, list[Node]]()
    for node in (node for node in exam.computing if node.device == "none"):
        domain = node.domain
        (foreign.setdefault(domain, []) if is_foreign(domain) else nowhere).append(node)
    if exam.obstacle:
        yield _finding(severity, "load", exam.obstacle, exam.computing, _convert(exam))
    if nowhere:
        text = _("{nodes} can run nowhere, so the model does not load; the first: {why}")
        remedy = _advice(_("Export the model for another opset, or replace these operators."))
        text = text.format(nodes=_count(len(nowhere)), why=nowhere[0].why)
        yield _finding(severity, "not-implemented", text, nowhere, remedy)
    for domain, nodes in foreign.items():
        text = _("{nodes} can run nowhere, so the model does not load as it is: {why}")
        why, advice, commands = unknown_domain(domain)
        text = text.format(nodes=_count(len(nodes)), why=why)
        yield _finding(severity, "unknown-domain", text, nodes, Remedy(text=advice, commands=commands))
    if exam.release.is_newer and (exam.obstacle or nowhere or foreign):
        text = _(
            "ONNX Runtime {version} is newer than {known}, the newest release known here: "
            "it may run more than this check says.",
            version=exam.release.version,
            known=exam.release.newest,
        )
        remedy = _advice(_("Load the model with that ONNX Runtime to find out, or update the assistant."))
        yield _finding(Severity.WARNING, "newer-runtime", text, (), remedy)


def _on_cpu(exam: Examination) -> Iterator[Found]:
    wide = [node for node in exam.computing if node.widened]
    if wide:
        text = _("The CPU has no FP16 kernel for {nodes}: they run in FP32, between casts.", nodes=_count(len(wide)))
        remedy = _advice(_("Keep the FP32 model for the CPU: it is faster there."))
        yield _finding(Severity.INFO, "fp16-on-cpu", text, wide, remedy)


def _on_directml(exam: Examination) -> Iterator[Found]:
    yield from _opset(exam)
    size = sum(4 * math.prod(tensor.dims) for tensor in tensors(exam.model) if tensor.data_type == TensorProto.FLOAT)
    on_device = sum(node.device == "dml" for node in exam.computing)
    if names := _open_sizes(exam.model):
        text = _("DirectML does not compile what has open sizes ({names}), and runs several times slower uncompiled.")
        advice = _("Or fix them for the session, with SessionOptions.add_free_dimension_override_by_name.")
        text = text.format(names=", ".join(names[:MOST_NAMES]))
        ways = (_advice(_FIX_SIZES), _advice(advice))
        yield _finding(Severity.WARNING, "dynamic-shape", text, (), *ways, gain=on_device / 2)
    if flow := [node for node in exam.computing if any(subgraphs(node.proto))]:
        text = _("Branches and loops ({operators}) keep DirectML from compiling the graph that holds them.")
        advice = _("Unroll loops of fixed length, keep the one branch that is used, or export without them.")
        text = text.format(operators=", ".join(sorted({node.op for node in flow})))
        yield _finding(Severity.WARNING, "control-flow", text, flow, _advice(advice), gain=on_device / 3)
    yield from _fallbacks(exam)
    if size:
        text = _("The weights are FP32 ({size:.2g} MB): in FP16 they take half the memory and traffic.")
        yield _finding(Severity.INFO, "fp32", text.format(size=size / 1e6), (), _convert(exam))
    for key, severity, concerns, text, way in ON_DEVICE:
        if found := [node for node in exam.computing if node.device == "dml" and concerns(node, exam.opset)]:
            remedy = _convert(exam) if way is None else _advice(way)
            yield _finding(severity, key, text.format(nodes=_count(len(found))), found, remedy)
    if exam.copies:
        text = _("Values copied between device and CPU in every run, besides inputs and outputs: {count}.")
        yield _finding(Severity.INFO, "copies", text.format(count=exam.copies), gain=exam.copies)


def _opset(exam: Examination) -> Iterator[Found]:
    """Yield the opset whose versions DirectML's table matches best, where the model's own leaves nodes to the CPU."""
    changed = [node for node in exam.computing if node.changed]
    kinds = Counter((node.op, *node.types()) for node in exam.computing if not node.domain)

    def matched(opset: int) -> int:
        versions = {op: since("", op, opset) for op, _inputs, _outputs in kinds}
        return sum(
            count
            for (op, inputs, outputs), count in kinds.items()
            if (version := versions[op]) is not None and match("dml", "", op, version, inputs, outputs)[0]
        )

    low, high = runtimes()["best_opsets"]  # at these, rows match 150 to 153 of ONNX's operators; at 22, 116
    candidates = (exam.opset, *range(low, high + 1)) if changed else (exam.opset,)
    best = max(candidates, key=lambda opset: (matched(opset), -abs(opset - exam.opset)))
    if best != exam.opset:
        text = _("At opset {found}, DirectML has no kernel for the version of {nodes}; opset {best} suits it better.")
        text = text.format(nodes=_count(len(changed)), found=exam.opset, best=best)
        remedies = (_convert(exam), _advice(_("Or export the model with opset_version={best}.", best=best)))
        yield _finding(Severity.WARNING, "opset", text, changed, *remedies)


def _open_sizes(model: ModelProto) -> list[str]:
    """Return the names of the sizes that the inputs leave open; "x#1" for one without a name, by input and axis."""
    return list(
        dict.fromkeys(
            f"{info.name}#{axis}" if dim.dim_param in NAMELESS else str(dim.dim_param)
            for info in given_inputs(model.graph)
            for axis, dim in enumerate(info.type.tensor_type.shape.dim)
            if dim.dim_value <= 0
        )
    )


def _fallbacks(exam: Examination) -> Iterator[Found]:
    """Group what falls to the CPU by its reason, without what another opset would mend."""
    groups: dict[Text, list[Node]] = {}
    for node in exam.computing:
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
    return any(value.type == kind for value in node.values())


# What DirectML takes, but not well: key, severity, which nodes at which opset, a sentence, what to do (None: convert).
ON_DEVICE: tuple[tuple[str, Severity, Callable[[Node, int], bool], Message, Message | None], ...] = (
    (  # from opset 11 on, as a comment at `QueryPad` in ONNX Runtime's DmlOperatorPadding.cpp says
        "pad-negative",
        Severity.ERROR,
        lambda node, _opset: node.op == "Pad" and not node.domain and node.has_negative_pads(),
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
        lambda node, _opset: any(value is not None and value.type == "tensor(int64)" for value in node.outputs),
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
