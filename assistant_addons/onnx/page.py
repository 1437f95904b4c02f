"""An ONNX model on the page for what is wrong: given as a file, then checked, converted and tried."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path

import ipywidgets as widgets

from assistant.api import Cancelled, _, render, say
from assistant.api.notebook import (
    AddonPart,
    Begin,
    Drawing,
    Extra,
    Page,
    Session,
    State,
    Supply,
    Task,
    html,
    make,
)
from assistant.api.records import Severity
from assistant.api.system import write_atomically
from assistant.api.texts import Markup, joined, tag
from assistant_addons.onnx.answers import Attempt, Checked, Conversion
from assistant_addons.onnx.drawing import (
    HEADINGS_OF_AGREEMENT,
    HEADINGS_OF_CHANGES,
    HEADINGS_OF_RUNS,
    operator_table,
    rows_of_agreement,
    rows_of_changes,
    rows_of_runs,
    shares,
    size_line,
)
from assistant_addons.onnx.task import Examined

NAME = "onnx"
COLOURS = {"green": "#1565c0", "yellow": "#f9a825", "red": "#b71c1c"}  # blue for good, which all tell from red
DOWNLOAD_BYTES = 30 * 10**6  # chosen: a larger result is named, not sent through the browser


class OnnxPage(AddonPart):
    """A place to give a model, one button, and what came out: nothing of it is made before `fill`."""

    page = Page.WRONG

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.box = make(widgets.VBox)
        self.parts = (self.box,)
        self._refused = html.NOTHING

    def title(self) -> str:
        """Return the words of the fold."""
        return say("An ONNX model: see what runs where, and convert it")

    def fill(self) -> None:
        """Make the controls, the first time."""
        if self.box.children:
            return
        self.head, self.result = make(Drawing), make(Drawing)
        self.upload = make(widgets.FileUpload, multiple=True, description=_("Upload"))
        self.path = make(
            widgets.Text, description=_("Or a file here"), placeholder="model.onnx", continuous_update=False
        )
        self.go = make(widgets.Button, description=_("Check, convert and try"), button_style="primary")
        self.go.on_click(lambda _button: self.begin())
        self.box.children = (self.head, self.upload, self.path, self.go, self.result)
        self.follow(self.session.state)

    def begin(self) -> None:
        """Let the session examine the model that was uploaded or named."""
        try:
            model = self._uploaded() or self.path.value.strip()
        except OSError as error:
            reason = say("The model could not be written: {reason}.", reason=error.strerror or error)
            self._refused = html.failure(reason, say("Free some space on the disk, or name the model's file below."))
            self.follow(self.session.state)
            return
        self._refused = html.NOTHING
        file = Path(model).expanduser()
        given = Examined(model=str(file) if model else "", folder=str(self._folder))
        self.session.dispatch(Supply(addon=NAME, value=given))
        self.session.dispatch(Begin(task=Task.ADDON))

    def follow(self, state: State) -> None:
        """Show how far the examination is."""
        if self.box.children:
            self.head.value = html.lead_line(
                say("What runs where, a converted model, and the proof that it agrees. The model stays as it is.")
            )
            extra = state.extras.get(NAME)
            self.result.value = self._refused or (_result(extra) if extra else html.NOTHING)

    @cached_property
    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="onnx-doctor-"))

    def _uploaded(self) -> str:
        """Write what was uploaded, a model and its weights, into a folder of its own; answer the model's path."""
        for item in self.upload.value:
            write_atomically(self._folder / Path(item["name"]).name, bytes(item["content"]))
        names = [Path(item["name"]).name for item in self.upload.value]
        models = [name for name in names if name.endswith(".onnx")] or names
        return str(self._folder / models[0]) if models else ""


def _result(extra: Extra) -> Markup:
    found, status = extra.value, extra.status
    severity = Severity.INFO if status.exit_code == Cancelled.exit_code else Severity.ERROR
    parts = [
        _checked(found.checked) if found.checked else "",
        _converted(found.conversion) if found.conversion else "",
        _tried(found.attempt) if found.attempt else "",
        html.failure(status.message, status.hint, severity) if status.message else "",
    ]
    return joined(parts)


def _checked(answer: Checked) -> Markup:
    headings, rows = operator_table(answer)
    parts = [
        html.paragraph(answer.verdict),
        _bar(answer),
        *map(html.finding, answer.findings),
        html.details(say("Every operator"), html.table(rows, headings)),
    ]
    return html.section(say("Check for {target}", target="DirectML"), joined(parts))


def _bar(answer: Checked) -> Markup:
    """Draw which share of the nodes runs where: each part as wide as its share, its name and count written below."""
    parts = [(f"{render(name)}: {count}", count, COLOURS[colour]) for name, count, colour in shares(answer)]
    filled = (tag("span", "", style=f"flex: {count}; background: {colour}") for _words, count, colour in parts)
    signs = (tag("span", tag("span", "■ ", style=f"color: {colour}"), words) for words, _count, colour in parts)
    bar = tag("div", *filled, style="display: flex; height: 12px; border-radius: 3px; overflow: hidden")
    legend = tag("div", *signs, style="display: flex; flex-wrap: wrap; gap: 0 16px")
    return tag("div", bar, legend, role="img", aria_label=", ".join(words for words, _count, _colour in parts))


def _converted(answer: Conversion) -> Markup:
    """Show the changes, and offer a result whose weights are in it and that is not too large; else name it."""
    path = Path(answer.output)
    whole = path.stat().st_size <= DOWNLOAD_BYTES and not path.with_name(f"{path.name}.data").exists()
    link = html.download(path.name, path.read_bytes()) if whole else str(path)
    table = html.table(rows_of_changes(answer), HEADINGS_OF_CHANGES)
    return html.section(say("Conversion"), table + html.paragraph(size_line(answer)) + tag("p", link))


def _tried(answer: Attempt) -> Markup:
    parts = [
        html.note(Severity.OK if answer.passed else Severity.ERROR, answer.verdict),
        *(html.note(Severity.INFO, note) for note in answer.notes),
        html.table(rows_of_runs(answer), HEADINGS_OF_RUNS),
        html.table(rows_of_agreement(answer), HEADINGS_OF_AGREEMENT),
    ]
    return html.section(say("Trial"), joined(parts))
