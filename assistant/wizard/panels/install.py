"""Install: where, what, how much, by which commands; then how far it is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import say
from assistant.install import Prepared
from assistant.markup import Markup, joined
from assistant.model.finding import Severity
from assistant.session.actions import Aim
from assistant.session.state import Phase, State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel, log_view
from assistant.wizard.shared_widgets import Drawing, make

KERNEL = "kernel"  # the target's word for the environment that this kernel runs in


class InstallPanel(Panel):
    """The agreement and the work."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose between a new environment and this kernel's own."""
        options = [(say("A new environment"), ""), (say("The environment of this kernel"), KERNEL)]
        self.where = make(widgets.Dropdown, options=options, description=say("Where"))
        self.on_value(self.where, lambda where: Aim(target=where))
        self.target = make(
            widgets.Text,
            description=say("Folder"),
            placeholder=say("a folder of its own, chosen for you"),
            continuous_update=False,
        )
        self.on_value(self.target, lambda target: Aim(target=target.strip()))
        return [self.where, self.target]

    def views(self) -> Iterable[widgets.Widget]:
        """Show the log below."""
        self.log = make(Drawing)
        return [self.log]

    def draw(self, state: State) -> Markup:
        """Show what will happen, or what has."""
        if state.target == KERNEL:
            lead = say("This kernel's own environment is changed; if anything fails, it is restored.")
        elif state.target:
            lead = say(
                "A new environment is made in this folder; one that is already there is changed, and restored if "
                "anything fails."
            )
        else:
            lead = say("A new environment is made; nothing that exists is touched.")
        top = html.heading(say("Install"), lead)
        if state.status(self.step).phase is Phase.DONE and state.environment:
            return top + html.section(say("What was done"), _ready(state))
        known = state.detection.findings if state.detection else ()
        raised = joined(html.finding(finding) for finding in state.findings if finding not in known)
        following = say(
            "Next, the exact packages are resolved. You see the commands, the folder and the size before anything is "
            "installed."
        )
        agreement = _agreement(state.preview) if state.preview else html.paragraph(following)
        return top + html.section(say("What was found"), raised) + html.section(say("What will happen"), agreement)

    def follow(self, state: State) -> None:
        """Show place and log."""
        self.where.value = KERNEL if state.target == KERNEL else ""
        self.target.value = "" if state.target == KERNEL else state.target
        self.target.disabled = state.target == KERNEL
        self.log.value = log_view(state.log, state.log_file)


def _ready(state: State) -> Markup:
    """Say where the environment is, and that a kernel which has torch loaded already must restart."""
    made = state.environment
    if made is None:
        return html.NOTHING
    kernel = say("JupyterLab's launcher offers it as the kernel {name}.", name=made.kernel) if made.kernel else ""
    text = say("The environment is ready in {path}.", path=made.path)
    note = html.note(Severity.OK, text, html.bullets([kernel] if kernel else []))
    if state.target != KERNEL or "torch" not in sys.modules:
        return note
    restart = say(
        "This kernel had already imported torch, so it still runs the old one: restart it (menu Kernel), run the cell "
        "above again and continue from where you are."
    )
    return note + html.note(Severity.WARNING, restart)


def _agreement(preview: Prepared) -> Markup:
    packages = preview.resolution.packages
    size = say(
        "{size:.1f} MB, of {total:.1f} MB in all", size=preview.download / 1e6, total=preview.resolution.download / 1e6
    )
    rows = ((say("Folder"), preview.target), (say("Packages"), str(len(packages))), (say("Download"), size))
    commands = html.code("\n".join(shlex.join(command) for command in preview.commands))
    sizes = {package.name: f"{package.size / 1e6:.2f} MB" if package.size else "" for package in packages}
    every = html.table(
        ((package.name, package.version, sizes[package.name], package.url) for package in packages),
        (say("Package"), say("Version"), say("Size"), say("Source")),
    )
    ready = html.note(Severity.OK, say("This environment is there already and holds exactly these packages."))
    return (
        html.table(rows)
        + (ready if preview.ready else html.paragraph(say("These commands will run:")) + commands)
        + html.details(say("Every package"), every)
        + html.details(say("Every file and folder that is written"), html.bullets(preview.writes))
    )
