"""Asks the resolver whether a plan holds on some machine, by metadata alone, and keeps what it says about it."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.files import open_temporary
from assistant.host.pip_settings import uv_arguments
from assistant.host.process import stream
from assistant.i18n import Text, _
from assistant.install.backends import VERSIONS, Uv
from assistant.install.derivation import TRACE, Derivation, Trace, is_trace, read_derivation, read_trace
from assistant.install.elsewhere import installer_for
from assistant.install.resolution import is_unreachable, only_source
from assistant.install.temporary import scratch
from assistant.install.tools import Tools
from assistant.install.validate import check_index_url, check_requirement
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.privacy import Lines, Policy

# numpy==2.4.6, and "evil @ https://…" for a file, whose version is not known
_VERSION = re.compile(r"(?m)^([\w.-]+)==(\S+)")

# uv tries three times more, with pauses: 12 s for an index that is down.
_IN_A_HURRY = {"UV_HTTP_RETRIES": "1"}


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
    knows no such platform or may not be used.
    """
    if plan.index_url:
        check_index_url(plan.index_url)
    for line in plan.requirements:
        check_requirement(line)
    installer = installer_for(plan, machine, tools)
    cleaned = Lines(Policy.USABLE)
    steps: list[str] = []
    words: list[str] = []
    with scratch() as (folder, lock):
        uv = Uv(uv_arguments(installer.settings), also=(), elsewhere=installer.elsewhere)
        argv = uv.try_out(installer.python, plan, folder)
        variables = {
            **installer.environment,
            **TRACE,
            **_IN_A_HURRY,
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
        }
        with open_temporary(folder / "said.log") as log:
            failed = stream(
                argv,
                lambda line: steps.append(line) if is_trace(line) else words.append(cleaned(line)),
                cancel=tools.cancel,
                environment=variables,
                lock=lock,
                log=log,
            )
        trace = read_trace(steps)
        if not failed:
            found = _VERSION.findall((folder / VERSIONS).read_text(encoding="utf-8"))
            return Trial(versions={canonicalize_name(name): version for name, version in found}, trace=trace)
    return _refused("\n".join(words), trace)


def _refused(words: str, trace: Trace) -> Trial:
    if is_unreachable(words):
        reason = " ".join(words.split())[:400]
        return Trial(trace=trace, unchecked=_("the package index cannot be reached: {reason}", reason=reason))
    proof = words.rpartition("cause: ")[2].partition("hint:")[0]
    builds = tuple(canonicalize_name(Requirement(need).name) for need in only_source(words))
    refusal = read_derivation(proof, {*trace.names, *trace.chose})
    return Trial(trace=trace, refusal=refusal, words=" ".join(proof.split())[:600], builds=builds)
