"""The choice: the machine, the plan in one sentence with its reasons, and what else there is."""

from __future__ import annotations

from packaging.version import Version

from assistant.detect import facts_to_set
from assistant.i18n import Message, _, as_typed, render, say, sentences
from assistant.install import Prepared
from assistant.machines import label, shipped
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, ProjectSummary
from assistant.model.record import replace
from assistant.model.report import Step
from assistant.model.shell import quote
from assistant.model.visible import Markup, joined, tag
from assistant.plan import card_name, known_gpus
from assistant.session.state import State
from assistant.views import machine_rows, plan_rows, plan_title, rejected_name
from assistant.wizard import html
from assistant.wizard.panels.base import failure


def machine_options() -> list[tuple[str, str]]:
    """List what can be looked at, with its key: this machine and every recorded one."""
    return [(say("This machine"), ""), *sorted((render(label(name)), name) for name in shipped())]


FACTS = "facts"  # the key of what a fold shows once it is opened: `draw_machine`


def draw_card(state: State) -> Markup:
    """Return what the machine is: each different GPU with its memory, and the rest; behind it the facts and sources.

    A GPU on which the chosen plan computes bears a tick.
    """
    if state.detection is None:
        return html.NOTHING
    machine, plan = state.detection.machine, state.plan
    most = max([*(gpu.vram_gb or 0 for gpu in machine.gpus), machine.memory_gb or 0, 1])
    cards = []
    for known in known_gpus(machine, plan.backend if plan else None):
        # As NVIDIA counts: Windows has a number of its own.
        driver = (machine.nvidia_driver if known.vendor is Vendor.NVIDIA else None) or known.gpu.driver
        through = plan.backend.title if plan and known.driven else ""
        cards.append(_draw_gpu(replace(known.gpu, driver=driver), known.vendor, known.name, through, most))
    nothing = tag("h3", html.icon("chip"), say("No GPU found")) + html.paragraph(
        say("PyTorch computes on the processor; large models are slow there.")
    )
    main = machine.memory_gb or 0
    memory = html.bar(main / most, say("Main memory"), f"{main:g} GB", "plain") if main else html.NOTHING
    python = machine.python and f"Python {machine.python}"
    rest = " · ".join(filter(None, (machine.os_version or machine.os, machine.arch, python)))
    body = [
        tag("p", say("This computer"), class_="ptsa-eyebrow"),
        *(cards or [nothing]),
        memory,
        tag("p", rest, class_="ptsa-lead"),
        html.later(say("All facts, and where each comes from"), FACTS),
    ]
    return tag("section", *body, class_="ptsa-card", aria_label=say("This computer"))


MAKERS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel", Vendor.APPLE: "Apple"}


def _draw_gpu(gpu: Gpu, vendor: Vendor, name: str, through: str, most: float) -> Markup:
    """Return a GPU's maker, name, memory as a bar of `most` GB, its driver, and by which backend PyTorch uses it.

    `through` is that backend's name, "" if the choice does not use the GPU. Memory and driver are left out if unknown.
    """
    if through:
        verdict = html.light("good", say("PyTorch uses it, through {backend}", backend=through))
    else:
        verdict = html.light("unknown", say("not used by this choice"))
    driver = say("Driver {version}", version=gpu.driver) if gpu.driver else ""
    return joined(
        [
            tag("p", MAKERS.get(vendor, say("Maker unknown")), class_=f"ptsa-maker ptsa-maker-{vendor.value}"),
            tag("h3", name),
            tag("p", verdict),
            html.bar(gpu.vram_gb / most, say("Graphics memory"), f"{gpu.vram_gb:g} GB") if gpu.vram_gb else "",
            tag("p", driver, class_="ptsa-lead") if driver else "",
        ]
    )


def draw_machine(state: State) -> Markup:
    """Return every known fact, its source, and which were set by hand; nothing before detection."""
    if state.detection is None:
        return html.NOTHING
    machine = state.detection.machine
    labels = {fact.name: fact.label for fact in facts_to_set(machine)}
    sources = html.table([(labels.get(item.fact, item.fact), item.source, item.text) for item in machine.evidence])
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


def plan_promise(plan: Plan) -> str:
    """Return a sentence on what a plan computes on; "" where it has no PyTorch."""
    if not plan.torch:
        return ""
    return {
        Backend.CUDA: say("It will compute on the GPU, through NVIDIA's CUDA."),
        Backend.ROCM: say("It will compute on the GPU, through AMD's ROCm."),
        Backend.XPU: say("It will compute on the GPU, through Intel's XPU."),
        Backend.MPS: say("It will compute on your Mac's GPU, through Metal (MPS)."),
        Backend.DIRECTML: say("It will compute on the GPU, through DirectML."),
        Backend.CPU: say("It will compute on the processor; large models are slow there."),
    }[plan.backend]


def download_words(state: State) -> str:
    """Return the size of the download, exact once the packages are resolved, else about; or that all is there."""
    preview, plan = state.preview, state.plan
    if preview and preview.ready:
        return say("It is installed here already.")
    if preview and preview.site and not preview.resolution.changes(preview.site.versions):
        return say("All of its packages are installed here already; they are checked again.")
    if preview and not preview.download:
        return say("Everything has been downloaded already.")
    if preview:
        return say("{size} to download.", size=format_megabytes(preview.download / 1e6))
    about = plan.download_mb if plan else None
    return say("About {size} to download.", size=format_megabytes(about)) if about else ""


def draw_space(state: State, plan: Plan) -> Markup:
    """Return what the plan takes of the home's disk as a bar of what is free; nothing where either is not known."""
    free = state.detection.machine.disk_free_gb if state.detection else None
    if not plan.disk_gb or not free or (state.preview and state.preview.ready) or state.choices.target:
        return html.NOTHING
    need = say("About {need:.1f} GB of disk needed", need=plan.disk_gb)
    kind = "good" if plan.disk_gb < free else "bad"
    return html.bar(plan.disk_gb / free, need, say("{free:.0f} GB free", free=free), kind)


def format_megabytes(megabytes: float) -> str:
    """Write an amount of data: in MB, from 1000 MB on in GB."""
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"  # noqa: PLR2004 - see above


def draw_ready_to_install(state: State) -> Markup:
    """Return the plan as a heading with its sentence, its space, what should be known first, and the other builds.

    To be known are a failed resolution, the project, the plan's warnings, and findings from a warning on. Without a
    plan it is that the machine is being looked at.
    """
    plan, found = state.plan, state.detection
    if plan is None or found is None:
        return html.heading(say("Looking at this machine …"), say("This takes a few seconds and changes nothing."))
    grave = {Severity.WARNING, Severity.ERROR}
    wrong = [finding for finding in state.findings if finding.severity in grave and finding.key != "foreign-pip"]
    project = state.planned.project if state.planned else None
    return joined(
        [
            html.heading(plan_headline(plan, found.machine)),
            tag("p", sentences((plan_promise(plan), download_words(state))), class_="ptsa-promise"),
            draw_space(state, plan),
            failure(state, Step.INSTALL),
            draw_project(project, state.choices.request.project) if project else "",
            *(html.note(Severity.WARNING, line) for line in plan.warnings),
            # Most fixes are for an environment that exists, and a new one needs none of them.
            *(
                html.note(one.severity, one.text, html.details(say("What helps"), html.remedies(one.remedies)))
                for one in wrong
            ),
            draw_builds(state),
        ]
    )


BUILD = "build"  # begins the key of a build among the cards


def draw_builds(state: State) -> Markup:
    """Return up to three builds side by side: the best, the chosen or the next, and the processor's; else nothing."""
    plans = state.planning.plans if state.planning else ()
    chosen = state.choices.plan
    places = sorted({0, chosen or min(1, len(plans) - 1), len(plans) - 1}) if len(plans) > 1 else []
    options = [
        html.Tile(
            key=f"{BUILD}:{place}",
            title=_build_word(plans[place], plans[0]),
            lead=" · ".join(_build_facts(plans[place], state.preview if place == chosen else None)),
            sign="ok" if place == 0 else "stale" if plans[place].backend is not Backend.CPU else "chip",
        )
        for place in places
    ]
    return html.tiles(say("Which build?"), options, f"{BUILD}:{chosen}")


def _build_word(plan: Plan, best: Plan) -> str:
    """Return in a word or two what tells a build from the best one."""
    if plan == best:
        return say("Recommended")
    if plan.backend is Backend.CPU:
        return say("Without the GPU")
    if plan.backend is not best.backend:
        return say("Through {backend}", backend=plan.backend.title)
    return say("Older release") if Version(plan.torch) < Version(best.torch) else say("Another build")


def _build_facts(plan: Plan, preview: Prepared | None) -> list[str]:
    """Return the release and the size of a build, exact if it is the one whose packages are resolved."""
    size = preview.download / 1e6 if preview else plan.download_mb
    return [f"PyTorch {plan.torch}", *([format_megabytes(size)] if size else [])]


def draw_why(planning: Planning, plan: Plan) -> Markup:
    """Return the reasons for a plan, what it installs and the alternatives."""
    return joined(
        [
            html.bullets(plan.reasons, "next"),
            html.section(say("What will be installed"), html.table(plan_rows(plan, hide=("download", "disk")))),
            html.section(say("The alternatives"), _draw_others(planning, plan)),
        ]
    )


def _draw_others(planning: Planning, chosen: Plan) -> Markup:
    """Return the other plans with the first reason of each, then what was rejected, why, and what would help."""
    others = [(plan_title(plan), next(iter(plan.reasons), "")) for plan in planning.plans if plan != chosen]
    against = [(rejected_name(row), row.why, row.would_help) for row in planning.rejected]
    possible = html.table(others, (say("Also possible"), say("Why")))
    rejected = html.table(against, (say("Not chosen"), say("Why not"), say("What would help")))
    return joined([possible if others else "", rejected if against else ""])


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
