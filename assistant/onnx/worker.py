"""Works on one model in a child: a request on stdin, `answer.json` in the working folder.

The parent takes `Request` and `Answer` from here and must not import onnx or NumPy: what needs them is imported late.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from assistant.host.files import write_whole
from assistant.i18n import Text, _, use_language
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.record import Record, from_json, replace, to_json
from assistant.onnx.answers import Attempt, Checked, Conversion, FixedShapes, Survey, default_output
from assistant.onnx.targets import target

ANSWER_FILE = "answer.json"


class Request(Record, frozen=True):
    """What to do with which model; paths are as the user gave them, seen from `here`.

    `provider` is the target of a check or a conversion, by its name, and the provider of a trial; `targets` are all
    that a survey sums up, in order. What is None is left to the target.
    """

    work: Literal["check", "survey", "convert", "try", "fix-shapes"]
    model: str
    here: str
    provider: str = "dml"
    targets: tuple[str, ...] = ()
    picture: bool = False
    language: str = ""
    output: str = ""
    place: str = ""
    force: bool = False
    fp16: bool | None = None
    opset: int = 0
    npu: bool = False
    keep: tuple[str, ...] = ()
    keep_io_types: bool = True
    strict: bool = False
    inputs: str = ""
    reference: str = ""
    python: str = ""
    limit: float = 0.0
    sizes: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}


class Answer(Record, frozen=True):
    """What came of it: one of the answers, with the picture of a check, or the sentence of a refusal."""

    checked: Checked | None = None
    several: tuple[Checked, ...] = ()
    survey: Survey | None = None
    picture: str = ""
    conversion: Conversion | None = None
    attempt: Attempt | None = None
    fixed: FixedShapes | None = None
    code: int = 0
    message: Text = ""
    hint: Text = ""


def main() -> None:
    """Do the work and leave the answer; a fault of ours ends in a traceback, for the parent to report."""
    place = Path(ANSWER_FILE).resolve()
    request = from_json(sys.stdin.read(), Request, "the request")
    write_whole(place, to_json(answered(request)))


def answered(request: Request) -> Answer:
    """Do the work; a refusal is an answer, too, and what we did not foresee is raised where the model is not at fault.

    The request's folder and language are those of the process from then on.
    """
    os.chdir(request.here)
    use_language(request.language or None)
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

    from assistant.onnx.load import load_model  # noqa: PLC0415 - likewise

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
    from assistant.onnx.check import checked, examinations  # noqa: PLC0415 - imports onnx and NumPy
    from assistant.onnx.conversion import read_samples  # noqa: PLC0415 - likewise
    from assistant.onnx.picture import draw  # noqa: PLC0415 - likewise

    samples = read_samples(request.inputs) if request.inputs else []
    exams = examinations(request.model, request.targets or (request.provider,), samples=samples)
    if request.targets:
        return Answer(several=tuple(map(checked, exams)))
    exam = next(exams)
    return Answer(checked=checked(exam), picture=draw(exam) if request.picture else "")


def _survey(request: Request) -> Answer:
    from assistant.onnx.check import checked, examinations  # noqa: PLC0415 - imports onnx and NumPy
    from assistant.onnx.conversion import read_samples  # noqa: PLC0415 - likewise
    from assistant.onnx.picture import draw  # noqa: PLC0415 - likewise
    from assistant.onnx.survey import summed_up  # noqa: PLC0415 - likewise

    samples = read_samples(request.inputs) if request.inputs else []
    exams = list(examinations(request.model, request.targets, samples=samples))
    one = next(exam for exam in exams if exam.provider == request.provider)
    picture = draw(one) if request.picture else ""
    return Answer(survey=summed_up(exams), checked=checked(one), picture=picture)


def _convert(request: Request) -> Answer:
    from assistant.onnx.conversion import Options, convert, read_samples  # noqa: PLC0415 - imports onnx and NumPy
    from assistant.onnx.rewrites import ALWAYS, FLAT_OPS  # noqa: PLC0415 - likewise
    from assistant.onnx.suit import suit  # noqa: PLC0415 - likewise

    suited = suit(request.model, request.provider)
    options = Options(
        fp16=suited.fp16 if request.fp16 is None else request.fp16,
        opset=request.opset,
        opsets=suited.opsets,
        structure=(*ALWAYS, *(FLAT_OPS if request.npu else ())),
        keep=request.keep,
        keep_io_types=request.keep_io_types,
        strict=request.strict,
    )
    samples = read_samples(request.inputs) if request.inputs else []
    place = Path(request.place)
    output = request.output or default_output(Path(request.model), request.provider)
    done = convert(request.model, output, options, samples=samples, force=request.force, folder=place)
    if not done.changes:
        title = target(request.provider).title
        message = _("Nothing in {file} has to change for {target}, so nothing was written.")
        raise WorkFailed(message.format(file=request.model, target=title), hint=_("Use the model as it is."))
    return Answer(conversion=replace(done, notes=suited.notes))


def _try(request: Request) -> Answer:
    from assistant.onnx.compare import try_model  # noqa: PLC0415 - imports onnx and NumPy
    from assistant.onnx.conversion import read_samples  # noqa: PLC0415 - likewise

    samples = read_samples(request.inputs) if request.inputs else []
    reference = request.reference or None
    answer = try_model(
        request.model, reference, request.provider, samples=samples, limit=request.limit, python=request.python
    )
    return Answer(attempt=answer)


def _fix_shapes(request: Request) -> Answer:
    from assistant.onnx.conversion import read_samples  # noqa: PLC0415 - imports onnx and NumPy
    from assistant.onnx.shapes_file import fix_file  # noqa: PLC0415 - likewise

    samples = read_samples(request.inputs) if request.inputs else []
    done = fix_file(
        request.model,
        request.output or None,
        sizes=request.sizes,
        shapes=request.shapes,
        samples=samples,
        force=request.force,
        folder=Path(request.place),
    )
    return Answer(fixed=done)


WORK = {"check": _check, "survey": _survey, "convert": _convert, "try": _try, "fix-shapes": _fix_shapes}

if __name__ == "__main__":
    main()
