"""Checks a model for a provider: where each node runs, what stands in the way, and one sentence on the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto

from assistant.i18n import Message, Text, _
from assistant.model.finding import Finding
from assistant.onnx.advice import count_nodes, find, obstacle
from assistant.onnx.answers import Checked, Placed
from assistant.onnx.examination import Examination
from assistant.onnx.feeds import refuse_unfit, shapes_of
from assistant.onnx.fixed_shapes import fix_shapes
from assistant.onnx.inputs import Feeds
from assistant.onnx.load import load_model
from assistant.onnx.operators import provider_name, runtime
from assistant.onnx.placement import place


def check_model(model: ModelProto | str | Path, provider: str = "dml", *, samples: Sequence[Feeds] = ()) -> Checked:
    """Check a model, or a model's file, for "dml" or "cpu", with the sizes of `samples` where there are some.

    Raises `BadInput` for a file that nothing could load, and for samples that the model does not take.
    """
    return checked(examine(model, provider, samples=samples))


def examine(model: ModelProto | str | Path, provider: str = "dml", *, samples: Sequence[Feeds] = ()) -> Examination:
    """Place a model's nodes by the provider's kernels and the limits of the ONNX Runtime that is or would be used."""
    file = "model.onnx" if isinstance(model, ModelProto) else str(model)
    loaded = model if isinstance(model, ModelProto) else load_model(model, weights=False)
    sized, sizes = loaded, None
    for sample in samples:
        refuse_unfit(loaded, sample)
        sized, fixed = fix_shapes(loaded, shapes=shapes_of(sample))
        sizes = sizes or fixed.sizes
    program, nodes = place(sized, provider)
    return Examination(loaded, program, nodes, provider, runtime(provider), file, sizes)


def checked(exam: Examination) -> Checked:
    """Return the answer for users; where the model does not load at all, no node runs anywhere."""
    stop = obstacle(exam)
    nodes = (
        Placed(name=node.name, op=node.op, device="none" if stop else node.device, why=stop or node.why)
        for node in exam.nodes
    )
    findings = find(exam)
    return Checked(
        provider=exam.provider,
        nodes=tuple(nodes),
        findings=findings,
        verdict=_verdict(exam, stop),
        npu=_on_npu(findings, stop) if exam.provider == "dml" else "",
        copies=exam.copies,
    )


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
        return message.format(nodes=count_nodes(counts["none"]), all=total)
    for defect, parts in exam.defects:
        if defect.effect != "fallback":
            return _("It does not load as it is: {why}", why=defect.told(len(parts)))
    if counts[exam.provider] == total:
        message = _("{device} takes every node that computes ({nodes}).")
        return message.format(device=provider_name(exam.provider), nodes=count_nodes(total))
    message = _(
        "DirectML takes {count} of {all} nodes that compute, the CPU {rest}, with {copies} copies in every run."
    )
    return message.format(count=counts["dml"], all=total, rest=counts["cpu"], copies=exam.copies)


_AGAINST_NPU = {
    "npu-fp32": _("FP32"),
    "npu-dynamic-shape": _("open sizes"),
    "npu-conv1d": _("1-D convolutions"),
    "npu-operators": _("operators outside the compiled graph"),
}


def _on_npu(findings: tuple[Finding, ...], stop: Text) -> Message:
    against = tuple(_AGAINST_NPU[finding.key] for finding in findings if finding.key in _AGAINST_NPU)
    if stop:
        return _("On an NPU it does not load either.")
    if against:
        return _("An NPU is unlikely to run it, because of: {reasons}.", reasons=against)
    return _("Nothing known keeps an NPU from running it; its driver decides.")
