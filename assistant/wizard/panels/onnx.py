"""An ONNX model in the wizard: given as a file, then checked, converted and tried, each in a process of its own."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import ipywidgets as widgets

from assistant.host.files import write_whole
from assistant.host.process import CancelToken
from assistant.i18n import _, language, say
from assistant.model.errors import AssistantError, WorkFailed
from assistant.model.finding import Severity
from assistant.model.record import replace
from assistant.model.visible import visible
from assistant.onnx import apart
from assistant.onnx.answers import (
    CHECK_SECONDS,
    CONVERT_SECONDS,
    HEADINGS_OF_AGREEMENT,
    HEADINGS_OF_CHANGES,
    HEADINGS_OF_RUNS,
    TRY_SECONDS,
    Attempt,
    Checked,
    Conversion,
    operator_table,
    rows_of_agreement,
    rows_of_changes,
    rows_of_runs,
)
from assistant.onnx.worker import Request
from assistant.session.interpreters import onnx_python
from assistant.wizard import html
from assistant.wizard.parts import made, show

DOWNLOAD_BYTES = 30 * 10**6  # a larger result is named, not sent through the browser


class OnnxPage(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """A place to give a model, one button, and what came out; `run` is what the button does."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self.add_class("ptsa-wizard")
        self._folder = folder or Path(tempfile.mkdtemp(prefix="onnx-doctor-"))
        self._cancel = CancelToken()
        self.head, self.result, self.status = made(widgets.HTML), made(widgets.HTML), made(widgets.HTML)
        lead = say(
            "Which nodes DirectML runs, a converted model, and the proof that it agrees. The model stays as it is."
        )
        self.head.value = html.heading(say("An ONNX model"), lead)
        self.upload = made(widgets.FileUpload, multiple=True, description=say("Upload"))
        self.path = made(
            widgets.Text, description=say("Or a file here"), placeholder="model.onnx", continuous_update=False
        )
        self.go = made(widgets.Button, description=say("Check, convert and try"), button_style="primary")
        self.stop = made(widgets.Button, description=say("Cancel"))
        self.go.on_click(lambda _button: self.begin())
        self.stop.on_click(lambda _button: self._cancel.set())
        show(self.stop, visible=False)
        buttons = made(widgets.HBox, children=[self.go, self.stop])
        self.children = (self.head, self.upload, self.path, buttons, self.status, self.result)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "OnnxPage()"

    def begin(self) -> threading.Thread:
        """Start the work on a thread of its own and answer it."""
        self._cancel = CancelToken()
        self.go.disabled = True
        show(self.stop, visible=True)
        self.result.value = ""
        work = threading.Thread(target=self._work, daemon=True, name="onnx-doctor")
        work.start()
        return work

    def _work(self) -> None:
        try:
            for part in self.run(self._given()):
                self.result.value += part
        except AssistantError as error:
            self.result.value += html.failure(error.message, error.hint)
        finally:
            self.status.value = ""
            self.go.disabled = False
            show(self.stop, visible=False)

    def run(self, model: Path) -> Iterator[str]:
        """Check, convert and try a model; give each part's HTML when it is there."""
        file, output = str(model), self._folder / f"{model.stem}.dml.onnx"
        checking = Request(work="check", model=file, here=str(Path.cwd()), picture=True, language=language())
        self._tell(say("Checking"))
        checked, picture = apart.check(checking, apart.limits(CHECK_SECONDS), cancel=self._cancel)
        yield _checked(checked) + html.details(say("Picture"), f'<div class="ptsa-plot">{visible(picture)}</div>')
        self._tell(say("Converting"))
        converting = replace(checking, work="convert", output=str(output), force=True)
        yield _converted(apart.convert(converting, apart.limits(CONVERT_SECONDS), cancel=self._cancel))
        self._tell(say("Trying"))
        trying = replace(checking, work="try", model=str(output), reference=file, python=onnx_python())
        yield _tried(apart.try_model(trying, apart.limits(TRY_SECONDS), cancel=self._cancel))

    def _tell(self, text: str) -> None:
        self.status.value = f'<p class="ptsa-lead">{html.esc(text)}…</p>'

    def _given(self) -> Path:
        """Write what was uploaded into a folder of its own, or take the file that was named."""
        for item in self.upload.value:
            write_whole(self._folder / Path(item["name"]).name, bytes(item["content"]))
        names = [Path(item["name"]).name for item in self.upload.value]
        models = [name for name in names if name.endswith(".onnx")] or names
        if models:
            return self._folder / models[0]
        if not self.path.value.strip():
            raise WorkFailed(_("No model was given."), hint=_("Upload one, with its weights, or name a file."))
        return Path(self.path.value.strip()).expanduser()


def _checked(answer: Checked) -> str:
    headings, rows = operator_table(answer)
    table = html.table(rows, headings)
    findings = "".join(map(html.finding, answer.findings))
    return html.section(
        say("Check"), html.paragraph(answer.verdict) + findings + html.details(say("Every operator"), table)
    )


def _converted(answer: Conversion) -> str:
    table = html.table(rows_of_changes(answer), HEADINGS_OF_CHANGES)
    return html.section(say("Conversion"), table + _download(Path(answer.output)))


def _tried(answer: Attempt) -> str:
    severity = Severity.OK if answer.passed else Severity.ERROR
    body = (
        html.note(severity, answer.verdict)
        + "".join(html.note(Severity.INFO, note) for note in answer.notes)
        + html.table(rows_of_runs(answer), HEADINGS_OF_RUNS)
        + html.table(rows_of_agreement(answer), HEADINGS_OF_AGREEMENT)
    )
    return html.section(say("Trial"), body)


def _download(path: Path) -> str:
    """Offer a result whose weights are in it and that is not too large; else say where it lies."""
    whole = path.stat().st_size <= DOWNLOAD_BYTES and not path.with_name(f"{path.name}.data").exists()
    if not whole:
        return f"<p>{html.esc(path)}</p>"
    return f"<p>{html.download(path.name, path.read_bytes())}</p>"
