"""Which of a bundle's kinds a machine gets: decided by the planner, for the machine as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from packaging.requirements import InvalidRequirement

from assistant.bundle.manifest import Bundle, Kind
from assistant.bundle.platforms import platform_of, release
from assistant.catalog import Catalog, load_catalog
from assistant.i18n import _
from assistant.model.errors import AssistantError, BadInput, NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.plan import make_plans, nothing_fits
from assistant.views import plan_title


def choose(bundle: Bundle, machine: Machine, *, backend: Backend | None = None, key: str = "") -> Kind:
    """Return the kind that a machine gets: of those that run on it, the best for the backend that it would be planned.

    `backend` asks for another backend; `key` names the kind, and nothing is judged then. Raises `NothingFits` where the
    bundle holds nothing that the planner would choose here, and `BadInput` for a key that it does not hold.
    """
    if key:
        return _named(bundle, key)
    catalog = load_catalog()
    planning = make_plans(machine, catalog, Request(backend=backend))
    best = planning.choice
    if best is None:
        raise nothing_fits(planning)
    fitting = [kind for kind in bundle.kinds if kind.plan.backend is best.backend]
    runs = [kind for kind in fitting if _carries(kind.machine, machine) and _planned(kind.plan, machine, catalog)]
    if not runs:
        raise NothingFits(
            _(
                "This bundle holds nothing for this machine, which needs {plan}. It holds: {kinds}.",
                plan=plan_title(best),
                kinds=", ".join(kind.key for kind in bundle.kinds),
            ),
            hint=_(
                "Make the bundle again with this machine among the others, or choose another backend.",
                option="--backend cpu",
            ),
        )
    return max(runs, key=lambda kind: (kind.plan.variant == best.variant, release(kind.plan.torch)))


def without_indexes(plan: Plan) -> Plan:
    """Return a plan whose packages all come from the bundle's folder."""
    return replace(plan, index_url=None, indexes=(), links=(), wheel=None)


def _named(bundle: Bundle, key: str) -> Kind:
    keys: Sequence[str] = [kind.key for kind in bundle.kinds]
    if key not in keys:
        raise BadInput(
            _("This bundle has no kind {key}.", key=key), hint=_("Choose from: {keys}.", keys=", ".join(keys))
        )
    return bundle.kinds[keys.index(key)]


def _carries(made_for: Machine, machine: Machine) -> bool:
    """Return whether a lock for one system serves another: the same platform, and a C library or macOS no older."""
    if platform_of(made_for) != platform_of(machine) or bool(made_for.wsl) != bool(machine.wsl):
        return False
    if machine.os == "macos":
        return release(machine.os_version) >= release(made_for.os_version)
    return not machine.glibc or release(machine.glibc) >= release(made_for.glibc)


def _planned(plan: Plan, machine: Machine, catalog: Catalog) -> bool:
    """Return whether the planner would plan this build of torch here, were it asked for.

    The release alone may have a better build; and not every build has a label ("+cu130") to ask for.
    """
    for pin in (f"torch=={plan.torch}", f"torch=={plan.torch}+{plan.variant}"):
        asked = Request(backend=plan.backend, python=plan.python, pins=(pin,))
        with suppress(AssistantError, InvalidRequirement):
            offered = make_plans(machine, catalog, asked).plans
            if any((one.variant, one.torch) == (plan.variant, plan.torch) for one in offered):
                return True
    return False
