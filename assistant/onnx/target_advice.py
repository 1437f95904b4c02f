"""Advice for a target that a table describes: what it does not take and why, what would mend that, what is not told."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.i18n import Text, _
from assistant.model.finding import Remedy, Severity
from assistant.model.shell import command_line
from assistant.onnx.advice import INSTEAD, Found, best_opset, count_nodes, finding, fix_shapes
from assistant.onnx.examination import Examination
from assistant.onnx.limits import open_sizes_message
from assistant.onnx.operators import table
from assistant.onnx.placement import Node
from assistant.onnx.targets import limits, target

FIRST_OPSET = 13  # chosen: the oldest that is proposed


def convert(exam: Examination) -> Remedy:
    """Point to the conversion for the target."""
    command = command_line(["assistant", "onnx", "convert", exam.file, "--for", exam.provider])
    return Remedy(text=_("Convert it for {target}.", target=target(exam.provider).title), commands=(command,))


def wants_fixed_sizes(exam: Examination) -> bool:
    """Return whether the target takes fixed sizes only and an input leaves one open."""
    found = (exam.program.main.values.get(info.name) for info in exam.program.model.graph.input)
    given = (value for value in found if value is not None and value.tensor is None)
    return target(exam.provider).fixed_sizes and any(value.shape is None or None in value.shape for value in given)


def suited_opset(exam: Examination) -> int:
    """Return the opset, not above the model's, at which the target takes the most nodes by its table."""
    last = min(exam.opset, target(exam.provider).last_opset or exam.opset)
    return best_opset(exam, range(min(FIRST_OPSET, last), last + 1))


def off_device(exam: Examination) -> dict[Text, list[Node]]:
    """Group the nodes that the target leaves by the reason, without what is meant for the CPU."""
    groups: dict[Text, list[Node]] = {}
    for node in exam.computing:
        if node.device == "cpu" and not node.preferred:
            groups.setdefault(node.why, []).append(node)
    return groups


def _fallbacks(exam: Examination) -> Iterator[Found]:
    """Say for each reason what falls to the CPU, but for what fixed sizes or another opset mend."""
    sizes = open_sizes_message(target(exam.provider).title)
    for why, nodes in off_device(exam).items():
        if why != sizes and not nodes[0].changed:
            text = _("{nodes} on the CPU: {why}", nodes=count_nodes(len(nodes)), why=why)
            advice = INSTEAD.get(nodes[0].op, _("Replace them with other operators, or accept the copies."))
            yield finding(Severity.WARNING, "no-kernel", text, nodes, Remedy(text=advice))


def _sizes(exam: Examination) -> Iterator[Found]:
    if wants_fixed_sizes(exam):
        nodes = off_device(exam).get(open_sizes_message(target(exam.provider).title), [])
        text = _("{target} takes fixed sizes only, and the model leaves some open ({nodes}).")
        text = text.format(target=target(exam.provider).title, nodes=count_nodes(len(nodes)))
        yield finding(Severity.WARNING, "dynamic-shape", text, nodes, fix_shapes(exam))


def _opset(exam: Examination) -> Iterator[Found]:
    changed = [node for node in exam.computing if node.changed]
    best = suited_opset(exam) if changed else exam.opset
    if best != exam.opset:
        text = _("At opset {found}, {target} does not take the version of {nodes}; opset {best} suits it better.")
        title, count = target(exam.provider).title, count_nodes(len(changed))
        text = text.format(found=exam.opset, target=title, nodes=count, best=best)
        yield finding(Severity.WARNING, "opset", text, changed, convert(exam))


def _words(exam: Examination) -> Iterator[Found]:
    """Pass on the limits that cannot be judged here."""
    for op in sorted({node.op for node in exam.on_device}):
        for limit in limits(exam.provider, op):
            if limit.words:
                text = _("A limit of {target} that is not checked here, {op}: {words}.")
                text = text.format(target=target(exam.provider).title, op=op, words=_(limit.words))
                yield finding(Severity.INFO, "unchecked-limit", text, exam.ops(op))


def _rests_on(exam: Examination) -> Iterator[Found]:
    known = table(exam.provider)
    parts = (target(exam.provider).title, known.holds_for, known.as_of)
    text = _("This rests on the table of {name} for {release}, {date}.")
    yield finding(Severity.INFO, "table", text.format(name=parts[0], release=parts[1], date=parts[2]), gain=-2)
    if target(exam.provider).compiles:
        text = _("What {target} claims it compiles afterwards, and that may still fail: `assistant onnx try` tells.")
        yield finding(Severity.INFO, "compiled-later", text.format(target=target(exam.provider).title), gain=-1)
    if not tells_types(exam.provider):
        text = _("That table tells no types: a type that the device does not take falls to the CPU, too.")
        yield finding(Severity.INFO, "types-not-told", text, gain=-3)


def tells_types(name: str) -> bool:
    """Return whether a target's types are known."""
    return bool(table(name).type_sets or target(name).types)


ON_TARGET = (_fallbacks, _sizes, _opset, _words, _rests_on)
