"""Adds packages to the environment of a setup: first what would change, then the change, as one transaction."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.install import Prepared, Site, Tools, Unsolved, check_requirement, guarded, look_at, prepare, run
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.model.report import Report
from assistant.session.planning import card_of
from assistant.session.state import Adding, State, required
from assistant.session.steps import proved

_INSTALLERS = {"pip", "pip3", "python", "python3", "py", "uv"}
_GOES_ON = ("<", ">", "=", "!", "~", ";", "@", "[")  # a requirement goes on where such a sign stands after a gap


def requirements_of(text: str) -> tuple[str, ...]:
    """Split what a person types into requirements: at spaces and commas, with `pip install` before them or without.

    "%pip install seaborn, pandas >= 2, <3" is "seaborn" and "pandas>=2,<3". What is no requirement stays as it is.
    """
    words = text.split()
    if words and words[0].lstrip("!%") in _INSTALLERS and "install" in words:
        words = words[words.index("install") + 1 :]
    found: list[str] = []
    for part in re.split(r"([\s,]+)", " ".join(words)):
        last = found[-1] if found else ""
        goes_on = part.startswith(_GOES_ON) or last.endswith(_GOES_ON) or last.rfind("[") > last.rfind("]")
        if re.fullmatch(r"[\s,]*", part):
            gap = "," if "," in part else ""
        elif not found or not goes_on:
            found.append(part)
        else:
            found[-1] += gap + part
    return tuple(found)


def added(state: State, tools: Tools) -> Adding:
    """Work out what adding would change; where that has been shown, do it, verified, or leave all as it was.

    Raises `BadInput` for what is no requirement, and `WorkFailed` where a package does not go with what is held.
    """
    wish = required(state.adding)
    if wish.prepared is None or wish.environment:
        return replace(
            wish,
            prepared=_worked_out(wish.requirements, state, tools),
            environment=None,
            message="",
            hint="",
            exit_code=0,
        )
    prepared, proofs = wish.prepared, list[Report]()
    made = run(prepared, lambda made, lock: proofs.append(proved(prepared, made, lock, tools, keep=False)), tools)
    return replace(wish, environment=made, proof=(*proofs, None)[0])


def _worked_out(requirements: tuple[str, ...], state: State, tools: Tools) -> Prepared:
    """Resolve the packages together with the plan's own, the builds that use the accelerator held as they are."""
    asked = {canonicalize_name(Requirement(check_requirement(line)).name) for line in requirements}
    made, plan = required(state.environment), required(state.plan)
    site = look_at(Path(made.python), tools.host)
    _refuse_replacing(requirements, site, plan)
    own = {line: canonicalize_name(Requirement(line).name) for line in plan.requirements}
    held = {name: version for name, version in site.versions.items() if guarded(name)}
    kept = tuple(line for line, name in own.items() if name not in {*asked, *held})
    whole = replace(
        plan, requirements=(*(f"{name}=={version}" for name, version in held.items()), *kept, *requirements)
    )
    try:
        prepared = prepare(whole, made.path, tools, card_of(state))
    except Unsolved as error:
        if error.unreachable:
            raise
        raise WorkFailed(
            _("{packages} cannot be added: {reason}", packages=", ".join(requirements), reason=error.reason),
            hint=_("Ask for another version, or set up a new environment for it."),
        ) from error
    recorded = replace(
        plan,
        requirements=(*(line for line, name in own.items() if name not in asked), *requirements),
        asked=(*plan.asked, *sorted(asked.difference(plan.asked))),
    )
    changes = prepared.resolution.changes(site.versions)
    return replace(prepared, plan=recorded, ready=prepared.ready or (None if changes else made))


def _refuse_replacing(requirements: tuple[str, ...], site: Site, plan: Plan) -> None:
    """Raise `WorkFailed` for a requirement that what is held does not meet."""
    for need in map(Requirement, requirements):
        name = canonicalize_name(need.name)
        version = site.versions.get(name)
        if version and guarded(name) and not need.specifier.contains(version, prereleases=True):
            raise WorkFailed(
                _(
                    "{need} cannot be added: this environment keeps {name} {version}, which was chosen for {backend}.",
                    need=need,
                    name=name,
                    version=version,
                    backend=plan.backend.title,
                ),
                hint=_("Set up a new environment for it."),
            )
