"""The planner: asks every backend, puts the answers in order, and makes a plan of each candidate, best first.

It adds what another Python would open, or a nightly build, and explains the whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from assistant.catalog import AMD_INDEX, JETSON_INDEX, Catalog, carried_by_torch_index, number
from assistant.catalog.catalog import find_bundle, is_recipe, load_recipe_reader
from assistant.catalog.identity import Rate, find_rate
from assistant.catalog.tables import Row
from assistant.i18n import Message, Text, _, sentences
from assistant.model.errors import BadInput, NothingFits
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request, name_of, plain_requirement
from assistant.model.record import replace
from assistant.plan import cuda, other_backends, rocm
from assistant.plan.candidates import Candidate, Context, read_pins, reject, sentence, why_not_newest
from assistant.plan.requirements import download_mb, onnxruntime_notes, plan_requirements
from assistant.plan.target import (
    USUAL_PYTHON,
    Card,
    Refusal,
    Target,
    find_cards,
    find_driver,
    find_target,
    python_tag,
    short_name,
)
from assistant.views import plan_title, rejected_name

NIGHTLY = "nightly/"
DEFAULT_BUILD = "pypi"  # the catalogue's tag for what `pip install torch` gets
_ANYTHING = Request()
_WHATEVER_PYTHON = {"libc-musl", "python-32bit", "pins-exclude-release", "python-not-cpython"}
_PARTS = 2  # the dots of "3.12.4", which names its patch release
_LAST_PATCH = 99  # chosen: above any patch release, of which uv fetches the newest
_TORCH = re.compile(r"torch(?![\w.-])", re.IGNORECASE)
M = TypeVar("M", bound=Machine)


class PlanInputs(NamedTuple):
    """What plans are made from."""

    machine: Machine
    catalog: Catalog
    request: Request = Request()


def brings_cuda(plan: Plan) -> bool:
    """Return whether a plan for the CPU takes PyPI's default build, which on Linux brings CUDA along."""
    return plan.backend is Backend.CPU and plan.variant == DEFAULT_BUILD


def make_plans(machine: Machine, catalog: Catalog, request: Request = _ANYTHING) -> Planning:
    """Return what to install on a machine for a request; if it names a recipe, as the recipes' add-on plans it.

    Raises as `plans_for` does, and `WorkFailed` for a recipe whose add-on is missing.
    """
    if is_recipe(request.bundle):
        planning: Planning = load_recipe_reader().make_plans(machine, catalog, request)
        return planning
    return plans_for(machine, catalog, request)


def plans_for(machine: Machine, catalog: Catalog, request: Request = _ANYTHING) -> Planning:
    """Return what to install on a machine: plans best first with the CPU last, and why not the others.

    They use the request's Python, else the machine's; plans with `USUAL_PYTHON` follow if it gives more. If the user
    asks for packages or a range of Pythons, and the machine's Python gives no plan, others are tried. Nightly builds go
    first if asked for. `choice` is None when nothing fits, with the reason in `rejected`. Raises `BadInput` for a pin
    or version that cannot be read, for a bundle that does not exist, and as `with_nightly` does.
    """
    own = request.python or machine.python
    if own and not _is_allowed(own, request.pythons):
        if request.python:
            return Planning(rejected=(_reject_python(own, request),))
        planning = Planning()
    else:
        planning = _plan_for_python(machine, catalog, request)
    # Where no torch has a wheel for the machine's Python, that is reported as the machine's own problem.
    asked = request.pins or request.constraints or request.overrides or request.pythons
    hopeless = any(rejection.key in _WHATEVER_PYTHON for rejection in planning.rejected)
    if planning.choice is None and asked and not hopeless:
        planning = _try_other_pythons(planning, machine, catalog, request)
    return with_nightly(planning, request, catalog) if request.nightly else planning


def _plan_for_python(machine: Machine, catalog: Catalog, request: Request) -> Planning:
    """Return the planning with the request's Python, else the machine's, else the usual one; no other is tried.

    Plans with `USUAL_PYTHON` are added if that gives more and the request says nothing of Pythons. A system, Python or
    pins for which nothing is published give a planning of one rejection. The first plan's reasons say why its backend
    goes before the others; a remark on the catalogue is among its warnings. Raises `BadInput`.
    """
    asked = request.backend
    target = find_target(machine, request, catalog)
    if isinstance(target, Refusal):
        return Planning(rejected=(reject(asked or Backend.CPU, *target),))
    try:
        bounds = (*request.constraints, *request.overrides)
        on_torch = (line for line in bounds if _TORCH.match(line.lstrip()))  # which a plan always has
        pins = read_pins((*request.pins, *on_torch), catalog, target.markers)
        cards, driver = find_cards(machine), find_driver(machine, catalog)
        context = Context(machine, catalog, target, pins, cards, driver, request)
        candidates, rejected = find_candidates(context)
        if not candidates:
            return Planning(rejected=tuple(rejected) or ((reject_asked(asked),) if asked else ()))
        own = [_make_plan(found, context, rejected if found is candidates[0] else ()) for found in candidates]
        own[0] = replace(own[0], reasons=(*own[0].reasons, *explain_order(candidates)))
        if catalog.remark:
            own[0] = replace(own[0], warnings=(*own[0].warnings, catalog.remark))
        elsewhere = () if request.python or request.pythons else _plans_for_usual_python(candidates[0], context)
    except NothingFits as error:
        return Planning(rejected=(reject(asked or Backend.CPU, "pins-exclude-release", error.message, error.hint),))
    if len(own) > 1 and own[-1].backend is Backend.CPU:  # a CPU plan goes last, and one is enough
        elsewhere = (*(plan for plan in elsewhere if plan.backend is not Backend.CPU), own.pop())
    return Planning(choice=own[0], plans=(*own, *elsewhere), rejected=tuple(rejected))


def _try_other_pythons(planning: Planning, machine: Machine, catalog: Catalog, request: Request) -> Planning:
    """Return the planning of the first of `other_pythons` that gives a plan, with the other Python among its reasons.

    Its rejections come after those of `planning`, or, without any, of the first Python that failed.
    If none does, return `planning`, or if it has no rejections, a planning with those of the first Python that has
    any; without any at all, a planning that rejects the machine's own Python.
    """
    own = python_tag(machine.python or USUAL_PYTHON)[0]
    for python in other_pythons(machine, request, catalog):
        found = _plan_for_python(machine, catalog, replace(request, python=python))
        if found.choice:
            new = (rejection for rejection in found.rejected if rejection not in planning.rejected)
            return replace(with_python_reason(found, own, request), rejected=(*planning.rejected, *new))
        planning = planning if planning.rejected else found
    return planning if planning.rejected else Planning(rejected=(_reject_python(own, request),))


def _plans_for_usual_python(own: Candidate, context: Context) -> tuple[Plan, ...]:
    """Return the first and the last plan with `USUAL_PYTHON` if its first is better than `own`, the best so far.

    Better is a backend that sorts first, else a build that an index was seen to hold, else a newer torch. Else ().
    """
    usual = USUAL_PYTHON.replace(".", "")
    if context.target.tag == usual or usual not in context.catalog.pythons(context.target.platform):
        return ()
    other = context._replace(target=context.target._replace(python=USUAL_PYTHON, tag=usual, warnings=()))
    found, rejected = find_candidates(other)
    if not found:
        return ()
    confirmed = [candidate.wheel.confirmed for candidate in (own, found[0]) if candidate.wheel]
    if found[0].backend is not own.backend:
        better = sort_candidates([own, found[0]])[0] is found[0]
    elif confirmed in ([True, False], [False, True]):
        better = confirmed[1]
    else:
        better = number(found[0].version) > number(own.version)
    if not better:
        return ()
    plans = [_make_plan(candidate, other, rejected if candidate is found[0] else ()) for candidate in found]
    return (plans[0], plans[-1]) if len(plans) > 1 else tuple(plans)


def _make_plan(candidate: Candidate, context: Context, rejected: Collection[Rejection]) -> Plan:
    """Return the plan of a candidate; raise `NothingFits` if a pinned companion does not go with its torch.

    If it is for the CPU, what `rejected` says becomes warnings. Why it is not of the newest torch is among its reasons
    unless a rejection of the same backend says so. Warnings of the target and about ONNX Runtime are added, and the
    variables of `_settings`, each with its reason.
    """
    request, pins = context.request, context.pins
    said = any(rejection.backend is candidate.backend for rejection in rejected)
    newer = None if said else why_not_newest(candidate, context)
    lines, lacking = plan_requirements(candidate, context)
    warnings = [*candidate.warnings, *context.target.warnings, *lacking]
    if candidate.backend is Backend.CPU:
        warnings += [sentences((each.why, each.would_help), each.key) for each in rejected]
        if not context.cards and context.driver.text and not context.driver.obstacle:
            key = "container-without-gpu" if context.machine.container else "nvidia-driver-without-gpu"
            warnings.append(sentence(key))
    warnings += onnxruntime_notes(candidate, context, lines)
    settings = _settings(candidate, context)
    explained = (_(row.text, f"setting-{row.name}", setting=f"{row.name}={row.value}") for row in settings)
    # In WSL, PyPI's torch would draw in CUDA, which DirectML has no use for.
    bare = candidate.backend is Backend.DIRECTML and context.target.os == "linux"
    named = {canonicalize_name(pin.name) for pin in (*pins.family, *pins.others)}
    named |= {name_of(line) for line in find_bundle(request.bundle).requirements}
    return Plan(
        backend=candidate.backend,
        variant=candidate.variant,
        torch=candidate.version,
        python=context.target.python,
        index_url=candidate.index_url or context.catalog.index_url("cpu" if bare else candidate.variant),
        requirements=lines,
        env={row.name: row.value for row in settings} | candidate.env,
        download_mb=download_mb(candidate, context),
        reasons=(*candidate.reasons, *filter(None, (newer,)), *explained),
        warnings=tuple(warnings),
        asked=tuple(name for name in dict.fromkeys(map(name_of, lines)) if name in named),
        constraints=request.constraints,
        overrides=request.overrides,
        indexes=request.indexes,
        links=request.links,
        name=request.name,
    )


def _settings(candidate: Candidate, context: Context) -> list[Row]:
    """List the variables of the table that make a candidate's build faster or more able, those set here left out."""
    targets = {card.gfx or "" for card in candidate.cards}
    return [
        row
        for row in context.catalog.rows("settings.settings")
        if row.backend == candidate.backend.value
        if row.name not in context.machine.env
        if number(candidate.version) >= number(row.torch)
        if not row.targets or all(target.startswith(tuple(row.targets)) for target in targets)
    ]


def _is_allowed(python: str, pythons: str) -> bool:
    """Return whether a specifier (`pythons`) such as ">=3.10,<3.13" allows a Python, or some patch release of "3.12".

    "" allows all. Raises `BadInput` for a specifier or a Python version that cannot be read.
    """
    try:
        specifier = SpecifierSet(pythons)
    except InvalidSpecifier as error:
        raise BadInput(
            _('"{pythons}" is not a range of Python versions.', pythons=pythons),
            hint=_("Write it like >=3.10,<3.13."),
        ) from error
    if not pythons:
        return True
    numbers = number(python_tag(python)[0] if python.count(".") < _PARTS else python)
    patches = numbers[2:3] or (0, _LAST_PATCH)
    return any(specifier.contains(f"{numbers[0]}.{numbers[1]}.{patch}", prereleases=True) for patch in patches)


def other_pythons(machine: Machine, request: Request, catalog: Catalog) -> Iterator[str]:
    """Yield the allowed Pythons to try instead of the machine's: the usual one, then the nearest to it by minor.

    Of two that are equally near, the older comes first, as packages follow a new Python late. Free-threaded ones are
    left out. Yields none if the request names its Python: that is the user's choice, or the environment's.
    """
    if request.python:
        return
    anywhere = find_target(replace(machine, python=None, python_implementation=None), request, catalog)
    if not isinstance(anywhere, Target):
        return
    own = python_tag(machine.python or USUAL_PYTHON)[0]
    usual = number(USUAL_PYTHON)[1]
    tags = sorted(
        (tag for tag in catalog.pythons(anywhere.platform) if tag.isdigit()),
        key=lambda tag: (abs(int(tag[1:]) - usual), int(tag[1:])),
    )
    for python in (f"{tag[0]}.{tag[1:]}" for tag in tags):
        if python != own and _is_allowed(python, request.pythons):
            yield python


def _reject_python(python: str, request: Request) -> Rejection:
    """Return the rejection of a Python that the request's `pythons` exclude.

    If the request itself names no Python, the rejection says that no Python in the range of `pythons` has a build here.
    """
    why = _("What you ask for needs Python {pythons}, and PyTorch has no build for that on this machine.")
    if request.python:
        why = _("What you ask for needs Python {pythons}, not {python}.")
    hint = _("Choose no Python version, or one that fits.", option="--python") if request.python else ""
    reason = why.format(pythons=request.pythons, python=python)
    return reject(request.backend or Backend.CPU, "python-outside-project", reason, hint)


def with_python_reason(planning: Planning, own: str, request: Request) -> Planning:
    """Return the planning with a first reason in each plan: why it has another Python than `own`.

    `choice` becomes the first plan.
    """
    key = "python-installs" if _is_allowed(own, request.pythons) else "python-allowed"
    values = {"pythons": request.pythons, "own": own}
    plans = tuple(
        replace(plan, reasons=(sentence(key, python=plan.python, **values), *plan.reasons)) for plan in planning.plans
    )
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def with_nightly(planning: Planning, request: Request, catalog: Catalog) -> Planning:
    """Return the planning with the nightly build of its best plan first, or with the rejection that says why not.

    The nightly build comes without torchvision and the like, and with a warning that says so. Returns the planning
    unchanged without a plan, or if the best is nightly already. Raises `BadInput` if the pins name torch or a companion
    on its index: a nightly has no version that could be pinned.
    """
    pins = filter(None, map(plain_requirement, request.pins))
    if any(carried_by_torch_index(pin.name.lower()) for pin in pins):
        message = _("A pin on torch and nightly builds contradict each other.")
        raise BadInput(message, hint=_("Leave one of the two out."))
    plan = planning.choice
    if plan is None or plan.variant.startswith(NIGHTLY):
        return planning
    if why := _why_no_nightly(plan, catalog):
        help_ = _("Use the release: it works on this machine.")
        return replace(
            planning,
            rejected=(reject(plan.backend, "no-nightly", why, help_, NIGHTLY + plan.variant), *planning.rejected),
        )
    # Nightly builds for macOS, MPS included, lie in the CPU's index: https://pytorch.org/get-started/locally/
    variant = NIGHTLY + ("cpu" if plan.variant == "pypi" else plan.variant)
    major, minor = number(plan.torch)[:2]
    version = f"{major}.{minor + 1}.0.dev0"
    family = {line: name_of(line) for line in plan.requirements if carried_by_torch_index(name_of(line))}
    left_out = ", ".join(name for name in family.values() if name != "torch")  # built for the torch of its own night
    warnings = [sentence("nightly-untested")]
    warnings += [sentence("nightly-without-companions", packages=left_out)] if left_out else []
    nightly = replace(
        plan,
        variant=variant,
        torch=version,
        index_url=catalog.index_url(variant),
        requirements=(f"torch>={version}", *(line for line in plan.requirements if line not in family)),
        reasons=(sentence("nightly-asked-for", version=plan.torch), *plan.reasons),
        warnings=(*warnings, *plan.warnings),
    )
    return replace(planning, choice=nightly, plans=(nightly, *planning.plans))


def _why_no_nightly(plan: Plan, catalog: Catalog) -> Message | None:
    """Return why there is no nightly build of a plan; None if there is one."""
    if plan.variant in {AMD_INDEX, JETSON_INDEX} or plan.backend is Backend.DIRECTML:
        return _("Its packages are not built each night.")
    if plan.torch != catalog.newest_torch:
        values = {"version": plan.torch, "newest": catalog.newest_torch}
        return _("This machine needs torch {version}; nightly builds continue only torch {newest}.", **values)
    return None


def explain(planning: Planning, machine: Machine) -> Iterator[Message]:
    """Yield the lines of an explanation: GPUs seen, each plan with reasons and warnings, and why not the rest."""
    for card in find_cards(machine):
        code = card.gfx or ".".join(map(str, card.capability)) or _("unknown code target")
        yield _("Seen: {name} ({code}).", name=card.name, code=code)
    if not machine.gpus:
        yield _("Seen: no GPU.")
    for place, plan in enumerate(planning.plans):
        yield (_("Chosen: {plan}.") if place == 0 else _("Also possible: {plan}.")).format(plan=plan_title(plan))
        yield from (Message("  + {reason}").format(reason=reason) for reason in plan.reasons)
        yield from (Message("  ! {warning}").format(warning=warning) for warning in plan.warnings)
    for rejection in planning.rejected:
        yield _("Not {name}: {why}", name=rejected_name(rejection), why=rejection.why)
        if rejection.would_help:
            yield Message("  > {help}").format(help=rejection.would_help)


def nothing_fits(planning: Planning) -> NothingFits:
    """Return the error for a planning without a choice: its first reason, and what would help."""
    first = next(iter(planning.rejected), None)
    if first is None:
        text = _("No PyTorch wheel fits this machine.")
        return NothingFits(text, hint=_("Describe it with `assistant plan --machine`."))
    return NothingFits(first.why, hint=first.would_help)


def without_unused_facts(machine: M) -> M:
    """Return a machine without the facts that no plan depends on; machines that become equal get the same plans.

    Of a hundred PCs that were bought together one has to be planned. A test ensures it.
    """
    return replace(machine, memory_gb=None, disk_free_gb=None, packages={}, evidence=())


_BACKENDS = (cuda.offers, rocm.offers, other_backends.xpu, other_backends.mps, other_backends.directml)
_ORDER = {backend: place for place, backend in enumerate(Backend)}
_UNKNOWN = -99  # below the step of every card: what nobody knows goes before nothing that is known


def find_candidates(context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates of every backend, or of the one asked for, best first, and the rejections.

    Those for GPUs no faster than the processor become rejections. DirectML on an integrated GPU is dropped if the best
    one has current torch on a discrete GPU, or on Apple's. The CPU is added unless another backend was asked for and
    has no candidate.
    """
    asked = context.request.backend
    backends = _BACKENDS if asked is not Backend.CPU else ()
    offers = [offer for ask in backends for offer in ask(context) if asked in (None, offer.backend)]
    if asked in (None, Backend.CPU) or any(isinstance(offer, Candidate) for offer in offers):
        offers += other_backends.cpu(context)
    rejected = [offer for offer in offers if isinstance(offer, Rejection)]
    found, slow = _split_off_slow([offer for offer in offers if isinstance(offer, Candidate)], context)
    found = sort_candidates(found)
    if found and found[0].rank == 0 and not found[0].integrated:
        found = [
            candidate for candidate in found if not (candidate.backend is Backend.DIRECTML and candidate.integrated)
        ]
    return found, [*rejected, *slow]


def _split_off_slow(found: list[Candidate], context: Context) -> tuple[list[Candidate], list[Rejection]]:
    """Return the candidates without those of GPUs no faster than the processor, and a rejection per backend of these.

    All are candidates if the user asked for a backend of the slow ones, or if nothing else is left.
    """
    slow = {row.gfx: row.text for row in context.catalog.rows("rocm.caveats") if row.slow}
    aside = [candidate for candidate in found if candidate.cards and all(card.gfx in slow for card in candidate.cards)]
    if aside in ([], found) or any(candidate.backend is context.request.backend for candidate in aside):
        return found, []
    rejected = []
    for candidate in {candidate.backend: candidate for candidate in aside}.values():
        text = next(slow[card.gfx] for card in candidate.cards if card.gfx)
        why = _(text, name=candidate.cards[0].name)
        option = f"--backend {candidate.backend.value}"
        help_ = _("Choose {backend} to use it all the same.", backend=candidate.backend.title, option=option)
        rejected.append(reject(candidate.backend, "gpu-no-faster", why, help_))
    return [candidate for candidate in found if candidate not in aside], rejected


def reject_asked(asked: Backend) -> Rejection:
    """Return the rejection of a backend that was asked for and gave neither a candidate nor a rejection."""
    reasons = {
        Backend.MPS: _("MPS exists on macOS only."),
        Backend.DIRECTML: _("DirectML needs Windows or WSL, and a GPU with DirectX 12."),
    }
    why = reasons.get(asked, _("No GPU on this machine works with {backend}.", backend=asked.title))
    return reject(asked, "backend-not-here", why, _("Leave the backend open to get the best one for this machine."))


class _SortKey(NamedTuple):
    """What backends are sorted by; smaller goes first, and the first field that differs decides."""

    rank: int
    step: int
    doubtful: bool
    room: int
    integrated: bool
    place: int


def sort_candidates(found: list[Candidate]) -> list[Candidate]:
    """Return the candidates sorted, best first; those of one backend keep their order.

    What counts, in this order, each for the best card that a backend serves:
    1. support: builds of current torch, then DirectML's frozen one, then the CPU;
    2. the card's rate in half precision, in steps of a factor of two, as makers do not count alike; one step less for
       integrated GPUs, which share memory and power with the processor; unknown is last;
    3. a build that its maker tests for this card, before one that is untested or runs a sister card's code;
    4. memory, in steps of two, where that of every card is known;
    5. a discrete card, then the backends' own order, which is that of how much software is written for them.
    """
    sort_keys = _sort_keys(found)
    return sorted(found, key=lambda candidate: sort_keys[candidate.backend])


def explain_order(found: list[Candidate]) -> tuple[Message, ...]:
    """Return why the first backend is preferred to each other one, and how to choose that instead.

    `found` are the candidates as `sort_candidates` returns them, at least one. Backends without a card, or whose
    fastest card was named before, are left out.
    """
    first, *others = _first_by_backend(found).values()
    sort_keys = _sort_keys(found)
    named, said = {_strongest_card(first)}, []
    for other in others:
        card = _strongest_card(other)
        if card is not None and card not in named:
            named.add(card)
            instead = _(
                "To use {second} instead, choose {backend}.",
                second=short_name(card),
                backend=other.backend.title,
                option=f"--backend {other.backend.value}",
            )
            said.append(sentences((_deciding_reason(first, other, sort_keys), instead)))
    return tuple(said)


def _first_by_backend(found: list[Candidate]) -> dict[Backend, Candidate]:
    """Return the first candidate of each backend, by backend, in the order in which backends first occur."""
    first = {candidate.backend: candidate for candidate in reversed(found)}
    return {candidate.backend: first[candidate.backend] for candidate in found}


def _sort_keys(found: list[Candidate]) -> dict[Backend, _SortKey]:
    """Return the sort key of each backend, from its first candidate and the fastest card of that candidate."""
    leaders = _first_by_backend(found)
    cards = {backend: _strongest_card(candidate) for backend, candidate in leaders.items()}
    measured = all(card.memory for card in cards.values() if card)
    return {
        backend: _SortKey(
            candidate.rank,
            -_speed_step(card) if (card := cards[backend]) else 0,
            rocm.OVERRIDE in candidate.env,  # it runs a sister card's code
            -round(math.log2(card.memory)) if measured and card and card.memory else 0,
            candidate.integrated,
            _ORDER[backend],
        )
        for backend, candidate in leaders.items()
    }


def _strongest_card(candidate: Candidate) -> Card | None:
    """Return the fastest card that a candidate serves by the table of rates; None for the CPU and Apple's GPUs."""
    return max(candidate.cards, key=_speed_step, default=None)


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def _speed_step(card: Card) -> int:
    """Return a card's speed as a power of two, one less for an integrated GPU; `_UNKNOWN` if no rate is listed."""
    rate = _card_rate(card)
    return round(math.log2(rate.half)) - card.integrated if rate else _UNKNOWN


def _card_rate(card: Card) -> Rate | None:
    """Return how fast a card computes by the table of rates; None for one that is not listed."""
    if card.vendor is Vendor.NVIDIA:
        code = ".".join(map(str, card.capability))
    else:
        code = card.gfx or (card.identity and card.identity.generation) or ""
    return find_rate(card.vendor, card.name, code, card.memory)


_DECISIVE = {
    "rank": "first-has-current-torch",
    "step": "first-is-discrete",
    "doubtful": "first-is-better-tested",
    "room": "first-has-more-memory",
    "integrated": "first-is-discrete",
    "place": "first-has-more-software",
}


def _deciding_reason(first: Candidate, other: Candidate, sort_keys: dict[Backend, _SortKey]) -> Message:
    """Return the sentence for the first sort key that differs; if the speeds are of one step, with both rates."""
    ours, theirs = sort_keys[first.backend], sort_keys[other.backend]
    card, rival = _strongest_card(first), _strongest_card(other)
    rate, against = card and _card_rate(card), rival and _card_rate(rival)
    field = next(name for name, a, b in zip(_SortKey._fields, ours, theirs, strict=True) if a != b)
    key, figures = _DECISIVE[field], dict[str, object]()
    if field == "step" and not (rate and against):
        key = "first-has-known-speed"
    elif field == "step" and rate and against and rate.half > against.half:
        key, figures = "first-is-faster", {"ours": _tflops_text(rate), "theirs": _tflops_text(against)}
    elif field == "room" and card and rival:
        figures = {"ours": f"{card.memory:g}", "theirs": f"{rival.memory:g}"}
    names = {"first": short_name(card) if card else first.backend.title, "second": short_name(rival) if rival else ""}
    said = sentence(key, **names, **figures, backend=first.backend.title)
    if not (rate and against) or ours[:2] != theirs[:2]:
        return said
    close = _("In half precision they reach {ours} and {theirs} TFLOPS, and makers do not count alike.")
    return sentences((said, close.format(ours=_tflops_text(rate), theirs=_tflops_text(against))))


def _tflops_text(rate: Rate) -> Text:
    """Return a rate in TFLOPS as text, "at least …" if it is only that of the card's generation."""
    figure = f"{rate.half:g}"
    return figure if rate.exact else _("at least {number}", number=figure)
