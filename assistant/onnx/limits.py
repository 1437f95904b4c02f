"""Judges whether a target takes a node: by its table, and by what data/targets.toml asks of operators beside types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnx import helper

from assistant.i18n import Message, Text, _
from assistant.onnx.operators import Kernel, Types, described, match, table, tensor_type
from assistant.onnx.program import Step, Value, attribute
from assistant.onnx.targets import Limit, Target, limits, refuses_scalars, target

SIZES = {"Shape", "Size"}
MOST_STEPS_BACK = 200  # chosen: values that are looked at to find whether one is computed from constants alone
Why = tuple[Kernel | None, bool, Text]  # the row that takes a node; whether only its version is wrong; why not, or ""


def taken(name: str, step: Step, domain: str, version: int, inputs: Types, outputs: Types) -> Why:
    """Return whether a target takes a node, and what stands against it; an unknown type denies nothing."""
    kernel, why = match(name, domain, step.node.op_type, version, inputs, outputs)
    if kernel is None:
        rows = table(name).operators.get(domain, {}).get(step.node.op_type, ())
        return None, bool(rows) and not any(row.takes(version) for row in rows), why
    one = target(name)
    why = next((found for rule in RULES if (found := rule(one, step))), "")
    return kernel, False, why or next(_unmet(name, step, kernel), "")


def _type(one: Target, step: Step) -> Text:
    kinds = {tensor_type(value.kind)[7:-1] for value in (*step.inputs, *step.outputs) if value and value.kind > 0}
    strange = sorted(kinds - one.types) if one.types else []
    return _("{target} does not take {type}.", target=one.title, type=f"tensor({strange[0]})") if strange else ""


def _dimensions(one: Target, step: Step) -> Text:
    most = max((len(value.shape or ()) for value in (*step.inputs, *step.outputs) if value), default=0)
    if not one.most_dimensions or most <= one.most_dimensions:
        return ""
    return _("{target} takes at most {most} dimensions.", target=one.title, most=one.most_dimensions)


def _place(one: Target, step: Step) -> Text:
    inside = one.main_graph_only and step.scope.parent is not None
    return _("{target} takes nothing inside a branch or a loop.", target=one.title) if inside else ""


def _sizes(one: Target, step: Step) -> Text:
    is_open = one.fixed_sizes and any(_is_open(value) for value in (*step.inputs, *step.outputs))
    return open_sizes_message(one.title) if is_open else ""


def open_sizes_message(title: str) -> Message:
    """Return the sentence for a node that an open size keeps off a target."""
    return _("{target} takes fixed sizes only.", target=title)


def _is_open(value: Value | None) -> bool:
    """Return whether a size of a tensor is not known."""
    return value is not None and value.tensor is None and (value.shape is None or None in value.shape)


RULES: tuple[Callable[[Target, Step], Text], ...] = (_type, _dimensions, _place, _sizes)


def _unmet(name: str, step: Step, kernel: Kernel) -> Iterator[Text]:
    """Yield what a target asks of an operator and a node does not give."""
    title, op = target(name).title, step.node.op_type
    rank = _rank(step)
    if kernel.ranks and rank is not None and rank not in kernel.ranks:
        yield _wrong_rank(title, op, kernel.ranks, rank)
    if refuses_scalars(name, op) and any(map(_is_scalar, (*step.inputs, *step.outputs))):
        yield _("{target} takes no value without dimensions in {op}.", target=title, op=op)
    for limit in limits(name, op):
        yield from _refused(title, step, limit)


def _is_constant(value: Value) -> bool:
    """Return whether a value is one, or is computed from constants and known sizes, which the runtime does first."""
    waiting, seen = [value], {id(value)}
    while waiting:
        one = waiting.pop()
        if one.tensor is not None:
            continue
        if one.maker is None or one.maker.inner or len(seen) > MOST_STEPS_BACK:
            return False
        if one.maker.node.op_type in SIZES and not _is_open(one.maker.inputs[0]):
            continue
        fresh = [before for before in one.maker.inputs if before is not None and id(before) not in seen]
        seen |= {id(before) for before in fresh}
        waiting += fresh
        if not any(one.maker.inputs):
            return False  # drawn at random
    return True


def _rank(step: Step) -> int | None:
    first = step.inputs[0] if step.inputs else None
    return len(first.shape) if first is not None and first.shape is not None else None


def _is_scalar(value: Value | None) -> bool:
    return value is not None and value.tensor is None and value.shape == ()


def _wrong_rank(title: str, op: str, ranks: Sequence[int], rank: int) -> Message:
    message = _("{target} takes {op} with {ranks} dimensions only, not with {rank}.")
    return message.format(target=title, op=op, ranks="/".join(map(str, ranks)), rank=rank)


def _refused(title: str, step: Step, limit: Limit) -> Iterator[Text]:
    """Yield why a node does not meet one condition; nothing where what it asks for is not known of the node."""
    op, rank = step.node.op_type, _rank(step)
    given = {place: value for place, value in enumerate(step.inputs) if value is not None}
    names = step.signature.inputs if step.signature else ()
    for place in limit.constant:
        if place in given and not _is_constant(given[place]):
            what = names[place][0] if place < len(names) else f"#{place}"
            yield _("{target} takes {op} only with {input} as a constant.", target=title, op=op, input=what)
    if limit.rank and rank is not None and rank not in limit.rank:
        yield _wrong_rank(title, op, limit.rank, rank)
    for place in limit.absent:
        if place in given:
            what = names[place][0] if place < len(names) else f"#{place}"
            yield _("{target} takes {op} only without {input}.", target=title, op=op, input=what)
    if limit.outputs and any(value is not None for value in step.outputs[limit.outputs :]):
        yield _("{target} gives {op} one output only.", target=title, op=op)
    if limit.types and limit.of in given and given[limit.of].kind > 0:
        kind = tensor_type(given[limit.of].kind)
        if kind[7:-1] not in limit.types:
            yield _("{target} does not take {op} for {type}.", target=title, op=op, type=kind)
    yield from _wrong_value(title, step, limit)


def _wrong_value(title: str, step: Step, limit: Limit) -> Iterator[Text]:
    """Yield why the value of an attribute, or its default, is not among those that a target takes."""
    if not limit.attribute:
        return
    found = attribute(step.node, limit.attribute, _default(step, limit.attribute))
    values = found if isinstance(found, list) else [] if found is None else [found]
    plain = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
    wrong = next((value for value in plain if value not in limit.values), None)
    if wrong is not None:
        message = _("{target} does not take {op} with {attribute} = {value}.")
        yield message.format(target=title, op=step.node.op_type, attribute=limit.attribute, value=wrong)


def _default(step: Step, name: str) -> object:
    """Return the default of an attribute; None where the operator has none."""
    schema = described("" if step.node.domain == "ai.onnx" else step.node.domain, step.node.op_type, step.version)
    known = schema.attributes.get(name) if schema is not None else None
    return helper.get_attribute_value(known.default_value) if known and known.default_value.name else None
