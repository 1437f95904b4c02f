"""Checks, converts and tries models of anybody in a child with limits; nothing of onnx is imported here.

The functions do there what those of the same name, for callers from Python, do in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.api import BadInput, WorkFailed, _, replace
from assistant.api.records import from_json, to_json
from assistant.api.system import (
    CancelToken,
    discard,
    fsync_path,
    put_in_place,
    read_regular,
    require_extra,
    unwritable_error,
)
from assistant_addons.onnx.answers import Attempt, Checked, Conversion, default_output
from assistant_addons.onnx.sandbox import Limits, Outcome, confine, share_of_memory
from assistant_addons.onnx.worker import ANSWER_FILE, Answer, Request

# What a model may use: so much of the machine's memory, and at least so many bytes; the rest is everybody else's.
SHARE, LEAST_MEMORY = 0.75, 2 << 30
ANSWER_BYTES = 1 << 30  # a line for each of a million nodes
WORKER = "assistant_addons.onnx.worker"
RUNS = 3  # of a trial: the reference, the model, and the one in which every node rounds
LOADING_SECONDS = 600.0  # for reading the models before that (chosen)


def limits(seconds: float) -> Limits:
    """Return the limits of the work on a model."""
    return Limits(seconds, share_of_memory(SHARE, LEAST_MEMORY))


def check(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> Checked:
    """Check a model. Raises `BadInput` and `WorkFailed`."""
    answer = _worked(request, bounds, cancel)
    if answer.checked is None:
        raise TypeError(request.work)
    return answer.checked


def convert(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> Conversion:
    """Convert a model; its result is put in place only when all is well. Raises `BadInput` and `WorkFailed`."""
    output = Path(request.output) if request.output else default_output(Path(request.model))
    with kept_aside(output) as folder:
        answer = _worked(replace(request, place=str(folder.resolve())), bounds, cancel)
    if answer.conversion is None:
        raise TypeError(request.work)
    return answer.conversion


def try_model(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> Attempt:
    """Try a model, each run within the limits; raises `BadInput` for files that nothing could load."""
    whole = bounds._replace(seconds=RUNS * bounds.seconds + LOADING_SECONDS)
    answer = _worked(replace(request, limit=bounds.seconds), whole, cancel)
    if answer.attempt is None:
        raise TypeError(request.work)
    return answer.attempt


def _worked(request: Request, bounds: Limits, cancel: CancelToken | None) -> Answer:
    require_extra("onnx")
    with TemporaryDirectory(prefix="onnx-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        done = confine(WORKER, bounds, folder, stdin=to_json(request), cancel=cancel)
        _refuse_ended(done, request.model, bounds)
        try:
            answer = from_json(read_regular(folder / ANSWER_FILE, ANSWER_BYTES), Answer, request.model)
        except OSError as error:
            raise _broken(done) from error
    if answer.code:
        kind = BadInput if answer.code == BadInput.exit_code else WorkFailed
        raise kind(answer.message, hint=answer.hint)
    return answer


def _refuse_ended(done: Outcome, file: str, bounds: Limits) -> None:
    """Raise what says which limit ended the work, or that reading the model crashed the child."""
    if done.reached == "time":
        raise WorkFailed(
            _("The work on {file} was stopped after {limit:g} s.", file=file, limit=bounds.seconds),
            hint=_("If you trust the model, allow it more time.", option="--limit"),
        )
    if done.reached:
        raise WorkFailed(
            _("The work on {file} needs more than {size:.1f} GB of memory.", file=file, size=bounds.memory / 2**30),
            hint=_("If you trust the model, use a machine with more memory."),
        )
    if done.code < 0:
        raise BadInput(
            _("Reading {file} crashed the process that did it (code {code}).", file=file, code=done.code),
            hint=_("Do not trust it; get it from its source again."),
        )
    if done.code:
        raise _broken(done)


def _broken(done: Outcome) -> RuntimeError:
    """Return what broke in the child as an exception: a fault of ours, reported and logged as any other."""
    fault = RuntimeError(next((line for line in reversed(done.lines) if line.strip()), str(done.code)))
    fault.add_note("\n".join(done.lines))
    return fault


@contextmanager
def kept_aside(output: Path) -> Iterator[Path]:
    """Provide a folder, and move what lies in it beside the output at the end; after an exception nothing is.

    The folder is on the disk of the output; where none can be made there, another will do. Raises `WorkFailed` for
    what cannot be put in place.
    """
    with _beside(output) as folder:
        yield folder
        try:
            _put_in_place(folder, output)
        except OSError as error:
            raise unwritable_error(output, error) from error


@contextmanager
def _beside(output: Path) -> Iterator[Path]:
    """Provide a temporary folder on the disk of the result; where none can be made there, another will do."""
    try:
        folder = TemporaryDirectory(
            prefix=f".{output.name}.", suffix=".part", dir=output.parent, ignore_cleanup_errors=True
        )
    except OSError:
        folder = TemporaryDirectory(prefix="onnx-", ignore_cleanup_errors=True)
    with folder as name:
        yield Path(name)


def _put_in_place(folder: Path, output: Path) -> None:
    """Move what was written to its name: weights before their model, of which an older one goes first."""
    data = f"{output.name}.data"
    parts = sorted(folder.iterdir(), key=lambda part: (part.name != data, part.name != output.name, part.name))
    for part in parts:
        fsync_path(part)
    if any(part.name == data for part in parts):
        discard(output)
    for part in parts:
        put_in_place(part, output.with_name(part.name))
