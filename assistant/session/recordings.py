"""A recording of a machine that may be published."""

from __future__ import annotations

from typing import Any

import msgspec

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.model.machine import Exchange, Machine, Recording
from assistant.model.record import replace, to_json


def public_recording(host: Host) -> tuple[Recording, Machine]:
    """Record what detection asks, and return it with the machine that a replay gives.

    What users name themselves is left out: kernels, and packages that no plan of the tables asks for.
    """
    recorder = RecordingHost(host)
    detect(recorder)
    whole = read_recording(write_recording(recorder, ""), "")
    recording = replace(whole, said=tuple(_public(one) for one in whole.said if one.ask != ("kernels",)))
    return recording, detect(ReplayHost(recording)).machine


def _public(said: Exchange) -> Exchange:
    """Leave the packages that nobody knows out of their list."""
    if said.ask != ("packages",) or not said.answer:
        return said
    listed = {name: version for name, version in _read(said.answer.text).items() if name in load_catalog().packages}
    return replace(said, answer=replace(said.answer, text=to_json(listed)))


def _read(text: str) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(text)
    return plain
