"""The choice: the machine, the plan in one sentence with its reasons, and what else there is."""

from __future__ import annotations

from assistant.i18n import Message, Text, _, as_typed, render, say, sentences
from assistant.machines import label, shipped
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, ProjectSummary
from assistant.model.report import Step
from assistant.model.shell import quote
from assistant.model.visible import Markup, joined, tag
from assistant.plan import card_name
from assistant.session.state import State
from assistant.views import machine_rows, plan_rows, plan_title, rejected_name
from assistant.wizard import html
from assistant.wizard.panels.base import failure


def machine_options() -> list[tuple[str, str]]:
    """List what can be looked at, with its key: this machine and every recorded one."""
    return [(say("This machine"), ""), *sorted((render(label(name)), name) for name in shipped())]


def draw_machine_line(machine: Machine) -> Markup:
    """Return in one line the different GPUs, or that none was found, and the system and the memory, if known."""
    cards = [gpu.label + (f" ({gpu.vram_gb:g} GB)" if gpu.vram_gb else "") for gpu in dict.fromkeys(machine.gpus)]
    memory = say("{size:g} GB of RAM", size=machine.memory_gb) if machine.memory_gb else ""
    words = [machine.os_version or machine.os or "", memory]
    named = tag("strong", " + ".join(cards) or say("No GPU found"))
    return tag("p", named, *(f" · {word}" for word in words if word), class_="ptsa-machine")


def draw_machine(state: State) -> Markup:
    """Return every known fact, its source, and which were set by hand; nothing before detection."""
    if state.detection is None:
        return html.NOTHING
    machine = state.detection.machine
    sources = html.table((item.fact, item.source, item.text) for item in machine.evidence)
    nothing = say("No GPU was found. PyTorch runs on the CPU, too; large models are slow there.")
    overrides = state.choices.overrides.items()
    by_hand = (say("{fact} = {value}: set by you.", fact=fact, value=value) for fact, value in overrides)
    return joined(
        [
            "" if machine.gpus else html.note(Severity.INFO, nothing),
            html.table(machine_rows(machine)),
            *(html.note(Severity.INFO, line) for line in by_hand),
            html.details(say("Where each fact comes from"), sources) if machine.evidence else "",
        ]
    )


def plan_headline(plan: Plan, machine: Machine) -> str:
    """Return which PyTorch is for which card, or for the processor, in a few words."""
    card = card_name(machine, plan.backend)
    if not plan.torch:
        return say("What the project needs, without PyTorch")
    if not card:
        return say("PyTorch {torch} for your processor", torch=plan.torch)
    return say("PyTorch {torch} for your {card}", torch=plan.torch, card=card)


def plan_promise(state: State, plan: Plan) -> Text:
    """Return sentences on what a plan computes on, and on its download and disk space, or that it is installed."""
    if not plan.torch:
        return sentences(_space_texts(state, plan))
    through = {
        Backend.CUDA: say("It will compute on the GPU, through NVIDIA's CUDA."),
        Backend.ROCM: say("It will compute on the GPU, through AMD's ROCm."),
        Backend.XPU: say("It will compute on the GPU, through Intel's XPU."),
        Backend.MPS: say("It will compute on your Mac's GPU, through Metal (MPS)."),
        Backend.DIRECTML: say("It will compute on the GPU, through DirectML."),
        Backend.CPU: say("It will compute on the processor; large models are slow there."),
    }[plan.backend]
    return sentences([through, *_space_texts(state, plan)])


def _space_texts(state: State, plan: Plan) -> list[Text]:
    """Return what has to be downloaded, exactly once the packages are resolved, and the disk; or that all is there."""
    if state.preview and state.preview.ready:
        return [say("It is installed here already.")]
    if state.preview and state.preview.site and not state.preview.resolution.changes(state.preview.site.versions):
        return [say("All of its packages are installed here already; they are checked again.")]
    free = state.detection.machine.disk_free_gb if state.detection else None
    megabytes = state.preview.download / 1e6 if state.preview else plan.download_mb
    lines: list[Text] = []
    if megabytes == 0:
        lines.append(say("Everything has been downloaded already."))
    elif megabytes:
        lines.append(say("{size} to download.", size=format_megabytes(megabytes)))
    if plan.disk_gb and free:
        lines.append(say("About {need:.1f} GB of disk needed, {free:.0f} GB free.", need=plan.disk_gb, free=free))
    return lines


def format_megabytes(megabytes: float) -> str:
    """Write an amount of data: in MB, from 1000 MB on in GB."""
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"  # noqa: PLR2004 - see above


def draw_ready_to_install(state: State) -> Markup:
    """Return the machine, the plan as a heading with its sentence, and what should be known before installing.

    That is a failed resolution, the project, the plan's warnings, and findings from a warning on. Without a plan it is
    that the machine is being looked at.
    """
    plan, found = state.plan, state.detection
    if plan is None or found is None:
        return html.heading(say("Looking at this machine …"), say("This takes a few seconds and changes nothing."))
    grave = {Severity.WARNING, Severity.ERROR}
    wrong = [finding for finding in state.findings if finding.severity in grave and finding.key != "foreign-pip"]
    project = state.planned.project if state.planned else None
    return joined(
        [
            draw_machine_line(found.machine),
            html.heading(plan_headline(plan, found.machine)),
            tag("p", plan_promise(state, plan), class_="ptsa-promise"),
            failure(state, Step.INSTALL),
            draw_project(project, state.choices.request.project) if project else "",
            *(html.note(Severity.WARNING, line) for line in plan.warnings),
            # Most fixes are for an environment that exists, and a new one needs none of them.
            *(
                html.note(one.severity, one.text, html.details(say("What helps"), html.remedies(one.remedies)))
                for one in wrong
            ),
        ]
    )


def draw_why(state: State, planning: Planning, plan: Plan) -> Markup:
    """Return the reasons for a plan, what it installs, the alternatives and the machine.

    Those are the other plans, with the first reason of each, then what was rejected, why, and what would help.
    """
    others = [(plan_title(one), next(iter(one.reasons), "")) for one in planning.plans if one != plan]
    against = [(rejected_name(row), row.why, row.would_help) for row in planning.rejected]
    possible = html.table(others, (say("Also possible"), say("Why"))) if others else ""
    rejected = html.table(against, (say("Not chosen"), say("Why not"), say("What would help"))) if against else ""
    return joined(
        [
            html.bullets(plan.reasons, "next"),
            html.section(say("What will be installed"), html.table(plan_rows(plan))),
            html.section(say("The alternatives"), joined([possible, rejected])),
            html.section(say("The machine"), draw_machine(state)),
        ]
    )


def draw_project(project: ProjectSummary, name: str) -> Markup:
    """Return what was read of the project called `name`, what was left out, and the command whose options add it."""
    lines = project.lines
    options = (str(line.params["option"]) for line in lines if isinstance(line, Message) and "option" in line.params)
    command = f"assistant setup -r {quote(name)}"
    more = _("To include more, run `{command}` in the terminal with {options}.", command=command)
    named = tuple(dict.fromkeys(options))
    hint = html.paragraph(as_typed(more.format(options=named))) if named else html.NOTHING
    folded = html.details(say("What was included, and what was left out"), joined([html.bullets(lines), hint]))
    return html.note(Severity.INFO, project.text, folded if lines else html.NOTHING)
