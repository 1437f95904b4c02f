"""Known defects of ONNX Runtime: which of them a model calls forth, and how to go round each."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Callable, Collection, Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

from onnx import TensorProto
from packaging.version import Version

from assistant.api import Message, Record, _, ngettext
from assistant.api.records import from_plain
from assistant_addons.onnx.graph import opsets
from assistant_addons.onnx.program import Program, Step, Value, attribute

# From here on ONNX has an operator of its own, into which the optimiser fuses what is written out.
GELU_OPSET, LAYER_NORM_OPSET = 20, 17
PROCESSORS = {"arm64": "aarch64"}  # as macOS and Windows call it
KINDS = {"float16": TensorProto.FLOAT16, "double": TensorProto.DOUBLE}
Part = tuple[Step, ...]


class Defect(Record, frozen=True):
    """A defect; `data/defects.toml` says what the fields mean."""

    key: str
    provider: Literal["cpu", "dml"]
    since: str
    condition: str
    effect: Literal["crash", "refusal", "fallback"]
    text: str
    way: str
    sources: tuple[str, ...]
    until: str = ""
    processor: str = ""
    type: Literal["", "float16", "double"] = ""
    error: str = ""
    optimizers: tuple[str, ...] = ()
    always: bool = False
    converts: bool = False

    def is_in(self, release: str) -> bool:
        """Return whether a release of ONNX Runtime has it, on this machine's processor."""
        machine = platform.machine().lower()
        here = not self.processor or self.processor == PROCESSORS.get(machine, machine)
        after = not self.until or Version(release) < Version(self.until)
        return here and after and Version(release) >= Version(self.since)

    def told(self, count: int) -> Message:
        """Return its sentence about so many nodes."""
        return _(self.text).format(nodes=ngettext("{count} node", "{count} nodes", count))


class _Defects(Record, frozen=True):
    as_of: str
    defect: tuple[Defect, ...]


@cache
def defects() -> tuple[Defect, ...]:
    """Read the table."""
    text = (files(__package__) / "data" / "defects.toml").read_text(encoding="utf-8")
    return from_plain(tomllib.loads(text), _Defects, "defects.toml").defect


def disabled(provider: str, release: str) -> list[str]:
    """Return the optimisers that a session does without, so that nodes stay on the device."""
    return [
        name
        for one in defects()
        if one.provider == provider and one.effect == "fallback" and one.is_in(release)
        for name in one.optimizers
    ]


def met(program: Program, provider: str, release: str = "") -> Iterator[tuple[Defect, list[Part]]]:
    """Yield the defects of a release, or of any, that a model calls forth as it is, each with its parts."""
    for defect in defects():
        if defect.provider == provider and (not release or defect.is_in(release)):
            kind = KINDS.get(defect.type)
            parts = [part for part in CONDITIONS[defect.condition](program) if kind is None or _is_of(part, kind)]
            if parts:
                yield defect, parts


def cause(program: Program, provider: str, error: str, *, died: bool) -> Message | None:
    """Return the sentence of the defect that explains an error of the runtime, or its death; None for any other."""
    for defect, parts in met(program, provider):
        explains = died if defect.effect == "crash" else bool(defect.error) and defect.error in error
        if explains:
            return defect.told(len(parts))
    return None


def to_keep(program: Program, converted: Collection[Step], *, all_of_them: bool) -> Iterator[Step]:
    """Yield the steps that have to stay FP32 lest the result of a conversion calls a defect forth."""
    for defect in defects():
        if defect.type == "float16" and (defect.always or all_of_them):
            for part in CONDITIONS[defect.condition](program):
                if all(step in converted for step in part):
                    yield part[0]


def _is_of(part: Part, kind: int) -> bool:
    return all(step.outputs and step.outputs[0] is not None and step.outputs[0].kind == kind for step in part)


def _moved_batch(program: Program) -> Iterator[Part]:
    """Find products by a weight of what a transposition made that moves the first axis to the last but one, or last."""
    for transposed, product, other in _transposed(program):
        if other.tensor is not None and _moves_batch(_permutation(transposed)):
            yield transposed, product


def _any_transposed(program: Program) -> Iterator[Part]:
    for transposed, product, _other in _transposed(program):
        order = _permutation(transposed)
        swaps = order[:-2] == list(range(len(order) - 2)) and order[-1:] == [len(order) - 2]
        if swaps or _moves_batch(order):
            yield transposed, product


def _transposed(program: Program) -> Iterator[tuple[Step, Step, Value]]:
    for step in program.steps():
        first, second = (*step.inputs, None, None)[:2]
        if step.op == "MatMul" and first is not None and second is not None:
            for one, other in ((first, second), (second, first)):
                if one.maker is not None and one.maker.op == "Transpose":
                    yield one.maker, step, other


def _permutation(step: Step) -> list[int]:
    order = attribute(step.node, "perm")
    if isinstance(order, list):
        return order
    shape = step.inputs[0].shape if step.inputs and step.inputs[0] is not None else None
    return list(range(len(shape)))[::-1] if shape is not None else []


def _moves_batch(order: list[int]) -> bool:
    axes = len(order)
    return axes > 2 and order[:-2] == list(range(1, axes - 1)) and set(order[-2:]) == {0, axes - 1}  # noqa: PLR2004


def _mean_squares(program: Program) -> Iterator[Part]:
    """Find normalisations by the root of a mean square, where there are two and a convolution by a weight.

    From opset 17 on those that subtract a mean first are merged whole, before anything can go wrong.
    """
    convolution = next((step for step in program.steps() if step.op == "Conv" and _has_weight(step)), None)
    whole = opsets(program.model).get("", 1) >= LAYER_NORM_OPSET
    found = [
        (*part, convolution)
        for step in program.steps()
        if convolution is not None and (part := _chain(step, ("Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul")))
        if not (whole and _is_made_by(step, "Sub"))
    ]
    if len(found) > 1:
        yield from found


def _has_weight(step: Step) -> bool:
    return len(step.inputs) > 1 and step.inputs[1] is not None and step.inputs[1].tensor is not None


def _is_made_by(step: Step, op: str) -> bool:
    first = step.inputs[0] if step.inputs else None
    return first is not None and first.maker is not None and first.maker.op == op


def _gelu(program: Program) -> Iterator[Part]:
    for step in program.steps():
        part = _chain(step, ("Erf", "Add", "Mul"))
        if part:
            yield part


def _late_erf(program: Program) -> Iterator[Part]:
    yield from ((step,) for step in program.steps() if step.op == "Erf" and step.version >= GELU_OPSET)


def _chain(step: Step, ops: tuple[str, ...]) -> Part:
    """Return the steps of these operators that follow one another from this one on; () where there are none."""
    if step.op != ops[0]:
        return ()
    if len(ops) == 1:
        return (step,)
    made = step.outputs[0] if step.outputs else None
    followers = (_chain(taker, ops[1:]) for taker in (made.takers if made is not None else ()))
    return next(((step, *rest) for rest in followers if rest), ())


CONDITIONS: dict[str, Callable[[Program], Iterator[Part]]] = {
    "erf-from-opset-20": _late_erf,
    "erf-gelu": _gelu,
    "product-of-moved-batch": _moved_batch,
    "product-of-transposed": _any_transposed,
    "roots-of-mean-squares": _mean_squares,
}
