"""What a verification says: the sentences of the child's keys, the findings of its checks, how a process ended."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping

from assistant.catalog.companions import needs
from assistant.i18n import Message, Text, _, first_line, sentences
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import Check, Report, Status, check_title, checked_package

# By the keys that `child.explain` sends, with the values of their placeholders.
SENTENCES = {
    "shape": _("The result has shape {shape}, not {expected}."),
    "off": _("{off} of {size} elements are wrong; element [{place}] is {value}, not {expected}."),
    "seed": _("The same seed gave different numbers."),
    "constant": _("Another seed gave the same numbers."),
    "slower than the CPU": _(
        "At this size it is slower than this machine's CPU: {rate:.3g} against {cpu_rate:.3g} {unit}; "
        "larger work may favour the device."
    ),
    "slower than sound": _("Generating the sound takes longer than playing it."),
    "slow kernels": _("A small operator takes {each:.0f} µs."),
    "elsewhere": _("The result is on {found}, not on {asked}."),
    "fallback": _("{operators} ran on the CPU instead of {device}."),
    "no memory taken": _("A tensor of {size} bytes took {taken} bytes on {device}."),
    "no rocm": _("This torch {torch} is not a ROCm build."),
    "unknown": _("There is no check called {check}."),
    "needs": _("It needs the check {need} to pass first."),
    "too much": _("It took more than {size} MiB of memory and was stopped."),
    "granted": _("{size} bytes were granted, more than there are."),
    "leak": _("{grown} MiB were not released after {rounds} results of {size} MiB."),
    "not installed": _("{name} is not installed in this environment."),
    "no provider": _("onnxruntime {version} has no provider for {device}, only {there}."),
    "other provider": _("ONNX Runtime ran {nodes} on {found} instead of {provider}."),
    "no node": _("ONNX Runtime's profile names no node that {provider} ran."),
    "no autocast": _("Autocast is not supported on {device}."),
    "no compile": _("torch {torch} has no torch.compile."),
    "no backend": _("torch.compile has no finished backend for {device}."),
    "no triton": _("torch.compile needs triton here, which is not installed."),
    "no compiler": _("torch.compile needs a C++ compiler on the CPU, and none is found."),
    "nothing to import": _("{package} has nothing to import."),
    "no metadata": _("{package} is only partly installed: its metadata is missing."),
    "files missing": _("Files of {package} are missing: {count} in all, such as {path}."),
    "cannot be imported": _("{module} cannot be imported: {error}"),
    "call fails": _("{package} can be imported, but fails at `{call}`: {error}"),
    "trial fails": _("`{call}` fails: {error}"),
    "call left out": _("`{call}` was skipped: it needs a GPU."),
    "space in path": _("torch.compile cannot build here: the path {path} contains a space. {error}"),
}


def sentence(reason: str, values: Mapping[str, str | int | float]) -> Text:
    """Return the sentence of a key of `child.explain`; "" for no key, the bare key and values for an unknown one."""
    if not reason:
        return ""
    text = SENTENCES.get(reason)
    return text.format(**values) if text else " ".join([reason, *(f"{key}={value}" for key, value in values.items())])


_FINDINGS = {
    Status.WRONG: (Severity.ERROR, _("“{check}” gave a wrong result on {device}.")),
    Status.UNSUPPORTED: (Severity.WARNING, _("“{check}” is not supported on {device}.")),
    Status.TIMEOUT: (Severity.ERROR, _("“{check}” did not finish on {device} and was stopped.")),
    Status.SLOW: (Severity.INFO, _("“{check}” is slow on {device}.")),
    Status.FAILED: (Severity.ERROR, _("“{check}” failed on {device}.")),
}


def finding_of(check: Check, device: str) -> Finding | None:
    """Return the finding that a check raises; None where it passed or was skipped."""
    if check.status not in _FINDINGS:
        return None
    severity, text = _FINDINGS[check.status]
    finding = Finding(
        key=f"verify.{check.key}",
        severity=severity,
        text=text.format(check=check_title(check.key), device=device),
        evidence=(check.detail,) if check.detail else (),
    )
    package = checked_package(check.key)
    return replace(finding, **_of_package(package, check, device)) if package else finding


def _of_package(package: str, check: Check, device: str) -> dict[str, object]:
    """Say of a distribution that was asked for why it does not work, and what to do."""
    reason = first_line(check.detail)
    next_step = _("Ask for another version or build of {package}, or go on without it.", package=package)
    lacking = lacking_in_system(check, device)
    text = _("{package} does not work in this environment: {reason}", package=package, reason=reason)
    return {"text": text, "remedies": tuple(Remedy(text=text) for text in (*lacking, next_step))}


_SYSTEMS = {"win32": "windows", "darwin": "macos"}


def lacking_in_system(check: Check, device: str) -> tuple[Message, ...]:
    """Say what this system lacks, where that is why a distribution that was asked for does not work."""
    system, backend = _SYSTEMS.get(sys.platform, sys.platform), Backend(device.partition(":")[0])
    return tuple(
        sentences(filter(None, (need.text, need.help)))
        for need in needs(checked_package(check.key), system, backend)
        if need.libraries and re.search(need.libraries, str(check.detail))
    )


def raised(report: Report) -> tuple[Finding, ...]:
    """Return the findings that a report's checks raise, as they did while they ran."""
    return tuple(finding for check in report.checks if (finding := finding_of(check, report.device)))


# What Windows answers in place of a signal:
# https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55
_WINDOWS_ENDINGS = {
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN",
}


def ending(code: int) -> Message:
    """Return how a process ended, by its exit status; a negative one is a signal's number."""
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return _("The process was ended by signal {name}.", name=names.get(-code, str(-code)))
    if code in _WINDOWS_ENDINGS:
        return _("The process was ended by Windows: {name}.", name=_WINDOWS_ENDINGS[code])
    return _("The process ended with exit status {code} before it had answered.", code=code)
