"""What the file of a recorded machine expects of its replay, compared with one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from catalogs import catalog_as_of

from assistant.detect import detect
from assistant.host.base import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.machines import label, shipped
from assistant.model.finding import Severity
from assistant.model.machine import Expected, Recording
from assistant.model.record import to_json
from assistant.plan import make_plans
from assistant.privacy import redact
from assistant.session.environments import machine_findings

_UNTOLD = {"schema", "evidence"}  # of a machine: what is no fact


def _found(recording: Recording) -> Expected:
    """Return all that a replay gives."""
    found = detect(ReplayHost(recording))
    facts = {"wsl": None, "rosetta": None, "gpus": [], **_plain(found.machine)}
    choice = make_plans(found.machine, catalog_as_of("2.15.0")).choice
    told = {finding.key for finding in machine_findings(found) if finding.severity is not Severity.OK} - {"gpu-present"}
    return Expected(
        machine={name: value for name, value in facts.items() if name not in _UNTOLD},
        findings=tuple(sorted(told)),
        plan=_plain(choice) if choice else None,
    )


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    return _read(to_json(record))


def _read(text: str) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(text)
    return plain


def differences(recording: Recording) -> Iterator[str]:
    """Yield where a replay gives something else than its file expects, in a sentence each, and what is not expected."""
    expect, found = recording.expect, _found(recording)
    for name in ("machine", "findings", "plan"):
        if getattr(expect, name) is msgspec.UNSET:
            yield f"Its `expect` does not say what `{name}` must be; now it is {to_json(getattr(found, name))}."
    wanted = {"machine": expect.machine, "plan": expect.plan}
    for name, value in wanted.items():
        if value is not msgspec.UNSET:
            yield from _compared(name, value, getattr(found, name))
    if expect.findings is not msgspec.UNSET:
        there, told = {*(expect.findings or ())}, {*(found.findings or ())}
        yield from (f"The finding {key} is expected and not made." for key in sorted(there - told))
        yield from (f"The finding {key} is made and not expected." for key in sorted(told - there))


def _compared(name: str, wanted: Any, found: Any) -> Iterator[str]:
    """Compare objects by the keys that are expected, lists item by item, and all else as it is."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from _compared(f"{name}.{key}", value, found.get(key))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, pair in enumerate(zip(wanted, found, strict=True)):
            yield from _compared(f"{name}[{number}]", *pair)
    elif wanted != found:
        yield f"{name} is expected to be {to_json(wanted)}, and it is {to_json(found)}."


def faults(recording: Recording, name: str) -> Iterator[str]:
    """Yield what the file of a machine, by its name without `.json`, lacks of what all shipped ones have."""
    if not recording.label:
        yield "It has no `label`, by which people choose it."
    elif recording.label in {str(label(other)) for other in shipped() if other != name}:
        yield f"Another shipped machine has the label {recording.label}."
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", recording.date):
        yield "Its `date` is no day, as in 2026-11-21."
    if recording.origin == "composed" and not recording.source:
        yield "It is composed and names no `source`: where the output was read."
    for said in recording.said:
        if redact(said) != said:
            yield f"The answer to {' '.join(said.ask)} holds something private."
    host = RecordingHost(ReplayHost(recording))
    found = detect(host)
    again = read_recording(write_recording(host, name), name)
    if to_json(detect(ReplayHost(again))) != to_json(found) or {one.ask for one in again.said} != {
        one.ask for one in host.exchanges()
    }:
        yield "Recorded anew, it is another machine: it holds answers that no recording keeps."
    yield from differences(recording)
