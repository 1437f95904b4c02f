"""Detect: what this machine is, or what a recorded one was."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.machines import label, shipped
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Machine
from assistant.session.state import SetFact, Simulate, State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel

__all__ = ["DetectPanel"]


class DetectPanel(Panel):
    """The facts, a card per GPU, the findings, and the choice of a machine to look at."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Offer this machine and every recorded one."""
        options = [(_("This machine"), ""), *((label(name), name) for name in shipped())]
        self.machine = widgets.Dropdown(options=options, description=_("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = widgets.Text(
            description=_("Set a fact"), placeholder="nvidia_driver=580.95.05", continuous_update=False
        )
        self.on_value(self.fact, self._set)
        return [self.machine, self.fact]

    def _set(self, text: str) -> SetFact:
        """Read `fact=value`; an empty value takes the setting back."""
        fact, _sign, value = text.partition("=")
        return SetFact(fact=fact.strip(), value=value.strip())

    def draw(self, state: State) -> str:
        """Show the facts once there are any."""
        top = html.heading(_("What is this machine?"), _("This step only looks; it changes nothing."))
        if state.detection is None:
            return top
        machine = state.detection.machine
        cards = "".join(_card(gpu) for gpu in machine.gpus) or html.note(Severity.INFO, _("No GPU was found."))
        sources = html.table((item.fact, item.source, item.text) for item in machine.evidence)
        return (
            top
            + html.table(facts(machine))
            + "".join(html.note(Severity.INFO, line) for line in _set_by_you(state))
            + f'<div class="ptsa-cards">{cards}</div>'
            + "".join(html.finding(finding) for finding in state.detection.findings)
            + html.details(_("Where each fact comes from"), sources if machine.evidence else "")
        )

    def follow(self, state: State) -> None:
        """Show which machine is looked at; it cannot be changed while something runs."""
        self.machine.value = state.machine
        self.machine.disabled = self.fact.disabled = state.running is not None


def facts(machine: Machine) -> list[tuple[str, str]]:
    """List the facts that matter to a reader; unknown ones are left out."""
    rows = [
        (_("System"), " ".join(filter(None, (machine.os_version or machine.os, machine.arch)))),
        (_("Python"), f"{machine.python or ''} {machine.python_implementation or ''}".strip()),
        (_("Memory"), _("{size:.0f} GB").format(size=machine.memory_gb) if machine.memory_gb else ""),
        (_("Free disk"), _("{size:.0f} GB").format(size=machine.disk_free_gb) if machine.disk_free_gb else ""),
        (_("Container"), machine.container or ""),
        (_("NVIDIA driver"), machine.nvidia_driver or ""),
        ("ROCm", machine.rocm_version or ""),
        (_("Packages"), ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items()))),
    ]
    return [(label, value) for label, value in rows if value]


def _set_by_you(state: State) -> list[str]:
    text = _("{fact} = {value}: set by you.")
    return [text.format(fact=fact, value=value) for fact, value in state.overrides.items()]


def _card(gpu: Gpu) -> str:
    kind = _("integrated") if gpu.integrated else _("graphics card")
    known = [
        kind,
        _("{size:g} GB of memory").format(size=gpu.vram_gb) if gpu.vram_gb else "",
        _("compute capability {version}").format(version=gpu.compute_capability) if gpu.compute_capability else "",
        gpu.gfx or "",
        gpu.pci_id or "",
    ]
    lines = "".join(f"<div>{html.esc(line)}</div>" for line in known if line)
    return f'<div class="ptsa-card"><strong>{html.esc(gpu.name or gpu.vendor.value)}</strong>{lines}</div>'
