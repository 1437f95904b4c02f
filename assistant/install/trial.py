"""Asks the resolver whether a plan holds on some machine, by metadata alone, and keeps what it says about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.files import open_temporary
from assistant.host.lock import Lock
from assistant.host.pip_settings import uv_arguments
from assistant.host.process import stream
from assistant.i18n import Text, _
from assistant.install.derivation import TRACE, Derivation, Trace, is_trace, read_derivation, read_trace
from assistant.install.elsewhere import installer_for
from assistant.install.resolution import only_source, unreachable
from assistant.install.temporary import scratch
from assistant.install.tools import Tools
from assistant.install.uv import VERSIONS, Uv, own_cache
from assistant.install.validate import check_plan
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.privacy import Lines, Policy

# numpy==2.4.6, and "evil @ https://…" for a file, whose version is not known
_VERSION = re.compile(r"(?m)^([\w.-]+)==(\S+)")

# uv tries three times more, with pauses: 12 s for an index that is down.
_IN_A_HURRY = {"UV_HTTP_RETRIES": "1"}


_NOTHING_FITS = 1  # uv's exit status where no solution exists, and 2 for any other failure (tried with 0.13.9)


class Trial(Record, frozen=True):
    """How the resolver answered: `versions` by package where the plan holds, else `refusal` with its own words.

    `unchecked` is the reason where it could not answer at all, as an index was out of reach; `builds` names what comes
    as source alone.
    """

    versions: dict[str, str] = {}
    trace: Trace = Trace()
    refusal: Derivation | None = None
    words: str = ""
    unchecked: Text = ""
    builds: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the plan can be installed as it stands."""
        return not (self.refusal or self.unchecked)


def try_plan(plan: Plan, machine: Machine, tools: Tools) -> Trial:
    """Ask uv for all that a plan names, for its machine and Python; no package is built and none is downloaded.

    Raises `Cancelled` on request, `BadInput` for an index or a requirement that is none, and `WorkFailed` where uv
    knows no such platform.
    """
    check_plan(plan)
    installer = installer_for(plan, machine, tools)
    with scratch() as (folder, lock):
        uv = Uv(uv_arguments(installer.settings), also=(), elsewhere=installer.elsewhere)
        argv = uv.try_out(installer.python, plan, folder)
        failed, steps, words = _run(argv, installer.environment, folder / "said.log", lock, tools)
        if failed not in (0, _NOTHING_FITS) and not unreachable(words):
            # A power cut leaves empty files in uv's cache, which it then stumbles over.
            uncached = {**installer.environment, **own_cache(folder)}
            failed, steps, words = _run(argv, uncached, folder / "said-again.log", lock, tools)
        if not failed:
            found = _VERSION.findall((folder / VERSIONS).read_text(encoding="utf-8"))
            versions: dict[str, str] = {canonicalize_name(name): version for name, version in found}
            return Trial(versions=versions, trace=read_trace(steps, on="torch"))
    return _refused(words, read_trace(steps)) if failed == _NOTHING_FITS else _unchecked(words)


def _run(
    argv: list[str], environment: Mapping[str, str], file: Path, lock: Lock, tools: Tools
) -> tuple[int, list[str], str]:
    """Run uv with its output into a file; return its exit status, the resolver's steps, and its words to the user."""
    cleaned = Lines(Policy.USABLE)
    steps: list[str] = []
    words: list[str] = []
    variables = {**environment, **TRACE, **_IN_A_HURRY, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(file.parent))}
    with open_temporary(file) as log:
        failed = stream(
            argv,
            lambda line: steps.append(line) if is_trace(line) else words.append(cleaned(line)),
            cancel=tools.cancel,
            environment=variables,
            lock=lock,
            log=log,
        )
    return failed, steps, "\n".join(words)


def _unchecked(words: str) -> Trial:
    reason = unreachable(words)
    if reason:
        return Trial(unchecked=_("the package index cannot be reached: {reason}", reason=reason))
    return Trial(unchecked=_("uv could not resolve it: {reason}", reason=" ".join(words.split())[:400]))


def _refused(words: str, trace: Trace) -> Trial:
    if unreachable(words):  # offline
        return _unchecked(words)
    proof = words.rpartition("cause: ")[2].partition("hint:")[0]
    builds = tuple(canonicalize_name(Requirement(need).name) for need in only_source(words))
    refusal = read_derivation(proof, {*trace.names, *trace.chose})
    return Trial(trace=trace, refusal=refusal, words=" ".join(proof.split())[:600], builds=builds)
