"""Export: the files of a working configuration, to keep and to download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import ipywidgets as widgets

from assistant.export import FORMATS
from assistant.i18n import say
from assistant.markup import Markup, tag
from assistant.session.actions import Fill
from assistant.session.exporting import Download, downloads
from assistant.session.state import State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel
from assistant.wizard.shared_widgets import Choices, make

PAGE = "setup.html"
SHOWN_BYTES = 60_000  # chosen: of a file that can be read in the panel; it is sent when somebody opens it


class ExportPanel(Panel):
    """The list of files, each to be read here or downloaded."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user choose another folder, and some of the formats."""
        self.folder = make(
            widgets.Text, description=say("Folder"), placeholder=say("beside the environment"), continuous_update=False
        )
        self.on_value(self.folder, lambda folder: Fill(folder=folder.strip()))
        rows = [(kind.description, name) for name, kind in FORMATS.items()]
        self.formats = make(Choices, description=say("Formats"), options=rows)
        self.on_value(self.formats, lambda names: Fill(formats=tuple(names)))
        return [self.folder, self.formats]

    def draw(self, state: State) -> Markup:
        """Show the files once they are written, and before that where they will be."""
        top = html.heading(
            say("Take it with you"), say("The configuration as files: for you, for your project, for a bug report.")
        )
        folder = min((str(Path(path).parent) for path in state.exported), key=len, default="")
        files = [_file(file, str(key), folder) for key, file in enumerate(downloads(state.exported))]
        found = html.NOTHING
        if files:
            whole = Download(name=PAGE, path=PAGE, content=b"")
            files.append(_file(whole, PAGE, "", say("the whole setup as a page to read, without scripts")))
            found = html.table([(say("Folder"), folder)]) + tag("ul", *files, class_="ptsa-files")
        following = say("Every format that suits this setup is written, or those that you choose.")
        return (
            top
            + html.section(say("What was found"), found)
            + html.section(say("What will happen"), html.NOTHING if files else html.paragraph(following))
        )

    def follow(self, state: State) -> None:
        """Show the choices."""
        self.folder.value, self.formats.value = state.folder, list(state.formats)


def _file(file: Download, key: str, folder: str, lead: str = "") -> Markup:
    """Offer a file to be downloaded, by its place in the folder, and one that is not large to be read."""
    if file.fault:
        return tag("li", html.icon("error"), f"{file.path}: ", file.fault)
    small = 0 < len(file.content) <= SHOWN_BYTES and b"\0" not in file.content  # no picture
    place = file.path.removeprefix(folder).lstrip("/\\")
    return tag(
        "li",
        html.fetch(place, key),
        html.lead_line(lead) if lead else "",
        html.peek(say("Read it here"), key) if small else "",
    )
