"""Runs the checks in the target's own Python, limits the time of each, and turns its output into a report."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from assistant.catalog.companions import trial
from assistant.catalog.recipes import recipe_trial
from assistant.catalog.rows import Trial
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, stream
from assistant.i18n import _
from assistant.model.checks import CHECKS, Level, package_check, recipe_check
from assistant.model.errors import AssistantError, BadInput, Cancelled
from assistant.model.event import Sink
from assistant.model.plan import Backend
from assistant.model.report import Report
from assistant.verify.messages import sentence
from assistant.verify.results import Child, Clock, Results

CHILD = Path(__file__).with_name("child.py")
IMPORT_LIMIT_FACTOR = (
    2  # chosen: an import may have to compile its modules first, and has so many times a check's limit
)
IMPORT_WORKERS = 2  # distributions imported at once: each import keeps a core busy, and some take a gigabyte
_DEVICE = re.compile(r"(?:{})(?::\d+)?".format("|".join(backend.value for backend in Backend)))


def verify(  # noqa: PLR0913 - what runs it, on what, who hears it; the rest are limits with defaults
    python: str | Path,
    device: str,
    sink: Sink,
    cancel: CancelToken | None = None,
    *,
    level: Level | tuple[str, ...] = "quick",
    packages: Sequence[str] = (),
    recipe: str = "",
    calls: bool = True,
    limit_per_check: float = 60.0,
    memory_limit: int = 4 << 30,
    environment: Mapping[str, str] | None = None,
    traceless: bool = False,
    lock: Lock | None = None,
) -> Report:
    """Run checks with the interpreter `python` on `device` ("cpu", "cuda:1", …) and report each of them.

    `level` is "quick" (seconds), "full" (a minute or two; measures speed too), or the keys of some checks. Each of the
    distributions `packages` is imported, in a process of its own, once torch can be; with `calls`, a line that shows
    that it works is run, where one is known, and the verification call of a `recipe`, by its key. `environment` holds
    variables to set for the children, such as a plan's; `traceless` leaves no bytecode behind. The children hold `lock`
    until they end. After a check that takes more than `limit_per_check` seconds, that makes the process grow by more
    than `memory_limit` bytes, or whose process dies, another process goes on with the others; an import has twice that
    time. Where several take too long, the device hangs, and the rest is reported as skipped.
    Raises `BadInput` for an unknown device, `WorkFailed` when the interpreter cannot be started, and `Cancelled`.
    """
    if not _DEVICE.fullmatch(device):
        raise BadInput(
            _("There is no device called {device!r}.", device=device),
            hint=_("Use cpu, cuda, rocm, xpu, mps or directml, with an index where there are several, as in cuda:1."),
        )
    keys = CHECKS[level] if isinstance(level, str) else level
    asked = {package_check(name): {"name": name, **_call(trial(name) if calls else None)} for name in packages}
    if calls and (found := recipe_trial(recipe)):
        asked[recipe_check(recipe)] = _call(found)
    results, started = Results(device, (*keys, *asked), sink), time.monotonic()
    command = [python, *(("-B",) if traceless else ()), "-I", "-X", "utf8", CHILD]

    def run(child: Child, **request: object) -> None:
        words = [*command, json.dumps({"device": device, "checks": child.open_keys(), **request})]
        child.clock.restart()
        try:
            child.end(stream(words, child.hear, cancel=child.clock, environment=environment, lock=lock))
        except Cancelled:
            if not child.stopped():
                raise

    child = Child(results, keys, Clock(cancel, limit_per_check))
    while child.open_keys():
        run(child, ready=results.ready(), memory=memory_limit)
    if "import" in keys and "import" not in results.ready():
        results.skip(asked, sentence("needs", {"need": "import"}))
    limit = IMPORT_LIMIT_FACTOR * limit_per_check
    alone = [Child(results, (key,), Clock(cancel, limit)) for key in results.open_keys(asked)]
    _side_by_side(alone, lambda one: run(one, packages={key: asked[key] for key in one.keys}))
    results.progress(_("Verification done"))
    return Report(device=device, checks=results.checks(), facts=results.facts, seconds=time.monotonic() - started)


def _side_by_side(children: Sequence[Child], run: Callable[[Child], None]) -> None:
    """Run some children at once; Ctrl-C, which they do not hear in their own sessions, ends them all."""
    with ThreadPoolExecutor(IMPORT_WORKERS) as pool:
        try:
            list(pool.map(run, children))
        except BaseException:
            for child in children:
                child.clock.set()
            raise


def _call(found: Trial | None) -> dict[str, object]:
    """Return what the child is asked to run; a call of which it is not known counts as one for a GPU."""
    return {"call": found.call, "gpu": not found.on_cpu} if found else {}


# What `import torch` (2.13) reaches in its second half, in its own order; a name that a release lacks is passed over.
_LATE_IN_TORCH = (
    *("distributions", "jit", "fx", "optim", "ao/quantization", "masked", "export", "_subclasses", "_export"),
    *("_higher_order_ops", "_prims_common", "_decomp", "_prims", "_refs", "_meta_registrations.py", "_native"),
)
_COMPILE = """
import compileall, importlib.util, pathlib, sys
site = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
for path in (site / name for name in sys.argv[1:]):
    compileall.compile_dir(path, quiet=2) if path.is_dir() else compileall.compile_file(path, quiet=2)
"""


def compile_ahead(python: str | Path, cancel: CancelToken, lock: Lock | None = None) -> None:
    """Compile, beside the checks of a fresh environment without bytecode, what `import torch` reaches last.

    A failure is no matter, since the import compiles what it misses.
    """
    late = (*(f"torch/{name}" for name in _LATE_IN_TORCH), "onnxruntime/capi")
    with suppress(AssistantError):
        stream([python, "-I", "-c", _COMPILE, *late], lambda _line: None, cancel=cancel, lock=lock)
