"""Surveys all targets: what each takes of a model, what keeps the rest off it, and what mends that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnx import ModelProto, TensorProto

from assistant.i18n import Message, _
from assistant.model.finding import Remedy
from assistant.model.shell import command_line
from assistant.onnx.advice import fix_shapes, obstacle
from assistant.onnx.answers import Blocked, Summary, Survey
from assistant.onnx.check import examinations
from assistant.onnx.examination import Examination
from assistant.onnx.limits import open_sizes_message
from assistant.onnx.operators import table
from assistant.onnx.placement import Node
from assistant.onnx.target_advice import convert, suited_opset, tells_types, wants_fixed_sizes
from assistant.onnx.targets import known, target


def check_targets(model: ModelProto | str | Path, names: Sequence[str] = ()) -> Survey:
    """Survey all targets, or those of these names, in order; raise `BadInput` for a file that nothing could load."""
    return summed_up(list(examinations(model, names or tuple(known().targets))))


def summed_up(exams: Sequence[Examination]) -> Survey:
    """Sum up what several targets take of one model."""
    return Survey(targets=tuple(map(summary, exams)), remedies=tuple(_remedies(exams)))


def summary(exam: Examination) -> Summary:
    """Sum up what one target takes; where the model does not load at all, it takes nothing."""
    counting = [node for node in exam.computing if not node.preferred]
    stop = obstacle(exam)
    places = Counter("none" if stop else node.device for node in counting)
    takes = places[exam.provider]
    return Summary(
        target=exam.provider,
        title=target(exam.provider).title,
        takes=takes,
        of=len(counting),
        cpu=places["cpu"] if exam.provider != "cpu" else 0,
        nowhere=places["none"],
        needs=tuple(_needs(exam)),
        blocked=tuple(_blocked(exam)),
        as_of=table(exam.provider).as_of,
        types_told=tells_types(exam.provider),
    )


def _needs(exam: Examination) -> Iterator[Message]:
    """Yield what the model would have to have so that the target takes more of it."""
    if obstacle(exam):
        yield _("an older opset or IR version")
    if wants_fixed_sizes(exam):
        yield _("fixed sizes")
    best = _other_opset(exam)
    if best:
        yield _("opset {opset}", opset=best)
    if any(_is_double(node) for node in exam.computing if node.device != exam.provider):
        yield _("FP32 in place of FP64")


def _other_opset(exam: Examination) -> int:
    """Return an opset at which the target takes more; 0 where none is known."""
    best = suited_opset(exam) if any(node.changed for node in exam.computing) else exam.opset
    return best if best != exam.opset else 0


def _is_double(node: Node) -> bool:
    values = (*node.step.inputs, *node.step.outputs)
    return any(value is not None and value.kind == TensorProto.DOUBLE for value in values)


def _blocked(exam: Examination) -> list[Blocked]:
    """Group what the target does not take by operator and reason, the most nodes first."""
    sizes = open_sizes_message(target(exam.provider).title)
    counts = Counter(
        (node.op, node.device, node.why)
        for node in exam.computing
        if node.device != exam.provider and not node.preferred and node.why != sizes
    )
    return [Blocked(op=op, nodes=count, device=device, why=why) for (op, device, why), count in counts.most_common()]


def _remedies(exams: Sequence[Examination]) -> Iterator[Remedy]:
    """Yield what mends the most: fixed sizes, the conversion for the first target that gains by it, a closer look."""
    open_ones = [exam for exam in exams if wants_fixed_sizes(exam)]
    if open_ones:
        yield fix_shapes(open_ones[0])
    gaining = next((exam for exam in exams if _other_opset(exam) or _gains_by_halves(exam)), None)
    if gaining is not None:
        yield convert(gaining)
    command = command_line(["assistant", "onnx", "check", exams[0].file, "--target", exams[0].provider])
    yield Remedy(text=_("See every node and its reason on one target."), commands=(command,))


def _gains_by_halves(exam: Examination) -> bool:
    """Return whether a target that is better given FP16 takes most of a model in FP32."""
    is_single = any(one and one.kind == TensorProto.FLOAT for node in exam.on_device for one in node.step.inputs)
    return target(exam.provider).fp16 and is_single and len(exam.on_device) * 2 > len(exam.computing)
