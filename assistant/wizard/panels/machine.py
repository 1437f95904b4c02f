"""The machine: in one line, and with all that is known of it."""

from __future__ import annotations

from assistant.i18n import render, say
from assistant.machines import label, shipped
from assistant.markup import Markup, joined, tag
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.session.state import State
from assistant.session.what_if import CardOutlook, outlook
from assistant.views import machine_rows
from assistant.wizard import html
from assistant.wizard.driver_scale import driver_ruler


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
    """Show a card for each GPU with what it can run, every fact, and where each comes from."""
    if state.detection is None:
        return html.NOTHING
    machine = state.detection.machine
    sources = html.table((item.fact, item.source, item.text) for item in machine.evidence)
    cards = [_card(seen, machine.gpus.count(seen.gpu)) for seen in outlook(machine).cards]
    nothing = say("No GPU was found. PyTorch runs on the CPU, too; large models are slow there.")
    by_hand = (say("{fact} = {value}: set by you.", fact=fact, value=value) for fact, value in state.overrides.items())
    ruler = driver_ruler(outlook(machine).openings, machine.nvidia_driver or "")
    return joined(
        [
            html.cards(cards) if cards else html.note(Severity.INFO, nothing),
            html.section(say("What the NVIDIA driver allows"), ruler),
            html.table(machine_rows(machine, hide={"gpu"})),
            *(html.note(Severity.INFO, line) for line in by_hand),
            html.details(say("Where each fact comes from"), sources) if machine.evidence else "",
        ]
    )


def _card(seen: CardOutlook, count: int) -> Markup:
    """Draw one kind of card: what it is, and what it can run or why it cannot."""
    gpu = seen.gpu
    known = [
        say("integrated") if gpu.integrated else say("graphics card"),
        say("{size:g} GB of memory", size=gpu.vram_gb) if gpu.vram_gb else "",
        say("compute capability {version}", version=gpu.compute_capability) if gpu.compute_capability else "",
        gpu.gfx or "",
        gpu.pci_id or "",
    ]
    can = [
        say(
            "{backend} with torch {torch} ({variant})",
            backend=plan.backend.title,
            torch=plan.torch,
            variant=plan.variant,
        )
        for plan in seen.plans
    ]
    cannot = [line for line in (seen.why or say("No PyTorch build supports it."), seen.would_help) if line]
    if can:
        verdict = html.paragraph(say("It can run:")) + html.bullets(dict.fromkeys(can), "ok")
    else:
        verdict = html.bullets(cannot[:1], "no") + html.bullets(cannot[1:], "next")
    title = f"{count} × {gpu.label}" if count > 1 else gpu.label
    return html.card(title, html.chips(known) + verdict, "gpu", "ptsa-card-good" if can else "ptsa-card-none")
