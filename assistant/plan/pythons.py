"""Which Python a plan is for: the machine's own, the one asked for, one that a project allows, or a neighbour."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from assistant.catalog import Catalog, number
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request
from assistant.model.record import replace
from assistant.plan.candidates import reject
from assistant.plan.target import USUAL_PYTHON, Target, python_tag, target_of

_PARTS = 2  # the dots of "3.12.4", which names its patch release
_LAST_PATCH = 99  # chosen: above any patch release, of which uv fetches the newest


def allowed(python: str, pythons: str) -> bool:
    """Return whether a specifier such as ">=3.10,<3.13" allows some release of a Python; "" allows all.

    Raises `BadInput` for a specifier that is none.
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
    """Yield the Pythons to try in place of the one that a request leads to: the usual one, then the nearest to it.

    Of two that are as near the older goes first, as packages follow a new Python late.

    None where the request names its Python: that is the user's word, or the environment's.
    """
    if request.python:
        return
    anywhere = target_of(replace(machine, python=None, python_implementation=None), request, catalog)
    if not isinstance(anywhere, Target):
        return
    own = python_tag(machine.python or USUAL_PYTHON)[0]
    usual = number(USUAL_PYTHON)[1]
    tags = sorted(
        (tag for tag in catalog.pythons(anywhere.platform) if tag.isdigit()),
        key=lambda tag: (abs(int(tag[1:]) - usual), int(tag[1:])),
    )
    for python in (f"{tag[0]}.{tag[1:]}" for tag in tags):
        if python != own and allowed(python, request.pythons):
            yield python


def outside_project(python: str, request: Request) -> Rejection:
    """Reject a Python that what is asked for does not allow; one that nobody chose has no allowed one beside it."""
    why = _("What you ask for needs Python {pythons}, and PyTorch has no build for that on this machine.")
    if request.python:
        why = _("What you ask for needs Python {pythons}, not {python}.")
    hint = _("Choose no Python version, or one that fits.", option="--python") if request.python else ""
    reason = why.format(pythons=request.pythons, python=python)
    return reject(request.backend or Backend.CPU, "python-outside-project", reason, hint)


def with_python_reason(planning: Planning, own: str, request: Request) -> Planning:
    """Say in each plan why it has another Python than the machine's own."""
    outside = not allowed(own, request.pythons)

    def with_reason(plan: Plan) -> Plan:
        if outside:
            text = _("What you ask for needs Python {pythons}, so the plan takes Python {python} instead of {own}.")
        else:
            text = _("What you ask for cannot all be installed for Python {own}; for Python {python} it can.")
        reason = text.format(pythons=request.pythons, python=plan.python, own=own)
        return replace(plan, reasons=(reason, *plan.reasons))

    plans = tuple(map(with_reason, planning.plans))
    return replace(planning, plans=plans, choice=plans[0] if plans else None)
