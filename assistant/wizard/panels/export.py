"""Export: the files of a working configuration, to keep and to download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import ipywidgets as widgets

from assistant.export import FORMATS
from assistant.i18n import say
from assistant.session.actions import Fill
from assistant.session.carry import Download, downloads
from assistant.session.nouns import State
from assistant.wizard import html
from assistant.wizard.choices import Choices
from assistant.wizard.panels.base import Panel
from assistant.wizard.parts import made

PAGE = "setup.html"
SHOWN_BYTES = 60_000  # of a file that can be read in the panel; it is sent when somebody opens it


class ExportPanel(Panel):
    """The list of files, each to be read here or downloaded."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose another folder, and some of the formats."""
        self.folder = made(
            widgets.Text, description=say("Folder"), placeholder=say("beside the environment"), continuous_update=False
        )
        self.on_value(self.folder, lambda folder: Fill(folder=folder.strip()))
        rows = [(kind.description, name) for name, kind in FORMATS.items()]
        self.formats = made(Choices, description=say("Formats"), options=rows)
        self.on_value(self.formats, lambda names: Fill(formats=tuple(names)))
        return [self.folder, self.formats]

    def draw(self, state: State) -> str:
        """Show the files once they are written, and before that where they will be."""
        top = html.heading(
            say("Take it with you"), say("The configuration as files: for you, for your project, for a bug report.")
        )
        folder = min((str(Path(path).parent) for path in state.exported), key=len, default="")
        files = "".join(_file(file, str(key), folder) for key, file in enumerate(downloads(state.exported)))
        if files:
            whole = Download(name=PAGE, path=PAGE, content=b"")
            files += _file(whole, PAGE, "", say("the whole setup as a page to read, without scripts"))
            files = html.table([(say("Folder"), folder)]) + f'<ul class="ptsa-files">{files}</ul>'
        following = say("Every format that suits this setup is written, or those that you choose.")
        return (
            top
            + html.section(say("What was found"), files)
            + html.section(say("What will happen"), "" if files else html.paragraph(following))
        )

    def follow(self, state: State) -> None:
        """Show the choices."""
        self.folder.value, self.formats.value = state.folder, list(state.formats)


def fetched(state: State, key: str) -> tuple[str, bytes] | None:
    """Give the name and the content of a file that a link of the panel stands for; None for any other key."""
    if key == PAGE and state.exported:
        from assistant.wizard.page import page  # noqa: PLC0415 - the page shows this panel among the others

        return PAGE, page(state).encode()
    wanted = [path for number, path in enumerate(state.exported) if str(number) == key]
    return next(((file.name, file.content) for file in downloads(wanted) if not file.fault), None)


def _file(file: Download, key: str, folder: str, lead: str = "") -> str:
    """Offer a file to be downloaded, by its place in the folder, and one that is not large to be read."""
    if file.fault:
        return f"<li>{html.icon('error')}{html.esc(file.path)}: {html.esc(file.fault)}</li>"
    small = 0 < len(file.content) <= SHOWN_BYTES and b"\0" not in file.content  # no picture
    place = file.path.removeprefix(folder).lstrip("/\\")
    return (
        f"<li>{html.fetch(place, key)}"
        + f"<p class='ptsa-lead'>{html.esc(lead)}</p>" * bool(lead)
        + html.peek(say("Read it here"), key) * small
        + "</li>"
    )
