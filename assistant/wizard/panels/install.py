"""Install: where, what, how much, by which commands; then how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.session.state import Aim, Phase, Preview, State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel, log_view

__all__ = ["InstallPanel"]


class InstallPanel(Panel):
    """The agreement and the work."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose the folder, and show the log below it."""
        self.target = widgets.Text(
            description=_("Folder"), placeholder=_("a folder of its own, chosen for you"), continuous_update=False
        )
        self.on_value(self.target, lambda target: Aim(target=target.strip()))
        self.log = widgets.HTML()
        return [self.target, self.log]

    def draw(self, state: State) -> str:
        """Show what will happen, or what has."""
        top = html.heading(_("Install"), _("A new environment is made; nothing that exists is touched."))
        if state.status(self.step).phase is Phase.DONE and state.environment:
            text = _("The environment is ready in {path}.").format(path=state.environment.path)
            kernel = _("JupyterLab's launcher offers it as the kernel {name}.").format(name=state.environment.kernel)
            return top + html.note(Severity.OK, text, html.bullets([kernel] if state.environment.kernel else []))
        return top + (_agreement(state.preview) if state.preview else "")

    def follow(self, state: State) -> None:
        """Show the folder and the log; the folder cannot be changed while something runs."""
        self.target.value = state.target
        self.target.disabled = state.running is not None
        self.log.value = log_view(state.log)


def _agreement(preview: Preview) -> str:
    packages = preview.resolution.packages
    size = _("{size:.0f} MB at most; what is in the cache is not fetched again").format(
        size=preview.resolution.download / 10**6
    )
    rows = ((_("Folder"), preview.target), (_("Packages"), str(len(packages))), (_("Download"), size))
    commands = html.code("\n".join(shlex.join(command) for command in preview.commands))
    every = html.table(((p.name, p.version, p.url) for p in packages), (_("Package"), _("Version"), _("Source")))
    ready = html.note(Severity.OK, _("This environment is there already and holds exactly these packages."))
    return (
        html.table(rows)
        + (ready if preview.ready else f"<p>{html.esc(_('These commands will run:'))}</p>{commands}")
        + html.details(_("Every package"), every)
    )
