"""Export: the files of a working configuration, to keep and to download."""

from __future__ import annotations

import base64
from pathlib import Path

from assistant.i18n import _
from assistant.session.state import State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel

__all__ = ["ExportPanel"]


class ExportPanel(Panel):
    """The list of files, each to be read here or downloaded."""

    def draw(self, state: State) -> str:
        """Show the files once they are written."""
        top = html.heading(
            _("Take it with you"), _("The configuration as files: for you, for your project, for a bug report.")
        )
        return top + "".join(_file(Path(path)) for path in state.exported)


def _file(path: Path) -> str:
    """Offer a file's content as a download; the address holds the content, so that no server need reach the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"<p>{html.esc(path)}: {html.esc(error.strerror)}</p>"
    data = base64.b64encode(content).decode()
    link = f'<a download="{html.esc(path.name)}" href="data:application/octet-stream;base64,{data}">'
    return f"<h3>{link}{html.esc(_('Download {name}').format(name=path.name))}</a></h3><p>{html.esc(path)}</p>" + (
        html.details(_("Read it here"), html.code(content.decode("utf-8", "replace"))) if path.suffix != ".svg" else ""
    )
