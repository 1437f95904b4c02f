"""Opening a first notebook: JupyterLab's extension does it, and where there is none, a file is written."""

from __future__ import annotations

from assistant.export import first_notebook, write_first_notebook
from assistant.host.folders import here
from assistant.i18n import render, say, sentences
from assistant.model.errors import AssistantError
from assistant.session.state import State
from assistant.wizard import html
from assistant.wizard.footer import OPEN_NOTEBOOK
from assistant.wizard.shared_widgets import Foot

NOTEBOOK = "first-steps.ipynb"


def send_notebook(state: State, foot: Foot, view: object) -> None:
    """Let JupyterLab open a first notebook on the kernel of the environment that was made, and run it."""
    made, plan = state.environment, state.plan
    if made and plan:
        detail = {"name": NOTEBOOK, "kernel": made.kernel, "notebook": first_notebook(made, plan)}
        foot.send({"event": OPEN_NOTEBOOK, "detail": detail, "view": view})


def put_notebook(state: State, foot: Foot) -> None:
    """Write the first notebook beside this one, where nobody can open it, and say where it is."""
    made, plan = state.environment, state.plan
    if made is None or plan is None:
        return
    try:
        path, name = write_first_notebook(here(), made, plan), made.launcher_name
        note = say("The notebook {path} is ready; open it and choose the kernel “{name}”.", path=path, name=name)
    except AssistantError as error:
        note = render(sentences((error.message, error.hint)))
    foot.note = html.inline(note)
