"""Saving the configuration: which files, and where they are."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import ipywidgets as widgets

from assistant.export import FORMATS, PURPOSES
from assistant.host.files import current_folder
from assistant.i18n import _, say
from assistant.model.finding import Severity
from assistant.model.record import Record
from assistant.model.report import Step
from assistant.model.visible import Markup, joined, tag
from assistant.session.actions import Begin, Choose, Show, blockers
from assistant.session.session import Session
from assistant.session.state import Page, Phase, State, Task
from assistant.wizard import html
from assistant.wizard.head import Footer, Other, show_folder
from assistant.wizard.panels.base import PageView, failure
from assistant.wizard.shared_widgets import Details, Drawing, Fold, make

PACK, PYLOCK = "configuration.zip", "pylock.toml"
PURPOSE, FORMAT = "purpose", "format"  # begin the keys of cards
USUAL = "colleague"  # the purpose of who names none: a few files, that make the same environment again
SIGNS = {"colleague": "person", "project": "folder", "container": "box", "report": "warning"}
SHOWN_BYTES = 60_000  # chosen: of a file that can be read in the panel; it is sent when somebody opens it


class ExportPage(PageView):
    """What the files are for, and then the files, each to be read here or downloaded."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.lead = make(Drawing)
        self.files = make(Details, title=_("The individual files"))
        self.fold = make(Fold, title=_("Choose individual files or another folder"))
        self.folder = make(widgets.Text, description=_("Folder"), continuous_update=False)
        self.on_value(self.folder, lambda folder: Choose(folder=folder.strip()))
        self.formats = make(Drawing)
        self.fold.holds = (self.folder, self.formats)
        self.parts = (self.lead, self.files, self.fold)

    def follow(self, state: State) -> None:
        """Show the choices and, once they are written, the files."""
        lead = say("As files: for you, for a colleague, for your project, for a bug report.")
        above = (html.heading(say("Save the configuration"), lead), failure(state, Step.EXPORT))
        self.lead.value = joined([*above, draw_purposes(state), draw_written(state)])
        self.hidden = () if state.exported.files else (self.files,)
        self.files.draw(lambda: draw_files(state))
        self.formats.value = draw_formats(state)
        self.folder.placeholder = _default_folder(state)
        self.folder.value = state.choices.folder

    def pressed(self, key: str, state: State) -> tuple[Choose, ...]:
        """Return the choice of a purpose, or of a file more or less."""
        part, _colon, name = key.partition(":")
        chosen = state.choices.formats
        if part == PURPOSE:
            return (Choose(purpose=name, formats=()),)
        if part != FORMAT:
            return ()
        return (Choose(formats=tuple(one for one in FORMATS if (one in chosen) != (one == name))),)

    def footer(self, state: State) -> Footer:
        """Return the footer: to write the files, also again, to show their folder if JupyterLab can, or to go back."""
        written = _common_folder(state)
        reached = written and Path(written).is_relative_to(current_folder())
        show = (Other(label=say("Show the folder"), actions=(show_folder(written),)),) if reached else ()
        done = state.status(Step.EXPORT).phase is Phase.DONE
        reasons = blockers(state, Task.EXPORT)
        # What is chosen is no part of what a press means: one right after a choice would be taken for outdated.
        folder = () if state.choices.folder else (Choose(folder=_default_folder(state)),)
        write = (*folder, *usual_purpose(state), Begin(task=Task.EXPORT))
        return Footer(
            label=say("Write the files again") if done else say("Write the files"),
            actions=() if reasons else write,
            able=not reasons,
            note=next(iter(reasons), ""),
            others=(*show, Other(label=say("Back"), actions=(Show(page=Page.SETUP),))),
        )


def usual_purpose(state: State) -> tuple[Choose, ...]:
    """Return the choice of the usual purpose where neither a purpose nor single files are chosen; else ()."""
    return () if state.choices.purpose or state.choices.formats else (Choose(purpose=USUAL),)


def draw_purposes(state: State) -> Markup:
    """Return a card for each purpose; none is chosen once single files are."""
    options = [
        html.Tile(f"{PURPOSE}:{key}", purpose.title, purpose.lead, SIGNS.get(key, "file"))
        for key, purpose in PURPOSES.items()
        if key
    ]
    chosen = f"{PURPOSE}:{state.choices.purpose or USUAL}"
    return html.tiles(say("What for?"), options, "" if state.choices.formats else chosen)


def draw_formats(state: State) -> Markup:
    """Return a card for each format, of which several can be ticked."""
    options = [html.Tile(f"{FORMAT}:{name}", name, kind.description) for name, kind in FORMATS.items()]
    chosen = " ".join(f"{FORMAT}:{name}" for name in state.choices.formats)
    return html.tiles(say("Formats"), options, chosen, "checkbox")


class Download(Record, frozen=True):
    """An exported file with its content, for a browser that cannot reach the disk; `fault` says why it has none."""

    name: str
    path: str
    content: bytes = b""
    fault: str = ""


def zip_files(paths: Iterable[str]) -> bytes:
    """Read files and return a zip of them, named by their paths below their common folder, without unreadable ones."""
    files = [file for file in read_files(paths) if not file.fault]
    root = Path(os.path.commonpath([Path(file.path).parent for file in files])) if files else Path()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as pack:
        for file in files:
            pack.writestr(Path(file.path).relative_to(root).as_posix(), file.content)
    return written.getvalue()


def read_files(paths: Iterable[str]) -> Iterator[Download]:
    """Yield each file with its content; one that cannot be read has the reason as its `fault`."""
    for path in map(Path, paths):
        try:
            yield Download(name=path.name, path=str(path), content=path.read_bytes())
        except OSError as error:
            yield Download(name=path.name, path=str(path), fault=error.strerror or str(error))


def _default_folder(state: State) -> str:
    """Return the default folder to write to: "ENVIRONMENT-configuration", beside the notebook."""
    name = Path(state.environment.path).name if state.environment else "pytorch"
    return str(current_folder() / f"{name}-configuration")


def _common_folder(state: State) -> str:
    """Return the folder that holds all files; "" before they are written."""
    return min((str(Path(path).parent) for path in state.exported.files), key=len, default="")


def draw_written(state: State) -> Markup:
    """Return where the files are, with a link to all of them in one zip; nothing before they are written."""
    if not state.exported.files:
        return html.NOTHING
    pack = tag("p", html.fetch(PACK, PACK), " ", say("All files in one zip."))
    return html.note(Severity.OK, say("The files are in {folder}.", folder=_common_folder(state)), pack)


def draw_files(state: State) -> Markup:
    """Return a list of downloads: each exported file, read again from disk, or the reason why it cannot be read."""
    folder = _common_folder(state)
    files = [_draw_file(file, str(key), folder) for key, file in enumerate(read_files(state.exported.files))]
    return tag("ul", *files, class_="ptsa-files")


def _draw_file(file: Download, key: str, folder: str) -> Markup:
    """Return a link to a file, by its path in `folder`, and a fold to read it if it is text and not large.

    For a file that could not be read, return the reason.
    """
    if file.fault:
        return tag("li", html.icon("error"), f"{file.path}: ", file.fault)
    small = 0 < len(file.content) <= SHOWN_BYTES and b"\0" not in file.content  # no picture
    place = file.path.removeprefix(folder).lstrip("/\\")
    return tag(
        "li",
        html.fetch(place, key),
        html.peek(say("Read it here"), key) if small else "",
    )


def find_file(state: State, key: str) -> tuple[str, bytes] | None:
    """Return name and content of the file that a link asks for by `key`.

    They are for `PYLOCK` what the commands install, for `PACK` a zip of all exported files, for a number the file at
    that place among them. None for any other key, before there is any file, and if the file cannot be read.
    """
    if key == PYLOCK and state.preview:
        return PYLOCK, state.preview.resolution.lock.encode()
    if key == PACK and state.exported.files:
        return PACK, zip_files(state.exported.files)
    paths = [path for number, path in enumerate(state.exported.files) if str(number) == key]
    return next(((file.name, file.content) for file in read_files(paths) if not file.fault), None)
