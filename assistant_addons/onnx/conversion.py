"""Converts a model's file for DirectML: opset, structure, FP16; the result and a log of every change lie beside it."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx.version_converter
from onnx import ModelProto

from assistant.api import BadInput, Message, Record, Text, WorkFailed, _
from assistant.api.records import to_json
from assistant.api.system import open_regular, unwritable_error, write_atomically
from assistant_addons.onnx.answers import Change, Conversion, Fp16Summary, Run
from assistant_addons.onnx.child import Ended, call, kept_aside, limits
from assistant_addons.onnx.defects import cause
from assistant_addons.onnx.fp16 import convert_program
from assistant_addons.onnx.graph import FIRST_FREE_IR, KNOWN_IR, opsets
from assistant_addons.onnx.inputs import Feeds
from assistant_addons.onnx.load import load_model, result_path, save_model
from assistant_addons.onnx.lowering import CannotLower, best_opsets, lower, rewrite
from assistant_addons.onnx.program import Program, program

# Of those that ONNX Runtime guarantees to run: https://onnxruntime.ai/docs/reference/compatibility.html
FIRST_OPSET = 7
CHECKED_BYTES = 2**31 - 2**27  # protobuf, through which the checker is given a model, ends at 2 GB

Made = tuple[ModelProto, tuple[Change, ...], Fp16Summary | None]

# Why an operation stays FP32, by the key that the conversion gives.
WHY_KEPT: dict[str, Message] = {
    "asked": _("you asked for it"),
    "between": _("it lies between FP32 operations"),
    "beyond": _("one of its values is too large for FP16, or too small"),
    "bits": _("it reads bits, not numbers"),
    "coordinates": _("it computes coordinates, which FP16 would shift by fractions of a pixel"),
    "crash": _("ONNX Runtime could not load this in FP16 on the CPU, or would crash"),
    "constant": _("it is computed from constants alone, once, before the model runs"),
    "difference": _("it subtracts FP32 numbers that may be large; rounded first, their difference would be lost"),
    "dynamics": _("a logarithm is taken of it, and rounding would lose its faint parts beside the loud ones"),
    "epsilon": _("its epsilon is zero in FP16"),
    "exact": _("an integer, a size, a threshold or a condition is computed from it"),
    "infinite": _("a value too large for FP16 would count as infinite"),
    "phase": _("a sine or cosine is computed from it, which rounding would move to another place in its period"),
    "outputs": _("it has further outputs, in FP32, that no GPU kernel computes"),
    "quantised": _("it belongs to a quantised part, which runtimes fuse as it is"),
    "range": _("DirectML has it in FP32 only, and FP16 loses integers above 2048"),
    "rounding": _("rounding it changes the result"),
    "scatter": _("it combines many values into one"),
    "sequence": _("it handles sequences or optional values"),
    "subgraph": _("it passes values into its subgraphs and back"),
    "sums": _("the sums inside it are too large for FP16"),
    "threshold": _("it compares with thresholds, where the last digit decides"),
    "unseen": _("its values could not be observed"),
}


# Why no run has proved a conversion.
WHY_UNPROVED: dict[str, Message] = {
    "missing": _("ONNX Runtime is not installed beside the assistant"),
    "random": _("the model draws numbers at random, and no two runs agree"),
    "run": _("ONNX Runtime could not run the model"),
    "size": _("the model is too large to be held in memory three times"),
}
LOAD_SECONDS = 300.0  # chosen: a large model is optimised for a minute


class Options(Record, frozen=True):
    """What to do: convert to FP16 or not, and what stays FP32; `strict` refuses what no run has proved."""

    fp16: bool = True
    keep: tuple[str, ...] = ()
    keep_io_types: bool = True
    strict: bool = False


def convert(  # noqa: PLR0913 - each is an option of its own
    source: str | Path,
    output: str | Path | None = None,
    *,
    fp16: bool = True,
    keep: Sequence[str] = (),
    keep_io_types: bool = True,
    strict: bool = False,
    inputs: str | Path = "",
    force: bool = False,
    folder: str | Path | None = None,
) -> Conversion:
    """Convert a file and write the result and its log beside it, `NAME.dml.onnx` unless `output` says otherwise.

    With `folder` they are left there under the same names, for the caller to put in place. The source is never written
    to. Raises `BadInput` for what cannot be read and, unless `force`, for an output that exists; `WorkFailed` when the
    result is not valid, when nothing was to convert, and as `options.strict` says.
    """
    started = time.monotonic()
    source = Path(source)
    output = result_path(source, output, force=force)
    model = load_model(source)
    options = Options(fp16=fp16, keep=tuple(keep), keep_io_types=keep_io_types, strict=strict)
    samples = read_samples(inputs) if inputs else []
    with nullcontext(Path(folder)) if folder else kept_aside(output) as place:
        (result, changes, half), loads = _written(model, source, output, options, samples, place)
        done = Conversion(
            source=str(source),
            output=str(output),
            changes=changes,
            half=half,
            opset=opsets(result).get("", 0),
            ir_version=result.ir_version,
            seconds=time.monotonic() - started,
            loaded=loads,
        )
        if not done.changes:
            message = _("Nothing in {file} has to change for DirectML, so nothing was written.", file=source)
            raise WorkFailed(message, hint=_("Use the model as it is."))
        _write_log(done, output, place)
    return done


def _written(
    model: ModelProto, source: Path, output: Path, options: Options, samples: Sequence[Feeds], place: Path
) -> tuple[Made, bool | None]:
    """Convert and write into a folder until ONNX Runtime loads the result, or does not load the source either.

    Raises `WorkFailed` where it loads the source alone, in the words of the known defect if it is one.
    """
    for careful in (False, True):
        made = convert_model(model, options, samples, careful=careful)
        _accept(source, *made[1:], strict=options.strict)
        _validate(made[0])
        save_model(made[0], output, source=source, folder=place)
        found = loaded(place / output.name)
        if found.answer is not False or not loaded(source).answer:
            return made, found.answer
    known = cause(program(made[0]), "cpu", found.reason, died=found.died)
    message = _("ONNX Runtime does not load the converted model, so it was not written: {reason}.")
    raise WorkFailed(
        message.format(reason=known or found.why),
        hint=_("Keep that part in FP32, or use the model as it is.", option="--keep"),
    )


def _accept(source: Path, changes: tuple[Change, ...], half: Fp16Summary | None, *, strict: bool) -> None:
    """Raise `WorkFailed` for a result that is no other model, and under `strict` for one that no run has proved."""
    if half and not half.converted and all(change.kind in {"fp16", "kept"} for change in changes):
        raise WorkFailed(
            _("Nothing in {file} can be converted to FP16, so nothing was written.", file=source),
            hint=_("Use the model as it is."),
        )
    if strict and half and not half.proved:
        raise WorkFailed(
            _(
                "No run has proved the converted model, so it was not written: {reason}.",
                reason=WHY_UNPROVED[half.obstacle],
            ),
            hint=_("Mend that first, or do without the proof.", option="--strict"),
        )


def convert_model(model: ModelProto, options: Options, samples: Sequence[Feeds] = (), *, careful: bool = False) -> Made:
    """Convert a model in memory, which stays as it is; return the result, every change, and how FP16 went.

    With `careful` it goes round every known defect of ONNX Runtime.
    """
    original_ir, half = model.ir_version, None
    model, changes = _raised(model)
    source, lowering = _at_best_opset(model)
    source, rewrites = rewrite(source)
    changes += [*lowering, *(Change(kind="structure", what=what) for what in rewrites)]
    if options.fp16:
        result, half = convert_program(
            source,
            keep_io_types=options.keep_io_types,
            calibrate="always",
            samples=samples,
            keep=options.keep,
            careful=careful,
        )
        why = "" if half.proved else _("no run has proved it: {reason}", reason=WHY_UNPROVED[half.obstacle])
        changes.append(Change(kind="fp16", what=_("{count} operations", count=half.converted), why=why))
        changes += [
            Change(kind="kept", what=f"{kept.op} {kept.node}".strip(), why=WHY_KEPT[kept.why]) for kept in half.kept
        ]
    elif rewrites or opsets(source.model).get("") != opsets(model).get(""):
        result = source.filled()
    else:
        result = ModelProto()
        result.CopyFrom(model)
    fewer = len(model.graph.input) - len(result.graph.input)
    if fewer and original_ir >= FIRST_FREE_IR:
        changes.append(Change(kind="structure", what=_("weights that are inputs no more: {count}", count=fewer)))
    result.ir_version = min(result.ir_version, KNOWN_IR)
    if result.ir_version != original_ir:
        changes.append(Change(kind="ir", what=f"{original_ir} → {result.ir_version}"))
    return result, tuple(changes), half


def read_samples(path: str | Path) -> list[Feeds]:
    """Read inputs to calibrate and compare with: an .npz file that holds an array for each input's name."""
    try:
        with open_regular(Path(path), follow=True) as file, np.load(file, allow_pickle=False) as archive:
            return [{name: archive[name] for name in archive.files}]
    except (OSError, ValueError, EOFError) as error:
        message = _("{file} holds no arrays that NumPy could read.", file=path)
        raise BadInput(message, hint=_("Write it with numpy.savez, an array for each input.")) from error


def _raised(model: ModelProto) -> tuple[ModelProto, list[Change]]:
    """Bring a model that is too old for ONNX Runtime up, as ONNX's own converter does; return it with the change."""
    current = opsets(model).get("", 0)
    if not 0 < current < FIRST_OPSET:
        return model, []
    try:
        result: ModelProto = onnx.version_converter.convert_version(model, FIRST_OPSET)
    except (RuntimeError, ValueError) as error:
        message = _("The model cannot be brought from opset {current} to {target}.")
        raise WorkFailed(
            message.format(current=current, target=FIRST_OPSET), hint=_("Export it again with a newer opset_version.")
        ) from error
    return result, [Change(kind="opset", what=f"{current} → {FIRST_OPSET}")]


def _at_best_opset(model: ModelProto) -> tuple[Program, list[Change]]:
    """Bring a model to the opset that suits DirectML best; keep it, and say why, where an operator resists."""
    current, changes = opsets(model).get("", 0), []
    for target in best_opsets(model):
        try:
            source = lower(program(model), target)
        except CannotLower as error:
            changes.append(Change(kind="opset", what=f"{current} → {target} ✗", why=error.message))
        else:
            return source, [*changes, Change(kind="opset", what=f"{current} → {target}")]
    return program(model), changes


def _validate(model: ModelProto) -> None:
    if model.ByteSize() > CHECKED_BYTES:
        return
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, RuntimeError) as error:
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


class Loaded(NamedTuple):
    """Whether ONNX Runtime loads a model with its own settings, None where that is not known, and why it does not."""

    answer: bool | None
    reason: str = ""
    died: bool = False

    @property
    def why(self) -> Text:
        """The reason as a text for people."""
        return _("its process dies") if self.died else self.reason


def loaded(model: Path) -> Loaded:
    """Load a model on the CPU in a process of its own; a limit that ends it tells nothing of the model."""
    if importlib.util.find_spec("onnxruntime") is None:
        return Loaded(None)
    try:
        done = call("assistant_addons.onnx.runs:load", {"model": str(model.resolve())}, Run, limits(LOAD_SECONDS))
    except Ended as end:
        return Loaded(None) if end.reached else Loaded(answer=False, died=True)
    return Loaded(answer=not done.error, reason=(str(done.error).splitlines() or [""])[0].rstrip("."))
