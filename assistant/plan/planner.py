"""The planner: asks every backend, puts the answers in order, and adds what another Python would open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assistant.catalog import Catalog, number
from assistant.i18n import Message, Text, _, sentences
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request
from assistant.model.record import replace
from assistant.plan import cuda, others, rocm
from assistant.plan.cards import cards_of, driver_of
from assistant.plan.nightly import with_nightly
from assistant.plan.options import Option, Question
from assistant.plan.requirements import download_mb, requirements
from assistant.plan.target import USUAL_PYTHON, Refusal, target_of
from assistant.plan.wishes import wishes_of

_ROOMS = (cuda.offers, rocm.offers, others.xpu, others.mps, others.directml)
_ORDER = {backend: place for place, backend in enumerate(Backend)}
_ANYONE = Request()


def make_plans(machine: Machine, catalog: Catalog, request: Request = _ANYONE) -> Planning:
    """Answer what to install on a machine: plans best first with the CPU last, and why not the others.

    The first plan uses the machine's own Python; plans with another `python` follow where that opens more. `choice` is
    None when nothing fits, with the reason in `rejected`. Raises `BadInput` for a pin or version that cannot be read.
    """
    try:
        return _planned(machine, catalog, request)
    except NothingFits as error:
        return Planning(rejected=(_refused(request, "pins-exclude-release", error.message, error.hint),))


def _planned(machine: Machine, catalog: Catalog, request: Request) -> Planning:
    target = target_of(machine, request, catalog)
    if isinstance(target, Refusal):
        return Planning(rejected=(_refused(request, *target),))
    question = Question(
        machine,
        catalog,
        target,
        wishes_of(request.pins, catalog),
        cards_of(machine),
        driver_of(machine, catalog),
        request.backend,
    )
    options, rejected = _answers(question)
    if not options:
        return Planning(rejected=_told(rejected, question))
    own = [_plan(option, question, rejected if option is options[0] else ()) for option in options]
    if catalog.remark:
        own[0] = replace(own[0], warnings=(*own[0].warnings, catalog.remark))
    plans = _in_order(own, () if request.python else _elsewhere(options, question))
    planning = Planning(choice=plans[0], plans=plans, rejected=tuple(rejected))
    return with_nightly(planning, request, catalog) if request.nightly else planning


def _refused(request: Request, key: str, why: Text, would_help: Text) -> Rejection:
    return Rejection(backend=request.backend or Backend.CPU, variant="", key=key, why=why, would_help=would_help)


def _answers(question: Question) -> tuple[list[Option], list[Rejection]]:
    """Ask every backend, or the one asked for; the CPU comes along except where only another one will do."""
    asked = question.asked
    offers = [room(question) for room in _ROOMS] if asked is not Backend.CPU else []
    options = [option for offer in offers for option in offer.options if asked in (None, option.backend)]
    rejected = [rejection for offer in offers for rejection in offer.rejected if asked in (None, rejection.backend)]
    if options or asked in (None, Backend.CPU):
        last = others.cpu(question)
        options.extend(last.options)
        rejected.extend(last.rejected)
    options.sort(key=_value)
    best = options[0] if options else None
    if best and best.rank == 0 and not best.integrated:
        options = [option for option in options if not (option.backend is Backend.DIRECTML and option.integrated)]
    return options, rejected


def _told(rejected: list[Rejection], question: Question) -> tuple[Rejection, ...]:
    """Never leave a request unanswered: name the backend that cannot be had here."""
    if rejected or question.asked is None:
        return tuple(rejected)
    asked = question.asked
    if asked is Backend.MPS:
        why = _("MPS exists on macOS only.")
    elif asked is Backend.DIRECTML:
        why = _("DirectML needs Windows or WSL, and a GPU with DirectX 12.")
    else:
        why = _("No GPU on this machine works with {backend}.", backend=asked.value)
    helps = _("Leave the backend out, and the best one for this machine is chosen.")
    return (Rejection(backend=asked, variant="", key="backend-not-here", why=why, would_help=helps),)


def _plan(option: Option, question: Question, rejected: Iterable[Rejection]) -> Plan:
    warnings = [*option.warnings, *question.target.warnings]
    if option.backend is Backend.CPU:
        warnings += _unserved(question, rejected)
    return Plan(
        backend=option.backend,
        variant=option.variant,
        torch=option.version,
        python=question.target.python,
        index_url=question.catalog.index_url(_index(option, question)),
        requirements=requirements(option, question),
        env=option.env,
        download_mb=download_mb(option, question),
        reasons=option.reasons,
        warnings=tuple(warnings),
    )


def _index(option: Option, question: Question) -> str:
    """Name the index of torch itself: in WSL, PyPI's torch would draw in CUDA, which DirectML has no use for."""
    bare = option.backend is Backend.DIRECTML and question.target.os == "linux"
    return "cpu" if bare else option.variant


def _unserved(question: Question, rejected: Iterable[Rejection]) -> Iterator[Message]:
    """Say why the CPU and not the GPU."""
    for rejection in rejected:
        yield sentences((rejection.why, rejection.would_help))
    if not question.cards and question.driver.text and not question.driver.obstacle:
        if question.machine.container:
            yield _("The NVIDIA driver is there but no GPU is: start the container with --gpus all.")
        else:
            yield _("The NVIDIA driver is there but no GPU was found.")


def _elsewhere(options: list[Option], question: Question) -> tuple[Plan, ...]:
    """Offer another Python where it opens a better backend, or a release that this one has no wheel for."""
    usual = USUAL_PYTHON.replace(".", "")
    if question.target.tag == usual or usual not in question.catalog.pythons(question.target.platform):
        return ()
    other = question._replace(target=question.target._replace(python=USUAL_PYTHON, tag=usual, warnings=()))
    found, rejected = _answers(other)
    if not found or not _better(found[0], options[0]):
        return ()
    plans = [_plan(option, other, rejected if option is found[0] else ()) for option in found]
    return (plans[0], plans[-1]) if len(plans) > 1 else tuple(plans)


def _better(other: Option, own: Option) -> bool:
    same = other.backend is own.backend and other.rank == own.rank
    if same and own.wheel and other.wheel and own.wheel.confirmed is not other.wheel.confirmed:
        return other.wheel.confirmed
    return number(other.version) > number(own.version) if same else _value(other) < _value(own)


def _value(option: Option) -> tuple[int, bool, int]:
    return option.rank, option.integrated, _ORDER[option.backend]


def _in_order(own: list[Plan], elsewhere: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """Put plans with another Python after our own GPU plans, and end with a CPU plan."""
    if len(own) > 1 and own[-1].backend is Backend.CPU:
        return (*own[:-1], *(plan for plan in elsewhere if plan.backend is not Backend.CPU), own[-1])
    return (*own, *elsewhere)
