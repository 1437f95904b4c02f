"""The machine: in one line, and with all that is known of it."""

from __future__ import annotations

from assistant.i18n import render, say
from assistant.machines import label, shipped
from assistant.markup import Markup, joined, tag
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.session.state import State
from assistant.views import machine_rows
from assistant.wizard import html


def machine_options() -> list[tuple[str, str]]:
    """List what can be looked at, with its key: this machine and every recorded one."""
    return [(say("This machine"), ""), *sorted((render(label(name)), name) for name in shipped())]


def draw_machine_line(machine: Machine) -> Markup:
    """Name the graphics cards, the system and the memory in one line."""
    cards = [gpu.label + (f" ({gpu.vram_gb:g} GB)" if gpu.vram_gb else "") for gpu in dict.fromkeys(machine.gpus)]
    memory = say("{size:g} GB of RAM", size=machine.memory_gb) if machine.memory_gb else ""
    known = [machine.os_version or machine.os or "", memory]
    named = tag("strong", " + ".join(cards) or say("No GPU found"))
    return tag("p", named, *(f" · {word}" for word in known if word), class_="ptsa-machine")


def draw_machine(state: State) -> Markup:
    """Show every fact, and where each comes from."""
    if state.detection is None:
        return html.NOTHING
    machine = state.detection.machine
    sources = html.table((item.fact, item.source, item.text) for item in machine.evidence)
    nothing = say("No GPU was found. PyTorch runs on the CPU, too; large models are slow there.")
    overrides = state.choices.overrides.items()
    by_hand = (say("{fact} = {value}: set by you.", fact=fact, value=value) for fact, value in overrides)
    return joined(
        [
            "" if machine.gpus else html.note(Severity.INFO, nothing),
            html.table(machine_rows(machine)),
            *(html.note(Severity.INFO, line) for line in by_hand),
            html.details(say("Where each fact comes from"), sources) if machine.evidence else "",
        ]
    )
