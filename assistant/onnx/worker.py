"""Works on one model in a child: a request on stdin, `answer.json` in the working folder.

`Request` says what to do, `Told` what came of it; the parent, which keeps away from onnx and NumPy, reads both here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from assistant.host.files import write_whole
from assistant.i18n import Text, _, use_language
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import Record, from_json, to_json
from assistant.onnx.answers import Attempt, Checked, Conversion

ANSWER = "answer.json"


class Request(Record, frozen=True):
    """What to do with which model; paths are as the user gave them, seen from `here`."""

    work: Literal["check", "convert", "try"]
    model: str
    here: str
    provider: str = "dml"
    picture: bool = False
    language: str = ""
    output: str = ""
    place: str = ""
    force: bool = False
    fp16: bool = True
    opset: int = 0
    npu: bool = False
    keep: tuple[str, ...] = ()
    keep_io_types: bool = True
    inputs: str = ""
    reference: str = ""
    python: str = ""
    limit: float = 0.0


class Told(Record, frozen=True):
    """What came of it: one of the answers, with the picture of a check, or the sentence of a refusal."""

    checked: Checked | None = None
    picture: str = ""
    conversion: Conversion | None = None
    attempt: Attempt | None = None
    code: int = 0
    message: Text = ""
    hint: Text = ""


def main() -> None:
    """Do the work and leave the answer; a fault of ours ends in a traceback, for the parent to tell."""
    answer = Path(ANSWER).resolve()
    request = from_json(sys.stdin.read(), Request, "the request")
    os.chdir(request.here)
    use_language(request.language or None)
    try:
        told = _done(request)
    except AssistantError as error:
        told = Told(code=error.exit_code, message=error.message, hint=error.hint)
    write_whole(answer, to_json(told))


def _done(request: Request) -> Told:
    try:
        return {"check": _check, "convert": _convert, "try": _try}[request.work](request)
    except (AssistantError, MemoryError):
        raise
    except Exception as error:
        _refuse_invalid(request.model, error)
        raise


def _refuse_invalid(file: str, error: Exception) -> None:
    """Lay what we did not foresee at the model's door where ONNX's own checker finds fault with it, too."""
    import onnx  # noqa: PLC0415 - only this child draws it in

    from assistant.onnx.load import load_model  # noqa: PLC0415 - likewise

    try:
        onnx.checker.check_model(load_model(file, weights=False), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as fault:
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0].rstrip(".")
        raise BadInput(
            _("{file} is not a valid model: {reason}.", file=file, reason=reason),
            hint=_("Download or export it again."),
        ) from error


def _check(request: Request) -> Told:
    from assistant.onnx.examine import checked, examine  # noqa: PLC0415 - draws in onnx and NumPy
    from assistant.onnx.picture import draw  # noqa: PLC0415 - likewise

    look = examine(request.model, request.provider)
    return Told(checked=checked(look), picture=draw(look) if request.picture else "")


def _convert(request: Request) -> Told:
    from assistant.onnx.conversion import Options, convert, read_samples  # noqa: PLC0415 - draws in onnx and NumPy
    from assistant.onnx.rewrites import ALWAYS, FLAT_OPS  # noqa: PLC0415 - likewise

    options = Options(
        fp16=request.fp16,
        opset=request.opset,
        structure=(*ALWAYS, *(FLAT_OPS if request.npu else ())),
        keep=request.keep,
        keep_io_types=request.keep_io_types,
    )
    samples = read_samples(request.inputs) if request.inputs else []
    place = Path(request.place)
    done = convert(request.model, request.output or None, options, samples=samples, force=request.force, folder=place)
    return Told(conversion=done)


def _try(request: Request) -> Told:
    from assistant.onnx.attempt import try_model  # noqa: PLC0415 - draws in onnx and NumPy
    from assistant.onnx.conversion import read_samples  # noqa: PLC0415 - likewise

    samples = read_samples(request.inputs) if request.inputs else []
    reference = request.reference or None
    answer = try_model(
        request.model, reference, request.provider, samples=samples, limit=request.limit, python=request.python
    )
    return Told(attempt=answer)


if __name__ == "__main__":
    main()
