"""Judges an environment by what it holds: as it stands, and as a change would leave it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.host.base import Host
from assistant.host.files import may_write
from assistant.host.folders import is_own_environment
from assistant.install import (
    FOREIGN_PIP,
    Difference,
    Distribution,
    Move,
    Site,
    Spot,
    dead,
    guards,
    read_marker,
    replaced,
    torch_build,
    undoable,
)
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.doctor import findings_of
from assistant.session.survey import Known

_OF_THE_SHELL = {FOREIGN_PIP, "pythonpath-leak"}  # these are about the shell that asks, not about the environment


def known_of(spot: Spot, site: Site, host: Host, machine: Machine, kernels: Iterable[str] = ()) -> Known:
    """Return what is known of an environment by what it holds, with its findings."""
    marker, versions = read_marker(spot.path), site.versions
    own = is_own_environment(spot.path)
    return Known(
        path=str(spot.path),
        name=spot.name,
        kind=spot.kind,
        of=spot.of,
        python=site.version,
        torch=versions.get("torch", ""),
        backend=_backend(site, host, machine),
        findings=() if own else judged_site(site, host, machine),
        kernels=tuple(kernels),
        made=marker is not None,
        own=own,
        others=_is_others(str(spot.path)),
        undo=undoable(spot.path),
    )


def _is_others(path: str) -> bool:
    """Return whether an environment stands that this user may not change."""
    return Path(path).is_dir() and not may_write(Path(path))


def may_change(path: str) -> bool:
    """Return whether an environment is one to change: not others', nor the assistant's own, which is made anew."""
    return not (is_own_environment(path) or _is_others(path))


def judged_after(difference: Difference, host: Host, machine: Machine, site: Site | None = None) -> tuple[Finding, ...]:
    """Judge an environment as a change would leave it, or as it has (`site`)."""
    before = difference.site
    if site is None:
        moving = {move.name: move for move in difference.moves}
        stays = [one for one in before.distributions if canonicalize_name(one.name) not in moving]
        comes = [
            Distribution(name=name, version=move.after, place=before.purelib, requires=_requires(before, move))
            for name, move in moving.items()
            if move.after
        ]
        site = replace(before, distributions=(*stays, *comes))
    return judged_site(site, host, machine, guarded=False)


def _requires(site: Site, move: Move) -> tuple[str, ...]:
    """Return what a package requires that comes again as it is; of another version nothing is known."""
    same = (one for one in site.own if (canonicalize_name(one.name), one.version) == (move.name, move.after))
    return next((one.requires for one in same), ())


def judged_site(site: Site, host: Host, machine: Machine, *, guarded: bool = True) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made.

    Without `guarded` its constraints are not asked: a change writes them anew.
    """
    marker = read_marker(Path(site.prefix))
    if gone := dead(site, host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    pins = host.read(str(guards(Path(site.prefix))[0]))
    changed = replaced(Path(site.prefix), pins.text, site.versions) if pins and guarded else None
    found = (*filter(None, (changed,)), *findings_of(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong and finding.key not in _OF_THE_SHELL)


def _backend(site: Site, host: Host, machine: Machine) -> Backend | None:
    """Return what torch was built for; None without torch, or where that cannot be told."""
    if "torch-directml" in site.versions:
        return Backend.DIRECTML
    built = torch_build(site, host).partition(" ")[0]
    if built == "cpu" and machine.os == "macos" and machine.arch == "arm64":
        return Backend.MPS
    return {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)
