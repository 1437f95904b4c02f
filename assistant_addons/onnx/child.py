"""Calls functions of ours on strangers' models in a child: with limits, a clean environment and a throw-away folder."""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from assistant.api import AssistantError, BadInput, Record, Text, WorkFailed, _
from assistant.api.records import from_json
from assistant.api.system import (
    CancelToken,
    Isolation,
    discard,
    fsync_path,
    put_in_place,
    read_regular,
    running,
    telemetry_off,
    unwritable_error,
)
from assistant_addons.onnx.confined import ANSWER, REFUSAL

if TYPE_CHECKING:
    import psutil

BOOT = """import json, sys
sys.path[:] = [place for place in sys.path if place]  # what lies in the working folder is not ours
sys.path += [place for place in json.loads(sys.argv.pop(1)) if place not in sys.path]
from assistant_addons.onnx.confined import main
main()
"""
# Where programs lie, which language is spoken, what Windows and the loader of libraries need: no variable of these
# holds a secret. Whatever else is set stays behind.
PASSED = {
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
    "PROGRAMW6432", "DRIVERDATA", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER",
}  # fmt: skip
# What a model may use: so much of the machine's memory, and at least so many bytes; the rest is everybody else's.
SHARE, LEAST_MEMORY = 0.75, 2 << 30
GROUP_MEMORY = "/sys/fs/cgroup/memory.max"  # a container's share, where it has one
THREAD_BYTES = 128 << 20  # an arena of glibc's malloc (64 MB), a stack, and buffers of a BLAS
ANSWER_BYTES = 1 << 30  # a line for each of a million nodes
KEPT_LINES, LONGEST_LINE = 200, 1 << 16
FIRST_LOOK_SECONDS = 0.2  # most children have ended by then
PAUSES = 9  # of ten parts of the time, one is spent on looking

R = TypeVar("R", bound=Record)


class Limits(NamedTuple):
    """What a child and all that it starts may use: seconds, bytes of memory."""

    seconds: float
    memory: int

    def reserved(self) -> int:
        """Return how many bytes a process may reserve: threads reserve some that they never fill."""
        return self.memory + (os.cpu_count() or 1) * THREAD_BYTES


class Ended(Exception):
    """A child that did not end well: `reached` is "time" or "memory", or "" for a crash or a fault of ours."""

    def __init__(self, reached: str, code: int, lines: tuple[str, ...]) -> None:
        super().__init__(next((line for line in reversed(lines) if line.strip()), str(code)))
        self.reached, self.code, self.lines = reached, code, lines


class Refusal(Record, frozen=True):
    """What a function refused: the exit code, the sentence, what to do."""

    code: int
    message: Text
    hint: Text = ""


def limits(seconds: float) -> Limits:
    """Return the limits of the work on a model: a share of the memory of this machine, or of its container."""
    import psutil  # noqa: PLC0415 - two hundredths of a second

    total = int(psutil.virtual_memory().total)
    with suppress(OSError, ValueError):  # no container, or one without a limit
        total = min(total, int(Path(GROUP_MEMORY).read_text(encoding="ascii")))
    return Limits(seconds, max(LEAST_MEMORY, int(total * SHARE)))


def work_on(
    model: str,
    function: str,
    arguments: Mapping[str, object],
    kind: type[R],
    bounds: Limits,
    cancel: CancelToken | None = None,
) -> R:
    """Call a function about a model as `call` does, and raise what ended the child as a sentence about the model."""
    try:
        return call(function, arguments, kind, bounds, model=model, cancel=cancel)
    except Ended as end:
        if end.reached == "time":
            raise WorkFailed(
                _("The work on {file} was stopped after {limit:g} s.", file=model, limit=bounds.seconds),
                hint=_("If you trust the model, allow it more time.", option="--limit"),
            ) from end
        if end.reached:
            size = bounds.memory / 2**30
            raise WorkFailed(
                _("The work on {file} needs more than {size:.1f} GB of memory.", file=model, size=size),
                hint=_("If you trust the model, use a machine with more memory."),
            ) from end
        if end.code < 0:
            raise BadInput(
                _("Reading {file} crashed the process that did it (code {code}).", file=model, code=end.code),
                hint=_("Do not trust it; get it from its source again."),
            ) from end
        fault = RuntimeError(str(end))  # of ours, reported and logged as any other
        fault.add_note("\n".join(end.lines))
        raise fault from end


def call(
    function: str,
    arguments: Mapping[str, object],
    kind: type[R],
    bounds: Limits,
    *,
    model: str = "",
    cancel: CancelToken | None = None,
    python: str = sys.executable,
) -> R:
    """Call a function of ours, named as "module:name", in a child, with arguments that JSON holds; return its answer.

    The answer is a record, or the JSON of one. Raises what the function refused, `Ended` for a child that reached a
    limit or crashed, `Cancelled` when asked to stop, and `WorkFailed` when the Python cannot be started. With `model`
    what was not foreseen is a refusal of that file where ONNX finds fault with it, too.
    """
    with TemporaryDirectory(prefix="onnx-", ignore_cleanup_errors=True) as name:
        folder, lines, watch = Path(name).resolve(), deque[str](maxlen=KEPT_LINES), _Watch(bounds.memory)
        job = {"function": function, "arguments": arguments, "model": model, "here": str(Path.cwd())}
        stdin = json.dumps({**job, "memory": bounds.reserved()})
        program = Path(python).absolute() if len(Path(python).parts) > 1 else python  # seen from another folder
        argv = [program, "-X", "utf8", "-c", BOOT, json.dumps(_own_paths(python))]
        isolation = Isolation(clean_environment(folder), folder, LONGEST_LINE, watch)
        try:
            with running(argv, cancel=cancel, limit=bounds.seconds, stdin=stdin, isolation=isolation) as child:
                lines.extend(child)
        except TimeoutError as error:
            raise Ended("time", -1, tuple(lines)) from error
        finally:
            watch.end()
        if (folder / REFUSAL).exists():
            refused = from_json(read_regular(folder / REFUSAL), Refusal, function)
            raise (BadInput if refused.code == BadInput.exit_code else WorkFailed)(refused.message, hint=refused.hint)
        short = watch.exceeded or any("MemoryError" in line or "bad_alloc" in line for line in lines)
        if child.returncode or not (folder / ANSWER).exists():
            raise Ended("memory" if short else "", child.returncode, tuple(lines))
        return from_json(read_regular(folder / ANSWER, ANSWER_BYTES), kind, function)


def refusal(error: Exception, model: str) -> Refusal | None:
    """Return what an error says to users; None for a fault of ours.

    What we did not foresee is laid at the model's door where ONNX's own checker finds fault with it, too.
    """
    if not isinstance(error, AssistantError):
        from assistant_addons.onnx.load import load_model, refuse_invalid  # noqa: PLC0415 - imports onnx

        try:
            if model and not isinstance(error, MemoryError):
                refuse_invalid(load_model(model, weights=False), model, in_full=True)
        except BadInput as found:
            return refusal(found, model)
        return None
    return Refusal(code=error.exit_code, message=error.message, hint=error.hint)


def _own_paths(python: str) -> list[str]:
    """Return where the assistant and its dependencies lie; for another Python only what it cannot bring itself."""
    if python == sys.executable:
        return [place for place in sys.path if place]
    return list(dict.fromkeys([str(Path(__file__).resolve().parents[2]), sysconfig.get_path("purelib")]))


def clean_environment(folder: Path) -> dict[str, str]:
    """Return all variables that a child may see, with a home and a place for temporary files in `folder`."""
    home, short = folder / "home", folder / "tmp"
    for place in (home, short):
        place.mkdir(exist_ok=True)
    passed = {name: value for name, value in os.environ.items() if name.upper() in PASSED or name.startswith("LC_")}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(home))
    passed |= homes | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(short))
    return passed | {"PYTHONUSERBASE": site.getuserbase(), **telemetry_off()}


class _Watch:
    """Watches the memory of a child and all that it started, less often on a machine with many processes."""

    def __init__(self, memory: int) -> None:
        self.memory, self.exceeded = memory, False
        self._family: set[psutil.Process] = set()
        self._next = time.monotonic() + FIRST_LOOK_SECONDS

    def __call__(self, pid: int) -> bool:
        """Return whether the child has to end."""
        began = time.monotonic()
        if began >= self._next:
            import psutil  # noqa: PLC0415 - only for children that live longer than a moment

            used = 0
            with suppress(psutil.Error):
                family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
                self._family.update(family)
                for one in family:
                    with suppress(psutil.Error):
                        used += one.memory_info().rss
            self.exceeded = self.exceeded or used > self.memory
            self._next = time.monotonic() + PAUSES * (time.monotonic() - began)
        return self.exceeded

    def end(self) -> None:
        """Kill what the child left behind; a process that has its number since then is another and stays."""
        for one in self._family:
            with suppress(Exception):  # it has ended, or was never ours to end
                one.kill()


@contextmanager
def kept_aside(output: Path) -> Iterator[Path]:
    """Provide a folder on the disk of the output, and move what lies in it beside the output at the end.

    Where none can be made there, another will do, as what is wrong with the model is told first. After an exception
    nothing is moved. Weights are moved before their model, of which an older one goes first. Raises
    `WorkFailed` where nothing can be written.
    """
    place = output.parent if os.access(output.parent, os.W_OK) else None
    try:
        with TemporaryDirectory(f".{output.name}.part", dir=place, ignore_cleanup_errors=True) as name:
            yield Path(name)
            parts = sorted(Path(name).iterdir(), key=lambda part: (part.suffix != ".data", part.name))
            for part in parts:
                fsync_path(part)
            if parts and parts[0].suffix == ".data":
                discard(output)
            for part in parts:
                put_in_place(part, output.with_name(part.name))
    except OSError as error:
        raise unwritable_error(output, error) from error
