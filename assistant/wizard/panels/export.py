"""Export: the files of a working configuration, to keep and to download."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.export import FORMATS
from assistant.i18n import _
from assistant.session.downloads import Download, downloads
from assistant.session.state import Fill, State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel
from assistant.wizard.parts import made

__all__ = ["ExportPanel"]


class ExportPanel(Panel):
    """The list of files, each to be read here or downloaded."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose another folder, and some of the formats."""
        self.folder = made(
            widgets.Text, description=_("Folder"), placeholder=_("beside the environment"), continuous_update=False
        )
        self.on_value(self.folder, lambda folder: Fill(field="folder", value=folder.strip()))
        rows = [(f"{name}: {kind.description}", name) for name, kind in FORMATS.items()]
        self.formats = made(widgets.SelectMultiple, description=_("Formats"), options=rows, rows=8)
        self.on_value(self.formats, lambda names: Fill(field="formats", value=tuple(names)))
        return [self.folder, self.formats]

    def draw(self, state: State) -> str:
        """Show the files once they are written, and before that where they will be."""
        top = html.heading(
            _("Take it with you"), _("The configuration as files: for you, for your project, for a bug report.")
        )
        written = [*downloads(state.exported), *([_page(state)] if state.exported else [])]
        files = "".join(map(_file, written))
        following = _("Every format that suits this setup is written, or those that you choose.")
        return (
            top
            + html.section(_("What was found"), f'<ul class="ptsa-files">{files}</ul>' if files else "")
            + html.section(_("What will happen"), "" if files else html.paragraph(following))
        )

    def follow(self, state: State) -> None:
        """Show the choices; they cannot be changed while something runs."""
        self.folder.value, self.formats.value = state.folder, state.formats
        self.folder.disabled = self.formats.disabled = state.running is not None


def _page(state: State) -> Download:
    from assistant.wizard.page import page  # noqa: PLC0415 - the page shows this panel among the others

    return Download(
        name="setup.html", path=_("the whole setup as a page to read, without scripts"), content=page(state).encode()
    )


def _file(file: Download) -> str:
    """Offer a file to be downloaded or read."""
    if file.fault:
        return f"<li>{html.icon('error')}{html.esc(file.path)}: {html.esc(file.fault)}</li>"
    shown = "" if file.name.endswith((".svg", ".png", ".html")) else html.code(file.content.decode("utf-8", "replace"))
    return (
        f"<li>{html.download(file.name, file.content)}<p class='ptsa-lead'>{html.esc(file.path)}</p>"
        + html.details(_("Read it here"), shown)
        + "</li>"
    )
