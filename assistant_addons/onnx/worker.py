"""Works on one model in a child: a request on stdin, `answer.json` in the working folder.

The parent takes `Request` and `Answer` from here and must not import onnx or NumPy: what needs them is imported late.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from assistant.api import AssistantError, BadInput, Record, Text, _
from assistant.api.records import from_json, to_json
from assistant.api.system import write_atomically
from assistant_addons.onnx.answers import Attempt, Checked, Conversion, Provider

ANSWER_FILE = "answer.json"


class Request(Record, frozen=True):
    """What to do with which model; paths are as the user gave them, seen from `here`.

    `provider` is that of a check or a trial; a conversion is for DirectML.
    """

    work: Literal["check", "convert", "try"]
    model: str
    here: str
    provider: Provider = "dml"
    output: str = ""
    place: str = ""
    force: bool = False
    fp16: bool = True
    keep: tuple[str, ...] = ()
    keep_io_types: bool = True
    strict: bool = False
    inputs: str = ""
    reference: str = ""
    python: str = ""
    limit: float = 0.0


class Answer(Record, frozen=True):
    """What came of it: one of the answers, or the sentence of a refusal."""

    checked: Checked | None = None
    conversion: Conversion | None = None
    attempt: Attempt | None = None
    code: int = 0
    message: Text = ""
    hint: Text = ""


def main() -> None:
    """Do the work and leave the answer; a fault of ours ends in a traceback, for the parent to report."""
    place = Path(ANSWER_FILE).resolve()
    request = from_json(sys.stdin.read(), Request, "the request")
    write_atomically(place, to_json(answered(request)))


def answered(request: Request) -> Answer:
    """Do the work; a refusal is an answer, too, and what we did not foresee is raised where the model is not at fault.

    The request's folder is that of the process from then on.
    """
    os.chdir(request.here)
    try:
        return WORK[request.work](request)
    except AssistantError as error:
        return Answer(code=error.exit_code, message=error.message, hint=error.hint)
    except MemoryError:
        raise
    except Exception:
        refused = _invalid(request.model)
        if refused is None:
            raise
        return Answer(code=refused.exit_code, message=refused.message, hint=refused.hint)


def _invalid(file: str) -> BadInput | None:
    """Lay what we did not foresee at the model's door where ONNX's own checker finds fault with it, too."""
    import onnx  # noqa: PLC0415 - only this child imports it

    from assistant_addons.onnx.load import load_model  # noqa: PLC0415 - likewise

    try:
        onnx.checker.check_model(load_model(file, weights=False), full_check=True)
    except BadInput as error:
        return error
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        return BadInput(
            _("{file} is not a valid model: {reason}.", file=file, reason=reason),
            hint=_("Download or export it again."),
        )
    return None


def _check(request: Request) -> Answer:
    from assistant_addons.onnx.check import check_model  # noqa: PLC0415 - imports onnx and NumPy

    return Answer(checked=check_model(request.model, request.provider))


def _convert(request: Request) -> Answer:
    from assistant_addons.onnx.conversion import convert  # noqa: PLC0415 - imports onnx and NumPy

    done = convert(
        request.model,
        request.output or None,
        fp16=request.fp16,
        keep=request.keep,
        keep_io_types=request.keep_io_types,
        strict=request.strict,
        inputs=request.inputs,
        force=request.force,
        folder=request.place,
    )
    return Answer(conversion=done)


def _try(request: Request) -> Answer:
    from assistant_addons.onnx.compare import try_model  # noqa: PLC0415 - imports onnx and NumPy
    from assistant_addons.onnx.conversion import read_samples  # noqa: PLC0415 - likewise

    samples = [read_samples(request.inputs)] if request.inputs else []
    reference = request.reference or None
    answer = try_model(
        request.model, reference, request.provider, samples=samples, limit=request.limit, python=request.python
    )
    return Answer(attempt=answer)


WORK = {"check": _check, "convert": _convert, "try": _try}

if __name__ == "__main__":
    main()
