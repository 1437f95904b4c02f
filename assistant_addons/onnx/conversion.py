"""Converts a model's file for DirectML: opset, FP16; the result and a log of every change lie beside it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto
from onnx.external_data_helper import uses_external_data

from assistant.api import BadInput, Message, WorkFailed, _
from assistant.api.records import to_json
from assistant.api.system import open_regular, unwritable_error, write_atomically
from assistant.api.texts import verbatim
from assistant_addons.onnx.answers import Change, Conversion
from assistant_addons.onnx.child import kept_aside
from assistant_addons.onnx.fp16 import Converted, convert_prepared
from assistant_addons.onnx.graph import FIRST_FREE_IR, opsets, tensors
from assistant_addons.onnx.load import load_model, refuse_invalid, result_path, save_model
from assistant_addons.onnx.prepare import Prepared, prepare
from assistant_addons.onnx.proof import loading

# Why an operation stays FP32, by the key that the conversion gives.
WHY_KEPT: dict[str, Message] = {
    "asked": _("you asked for it"),
    "definition": _("its definition, or what runtimes make of it, wants FP32"),
    "exact": _("it needs exact values: a size, a position, a phase, a power, or a number that FP16 does not hold"),
    "proof": _("rounding it changes the result"),
    "crash": _("ONNX Runtime could not load this in FP16 on the CPU, or would crash"),
}
# Why no run has proved a conversion.
WHY_UNPROVED: dict[str, Message] = {
    "missing": _("ONNX Runtime is not installed beside the assistant"),
    "random": _("the model draws numbers at random, and no two runs agree"),
    "run": _("ONNX Runtime could not run the model"),
    "size": _("the model is too large to be held in memory three times"),
}


def convert(
    source: str | Path,
    output: str | Path | None = None,
    *,
    keep: Sequence[str] = (),
    strict: bool = False,
    inputs: str | Path = "",
    force: bool = False,
    folder: str | Path | None = None,
) -> Conversion:
    """Convert a file and write the result and its log beside it, `NAME.dml.onnx` unless `output` says otherwise.

    `keep` names nodes or operators that stay FP32, `inputs` is a file of inputs to prove the result with, and `strict`
    refuses what no run has proved. With `folder` the files are left there under the same names, for the caller to put
    in place. The source is never written to. Raises `BadInput` for what cannot be read and, unless `force`, for an
    output that exists; `WorkFailed` when the result is not valid, when nothing was to convert, and as `strict` says.
    """
    started = time.monotonic()
    source = Path(source)
    output = result_path(source, output, force=force)
    samples = [read_samples(inputs)] if inputs else []
    model = load_model(source, weights=False)
    held = {tensor.name for tensor in model.graph.initializer}
    if any(uses_external_data(tensor) and tensor.name not in held for tensor in tensors(model)):
        model = load_model(source)
    prepared = prepare(model, source.parent, lower=True)
    made = convert_prepared(prepared, keep, samples)
    changes = tuple(_changes(model, prepared, made))
    with nullcontext(Path(folder)) if folder else kept_aside(output) as place:
        result = made.writer.model
        save_model(result, output, source, place, made.writer.content)
        if prepared.is_giant:
            made.reason = loading(str(place / output.name))() or ""
        _accept(source, changes, made, strict=strict)
        _validate(place / output.name, source, in_full=not made.loaded)
        done = Conversion(
            source=str(source),
            output=str(output),
            changes=changes,
            converted=len(made.choice.slots),
            obstacle=made.obstacle,
            opset=opsets(result).get("", 0),
            ir_version=result.ir_version,
            seconds=time.monotonic() - started,
            loaded=made.loaded,
        )
        _write_log(done, output, place)
    return done


def _changes(given: ModelProto, prepared: Prepared, made: Converted) -> Iterable[Change]:
    """Yield every change between a model as it was and as it is written."""
    for target, why in prepared.changes:
        yield Change(kind="opset", what=target, why=verbatim(why) if why else "")
    ops = {node.name: node.op_type for scope in prepared.scopes for node in scope.graph.node}
    unproved = _("no run has proved it: {reason}", reason=WHY_UNPROVED[made.obstacle]) if made.obstacle else ""
    yield Change(kind="fp16", what=_("{count} operations", count=len(made.choice.slots)), why=unproved)
    for name, why in made.choice.why.items():
        yield Change(kind="kept", what=name if ops[name] in name else f"{ops[name]} {name}", why=WHY_KEPT[why])
    fewer = len(given.graph.input) - len(prepared.model.graph.input)
    if fewer and given.ir_version >= FIRST_FREE_IR:
        yield Change(kind="structure", what=_("weights that are inputs no more: {count}", count=fewer))
    if prepared.model.ir_version != given.ir_version:
        yield Change(kind="ir", what=f"{given.ir_version} → {prepared.model.ir_version}")


def _accept(source: Path, changes: Sequence[Change], made: Converted, *, strict: bool) -> None:
    """Raise `WorkFailed` for a result that is no other model, and under `strict` for one that no run has proved."""
    changed = any(change.kind not in {"fp16", "kept"} for change in changes)
    if not made.choice.slots and not changed:
        raise WorkFailed(
            _("Nothing in {file} can be converted to FP16, so nothing was written.", file=source),
            hint=_("Use the model as it is."),
        )
    if made.reason:
        message = _("ONNX Runtime does not load the converted model, so it was not written: {reason}.")
        raise WorkFailed(
            message.format(reason=made.reason),
            hint=_("Keep that part in FP32, or use the model as it is.", option="--keep"),
        )
    if strict and made.obstacle:
        reason = WHY_UNPROVED[made.obstacle]
        raise WorkFailed(
            _("No run has proved the converted model, so it was not written: {reason}.", reason=reason),
            hint=_("Mend that first, or do without the proof.", option="--strict"),
        )


def read_samples(path: str | Path) -> dict[str, Any]:
    """Read inputs to prove and compare with: an .npz file that holds an array for each input's name."""
    try:
        with open_regular(Path(path), follow=True) as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError) as error:
        message = _("{file} holds no arrays that NumPy could read.", file=path)
        raise BadInput(message, hint=_("Write it with numpy.savez, an array for each input.")) from error


def _validate(path: Path, source: Path, *, in_full: bool) -> None:
    try:
        onnx.checker.check_model(str(path), full_check=in_full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError) as error:
        refuse_invalid(load_model(source, weights=False), source, in_full=True)
        reason = str(error).strip().splitlines()[0]
        raise WorkFailed(
            _("The converted model is not valid, so it was not written: {reason}.", reason=reason),
            hint=_("Check the model itself with `assistant onnx check`."),
        ) from error


def _write_log(done: Conversion, output: Path, folder: Path) -> None:
    lines = [f"{done.source} → {done.output}", ""]
    lines += [f"{change.kind:10} {change.what}" + (f": {change.why}" if change.why else "") for change in done.changes]
    for suffix, text in ((".log.json", to_json(done, indent=2)), (".log.txt", "\n".join(lines))):
        path = folder / (output.name + suffix)
        try:
            write_atomically(path, text + "\n")
        except OSError as error:
            raise unwritable_error(output.with_name(path.name), error) from error
