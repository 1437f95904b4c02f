"""Checks a model for a provider: where each node runs, what stands in the way, and one sentence on the whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from onnx import ModelProto

from assistant.i18n import Message, Text, _
from assistant.onnx.advice import count_nodes, find, obstacle
from assistant.onnx.answers import TITLES, Checked, Placed, Provider
from assistant.onnx.examination import Examination
from assistant.onnx.load import load_model
from assistant.onnx.operators import runtime
from assistant.onnx.placement import place


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
        return message.format(nodes=count_nodes(counts["none"]), all=total)
    for defect, parts in exam.defects:
        if defect.effect != "fallback":
            return _("It does not load as it is: {why}", why=defect.told(len(parts)))
    if counts[exam.provider] == total:
        message = _("{device} takes every node that computes ({nodes}).")
        return message.format(device=TITLES[exam.provider], nodes=count_nodes(total))
    message = _(
        "DirectML takes {count} of {all} nodes that compute, the CPU {rest}, with {copies} copies in every run."
    )
    return message.format(count=counts["dml"], all=total, rest=counts["cpu"], copies=exam.copies)
