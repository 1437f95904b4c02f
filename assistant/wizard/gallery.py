"""The shipped machines as a table for a notebook: what each has, and which PyTorch it gets."""

from __future__ import annotations

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.i18n import render, say, use_language
from assistant.machines import label, load, shipped
from assistant.model.visible import tag
from assistant.plan import make_plans
from assistant.views import plan_title

_CELL = "text-align: left; vertical-align: top; padding: 4px 8px"


class Gallery:
    """The table, in the language in force; its caption is all that is printed if HTML cannot be shown."""

    def __repr__(self) -> str:
        recorded = sum(load(name).origin == "recorded" for name in shipped())
        return say(
            "{count} machines and the PyTorch that each of them gets: {recorded} recorded on a real system, the others "
            "composed from published output",
            count=len(shipped()),
            recorded=recorded,
        )

    def _repr_html_(self) -> str:
        """Return the table as HTML, by the machines' labels; its style is in each cell, as it has no style sheet."""
        titles = (say("Machine"), say("GPU"), say("What it gets"), say("Name"), say("Origin"))
        head = tag("tr", *(tag("th", title, scope="col", style=_CELL) for title in titles))
        rows = sorted(map(_machine_row, shipped()))
        body = (tag("tr", *(tag("td", cell, style=_CELL) for cell in row)) for row in rows)
        return str(tag("table", tag("caption", repr(self)), tag("thead", head), tag("tbody", *body)))


def _machine_row(name: str) -> tuple[str, ...]:
    """Return label, GPUs, plan, name and origin of a shipped machine; the plan is made without asking any index."""
    recording, catalog = load(name), load_catalog()
    machine = detect(ReplayHost(recording)).machine
    choice = make_plans(machine, catalog).choice
    gpus = ", ".join(dict.fromkeys(gpu.label for gpu in machine.gpus)) or say("no GPU")
    plan = render(plan_title(choice)) if choice else say("No PyTorch wheel fits.")
    origin = say("recorded") if recording.origin == "recorded" else say("composed")
    return render(label(name)), gpus, plan, name, origin


def draw_gallery(language: str | None = None) -> Gallery:
    """Return a table of every shipped machine with its plan; call it as the last line of a cell, which shows it.

    `language`, "en" or "zh_CN", by default the environment's, is that of the whole kernel from then on. A machine's
    name opens it in the wizard: `open_wizard("macos14-m1")`.
    """
    use_language(language)
    return Gallery()
