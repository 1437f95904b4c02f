"""Detect: what this machine is, or what a recorded one was."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.host.live import IN_BROWSER
from assistant.i18n import render, say
from assistant.machines import label, shipped
from assistant.markup import Markup, joined, tag
from assistant.model.finding import Severity
from assistant.session.actions import Begin, SetFact, Simulate
from assistant.session.state import State, Task
from assistant.session.what_if import CardOutlook, outlook
from assistant.views import machine_rows
from assistant.wizard import html
from assistant.wizard.driver_scale import driver_ruler
from assistant.wizard.panels.base import Panel
from assistant.wizard.shared_widgets import make


class DetectPanel(Panel):
    """The facts, a card per GPU with what it can run, the findings, and the choice of a machine to look at."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Offer this machine and every recorded one, a fact to set, and another look."""
        recorded = sorted((render(label(name)), name) for name in shipped())
        here = [] if IN_BROWSER else [(say("This machine"), "")]
        self.machine = make(widgets.Dropdown, options=[*here, *recorded], description=say("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = make(
            widgets.Text, description=say("Set a fact"), placeholder="nvidia_driver=580.95.05", continuous_update=False
        )
        self.on_value(self.fact, self._set)
        self.again = make(widgets.Button, description=say("Look again"))
        self.again.on_click(lambda _button: self.dispatch(Begin(task=Task.DETECT)))
        return [self.machine, self.fact, self.again]

    def _set(self, text: str) -> SetFact:
        """Read `fact=value`; an empty value takes the setting back."""
        fact, _sign, value = text.partition("=")
        return SetFact(fact=fact.strip(), value=value.strip())

    def draw(self, state: State) -> Markup:
        """Show the facts once there are any."""
        top = html.heading(say("What is this machine?"), say("This step only looks; it changes nothing."))
        if state.detection is None:
            return top + tag("div", html.paragraph(say("Looking…"), "running"), class_="ptsa-waiting")
        machine = state.detection.machine
        sources = html.table((item.fact, item.source, item.text) for item in machine.evidence)
        cards = [_card(seen, machine.gpus.count(seen.gpu)) for seen in outlook(machine).cards]
        nothing = say("No GPU was found. PyTorch runs on the CPU, too; large models are slow there.")
        by_hand = (
            say("{fact} = {value}: set by you.", fact=fact, value=value) for fact, value in state.overrides.items()
        )
        found = joined(
            [
                html.cards(cards) if cards else html.note(Severity.INFO, nothing),
                html.table(machine_rows(machine, hide={"gpu"})),
                *(html.note(Severity.INFO, line) for line in by_hand),
                *map(html.finding, state.detection.findings),
                html.details(say("Where each fact comes from"), sources) if machine.evidence else "",
            ]
        )
        ruler = driver_ruler(outlook(machine).openings, machine.nvidia_driver or "")
        following = say("The next step chooses the PyTorch that fits this machine. It changes nothing, either.")
        return (
            top
            + html.section(say("What was found"), found)
            + html.section(say("What the NVIDIA driver allows"), ruler)
            + html.section(say("What will happen"), html.paragraph(following))
        )

    def follow(self, state: State) -> None:
        """Show which machine is looked at."""
        self.machine.value = state.machine


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
            backend=plan.backend.value.upper(),
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
