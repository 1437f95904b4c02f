"""What the file of a recorded machine expects of its replay: filled in from a replay, and compared with one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.i18n import Message, _
from assistant.machines import label, shipped
from assistant.model.finding import Severity
from assistant.model.machine import Expected, Recording
from assistant.model.record import replace, to_json
from assistant.plan import make_plans
from assistant.privacy import redact
from assistant.session.doctor import judged

_UNTOLD = {"schema", "evidence"}  # of a machine: what is no fact
_PLAN = ("backend", "variant")  # of a plan: what a new release of torch seldom changes


def with_expected(text: str, what: str) -> str:
    """Return the text of a recording with what its replay gives now, for its author to read and correct."""
    recording = read_recording(text, what)
    found = _found(recording)
    facts = {name: value for name, value in (found.machine or {}).items() if value is not None}
    plan = found.plan and {name: found.plan[name] for name in _PLAN if name in found.plan}
    expect = msgspec.json.format(to_json(replace(found, machine=facts, plan=plan)), indent=1)
    return text.replace('"expect":{}', f'"expect":{expect}', 1)


def _found(recording: Recording) -> Expected:
    """Return all that a replay gives."""
    found = detect(ReplayHost(recording))
    facts = {"wsl": None, "rosetta": None, "gpus": [], **_plain(found.machine)}
    choice = make_plans(found.machine, load_catalog()).choice
    told = {finding.key for finding in judged(found) if finding.severity is not Severity.OK} - {"gpu-present"}
    return Expected(
        machine={name: value for name, value in facts.items() if name not in _UNTOLD},
        findings=tuple(sorted(told)),
        plan=_plain(choice) if choice else None,
    )


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(to_json(record))
    return plain


def differences(recording: Recording) -> Iterator[Message]:
    """Yield where a replay gives something else than its file expects, in a sentence each, and what is not expected."""
    expect, found = recording.expect, _found(recording)
    for name in ("machine", "findings", "plan"):
        if getattr(expect, name) is msgspec.UNSET:
            text = _("Its `expect` does not say what `{name}` must be; now it is {found}.")
            yield text.format(name=name, found=_shown(getattr(found, name)))
    wanted = {"machine": expect.machine, "plan": expect.plan}
    for name, value in wanted.items():
        if value is not msgspec.UNSET:
            yield from _compared(name, value, getattr(found, name))
    if expect.findings is not msgspec.UNSET:
        there, told = {*(expect.findings or ())}, {*(found.findings or ())}
        yield from (_("The finding {key} is expected and not made.", key=key) for key in sorted(there - told))
        yield from (_("The finding {key} is made and not expected.", key=key) for key in sorted(told - there))


def _compared(name: str, wanted: Any, found: Any) -> Iterator[Message]:  # noqa: ANN401 - a value of JSON
    """Compare objects by the keys that are expected, lists item by item, and all else as it is."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from _compared(f"{name}.{key}", value, found.get(key))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, pair in enumerate(zip(wanted, found, strict=True)):
            yield from _compared(f"{name}[{number}]", *pair)
    elif wanted != found:
        text = _("{name} is expected to be {wanted}, and it is {found}.")
        yield text.format(name=name, wanted=_shown(wanted), found=_shown(found))


def _shown(value: object) -> str:
    text = to_json(value)
    return text if len(text) <= 200 else f"{text[:200]}…"  # noqa: PLR2004 - a few lines of a terminal


def faults(recording: Recording, name: str) -> Iterator[Message]:
    """Yield what the file of a machine, by its name without `.json`, lacks of what all shipped ones have."""
    if not recording.label:
        yield _("It has no `label`, by which people choose it.")
    elif recording.label in {str(label(other)) for other in shipped() if other != name}:
        yield _("Another shipped machine has the label {label}.", label=recording.label)
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", recording.date):
        yield _("Its `date` is no day, as in 2026-11-21.")
    if recording.origin == "composed" and not recording.source:
        yield _("It is composed and names no `source`: where the output was read.")
    for said in recording.said:
        if redact(said) != said:
            yield _("The answer to {question} holds something private.", question=" ".join(said.ask))
    host = RecordingHost(ReplayHost(recording))
    found = detect(host)
    again = read_recording(write_recording(host, name), name)
    if to_json(detect(ReplayHost(again))) != to_json(found) or {one.ask for one in again.said} != {
        one.ask for one in host.said()
    }:
        yield _("Recorded anew, it is another machine: it holds answers that no recording keeps.")
    yield from differences(recording)
