"""Checks, converts and tries models of anybody in a child with limits; nothing of onnx is drawn in here.

What a function of the same name does in this process, for those who call it from Python, is done there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.host.extras import require
from assistant.host.files import put_in_place, read_plain, settle
from assistant.host.process import CancelToken
from assistant.host.sandbox import Limits, Outcome, confine, share_of_memory
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed, unwritable
from assistant.model.record import from_json, replace, to_json
from assistant.onnx.answers import Attempt, Checked, Conversion, default_output
from assistant.onnx.worker import ANSWER, Request, Told

SHARE, LEAST_MEMORY = 0.75, 2 << 30  # of the machine's memory, and bytes: what is left is for everybody else
ANSWER_BYTES = 1 << 30  # a line for each of a million nodes
WORKER = "assistant.onnx.worker"
RUNS = 3  # of a trial: the reference, the model, and the one in which every node rounds
LOADING_SECONDS = 600.0


def limits(seconds: float) -> Limits:
    """Give what the work on a model may use."""
    return Limits(seconds, share_of_memory(SHARE, LEAST_MEMORY))


def check(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> tuple[Checked, str]:
    """Check a model; answer that and the picture that was asked for. Raises `BadInput` and `WorkFailed`."""
    told = _worked(request, bounds, cancel)
    if told.checked is None:
        raise TypeError(request.work)
    return told.checked, told.picture


def convert(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> Conversion:
    """Convert a model; its result is put in place only when all is well. Raises `BadInput` and `WorkFailed`."""
    output = Path(request.output) if request.output else default_output(Path(request.model))
    with _beside(output) as folder:
        told = _worked(replace(request, place=str(folder.resolve())), bounds, cancel)
        if told.conversion is None:
            raise TypeError(request.work)
        try:
            _put_in_place(folder, output)
        except OSError as error:
            raise unwritable(output, error) from error
    return told.conversion


def try_model(request: Request, bounds: Limits, *, cancel: CancelToken | None = None) -> Attempt:
    """Try a model, each run within the limits; raises `BadInput` for files that nothing could load."""
    whole = bounds._replace(seconds=RUNS * bounds.seconds + LOADING_SECONDS)
    told = _worked(replace(request, limit=bounds.seconds), whole, cancel)
    if told.attempt is None:
        raise TypeError(request.work)
    return told.attempt


def _worked(request: Request, bounds: Limits, cancel: CancelToken | None) -> Told:
    require("onnx")
    with TemporaryDirectory(prefix="onnx-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        done = confine(WORKER, bounds, folder, stdin=to_json(request), cancel=cancel)
        _refuse_ended(done, request.model, bounds)
        try:
            told = from_json(read_plain(folder / ANSWER, ANSWER_BYTES), Told, request.model)
        except OSError as error:
            raise _broken(done) from error
    if told.code:
        kind = BadInput if told.code == BadInput.exit_code else WorkFailed
        raise kind(told.message, hint=told.hint)
    return told


def _refuse_ended(done: Outcome, file: str, bounds: Limits) -> None:
    """Say which limit ended the work, or that what reads the model died of it."""
    if done.reached == "time":
        raise WorkFailed(
            _("The work on {file} was stopped after {limit:g} s.", file=file, limit=bounds.seconds),
            hint=_("If you trust the model, allow it more time with --limit."),
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
    """Hand on what broke in the child, which is a fault of ours and is told and kept as any other."""
    fault = RuntimeError(next((line for line in reversed(done.lines) if line.strip()), str(done.code)))
    fault.add_note("\n".join(done.lines))
    return fault


@contextmanager
def _beside(output: Path) -> Iterator[Path]:
    """Give a folder for the result on its own disk, and take it away; where none can be made, another will do."""
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
        settle(part)
    if any(part.name == data for part in parts):
        output.unlink(missing_ok=True)
    for part in parts:
        put_in_place(part, output.with_name(part.name))
