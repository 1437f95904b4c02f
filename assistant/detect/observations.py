"""What one probe observes: partial facts, sighted GPUs and findings, each with the source that said so."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec.structs

from assistant.i18n import Text, _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Answer, Evidence, Gpu
from assistant.model.record import Record
from assistant.model.visible import one_line
from assistant.parsers.fields import Device
from assistant.privacy import redact

LIMIT = 1000  # characters kept of any text from outside (chosen: far above any device's name)
MOST_GPUS = 64  # more than any machine; a hostile report could list millions


def clean(text: str) -> str:
    """Make text from outside one line of bounded length without anything hidden."""
    return one_line(text[:LIMIT])


def private(text: str) -> str:
    """Clean a text that is kept as evidence, and take out what must not leave this machine."""
    return clean(redact(text[: 4 * LIMIT]))


def _cleaned(value: object) -> object:
    if isinstance(value, dict):
        return {clean(name): _cleaned(item) for name, item in value.items()}
    return clean(value) if isinstance(value, str) else value


class Sighting(Record, frozen=True):
    """One GPU as one source saw it; `bus` (`0000:01:00.0`) ties sightings of the same card together."""

    gpu: Gpu
    source: str
    bus: str | None = None
    revision: str | None = None


class Notes:
    """Facts are named as in `Machine`; the first probe in the list that reports a fact decides it."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.gpus: list[Sighting] = []
        self.evidence: list[Evidence] = []
        self.findings: list[Finding] = []

    def fact(self, name: str, value: object, source: str) -> None:
        """Note a fact; None means that the source did not tell, and of packages those are added that no other told."""
        before = self.facts.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = {**value, **before} if value.keys() - before.keys() else None
        elif name in self.facts:
            value = None
        if value is not None:
            self.facts[name] = _cleaned(value)
            self.evidence.append(Evidence(fact=name, source=source))

    def looked(self, fact: str, source: str, text: str) -> None:
        """Note that a source was read and what it said where that is not a value: "none there"."""
        self.evidence.append(Evidence(fact=fact, source=source, text=private(text)))

    def gpu(self, gpu: Gpu, source: str, *, bus: str | None = None, revision: str | None = None) -> None:
        """Note a GPU that a source saw."""
        if len(self.gpus) >= MOST_GPUS:
            return
        texts = {name: _cleaned(getattr(gpu, name)) for name in ("name", "driver")}
        gpu = msgspec.structs.replace(gpu, **texts)
        self.gpus.append(Sighting(gpu=gpu, source=source, bus=bus, revision=revision))

    def devices(self, devices: Iterable[Device], source: str) -> None:
        """Note the GPUs that a tool reports."""
        for device in devices:
            self.gpu(device.gpu, source, bus=device.bus)

    def finding(
        self,
        key: str,
        severity: Severity,
        text: Text,
        *,
        evidence: tuple[str, ...] = (),
        remedies: tuple[Remedy, ...] = (),
    ) -> None:
        """Note something worth reporting."""
        self.findings.append(
            Finding(key=key, severity=severity, text=text, evidence=tuple(map(private, evidence)), remedies=remedies)
        )

    def could_not_look(self, source: str, answer: Answer) -> None:
        """Note that a source exists but did not answer; "missing" and "unrecorded" are no such case."""
        reasons = {"denied": _("access denied"), "timeout": _("no answer in time"), "failed": _("it failed")}
        if answer.status in reasons:
            text = _("{source} could not be read ({reason}), so what it holds is unknown.")
            self.finding(
                "could-not-look",
                Severity.INFO,
                text.format(source=source, reason=reasons[answer.status]),
                evidence=(answer.text,) if answer.text else (),
            )
