"""Setup packages for PCs that are not here: those that get the same are one kind, and each kind has its own lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from assistant.export import (
    Kit,
    Setup,
    Without,
    commands,
    kit_bundle,
    kit_name,
    kit_zip,
    zipped,
)
from assistant.host.live import IN_BROWSER, LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import Message, Text, _, ngettext, sentences
from assistant.install import Resolution, Sources, Tools, find_uv, resolve_for
from assistant.model.errors import NothingFits, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning
from assistant.model.record import Record, replace
from assistant.plan import nothing_fits
from assistant.views import rejection_reason

AT_ONCE = 4  # chosen: resolvers that run side by side; they wait for the network


class Pc(Record, frozen=True):
    """A PC, or several alike: what people call it, its facts, and its plan; `why` says why it has none."""

    label: Text
    machine: Machine
    plan: Plan | None = None
    why: Text = ""


def pc(label: Text, machine: Machine, planning: Planning) -> Pc:
    """Return a PC with the best of its plans, or with the reason for having none."""
    why: Text = ""
    if planning.choice is None:
        why = rejection_reason(planning.rejected[0]) if planning.rejected else nothing_fits(planning).message
    return Pc(label=label, machine=machine, plan=planning.choice, why=why)


def here(cancel: CancelToken | None = None) -> Tools | None:
    """Return the tools that resolve packages on this machine, as its user has set them; None in a browser."""
    if IN_BROWSER:
        return None
    host = LiveHost()
    return Tools(host, Sources(host), lambda _event: None, CancelToken() if cancel is None else cancel)


def commands_for(machine: Machine, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """List the commands of an installation on a machine that is not here, by name and without resolving anything."""
    return commands(Setup(machine=machine, plan=plan))


def package_for(machine: Machine, plan: Plan, label: Text, tools: Tools | None = None) -> tuple[str, bytes]:
    """Return the setup package of one kind of PC as a zip, with its file's name; see `packages_for`."""
    (kit,) = _kits([Pc(label=label, machine=machine, plan=plan)], tools, _unheard)
    return f"{kit.name}.zip", kit_zip(kit)


def packages_for(
    pcs: Sequence[Pc], tools: Tools | None = None, report: Callable[[Message], object] = lambda _text: None
) -> dict[str, bytes]:
    """Return a zip for each kind of PC by file name, and the page that shows which PC gets which.

    With `tools`, every package is resolved here for the PC it is for, and locked; where that fails, or without, the
    package says that it has no lock. `report` hears how far the work is. Raises `NothingFits` where no PC has a plan.
    """
    without = _without(pcs)
    for one in without:
        report(_("{pc} gets no package: {why}", pc=one.pc, why=one.why))
    return kit_bundle(_kits(pcs, tools, report), without)


def _without(pcs: Sequence[Pc]) -> list[Without]:
    """List the PCs without a plan; raise `NothingFits` where none has one."""
    without = [Without(pc=one.label, why=one.why) for one in pcs if one.plan is None]
    if len(without) == len(pcs):
        raise NothingFits(
            _("No PyTorch wheel fits any of these PCs."),
            hint=sentences(one.why for one in without) if without else _("Choose at least one."),
        )
    return without


def in_one_zip(files: dict[str, bytes]) -> bytes:
    """Put all packages and the page into one zip, as a browser downloads it."""
    return zipped(files)


def _unheard(_text: Message) -> None:
    """Say nothing."""


def _kits(pcs: Iterable[Pc], tools: Tools | None, report: Callable[[Message], object]) -> list[Kit]:
    """Put the PCs that get the same together, and lock each kind's packages."""
    kinds: dict[tuple[object, ...], tuple[Machine, Plan, list[Text]]] = {}
    for one in pcs:
        if one.plan:
            _machine, _plan, labels = kinds.setdefault(kind_of(one.machine, one.plan), (one.machine, one.plan, []))
            labels.append(one.label)
    report(ngettext("Resolving for {count} kind of PC", "Resolving for {count} kinds of PC", len(kinds)))
    if tools is None:
        return _named([_kit(*kind, tools) for kind in kinds.values()])
    find_uv()  # here and not in the threads: sysconfig, which it asks, is not ready for two at once in Python 3.11
    kits: list[Kit] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for kit in pool.map(lambda kind: _kit(kind[0], kind[1], kind[2], tools), kinds.values()):
            kits.append(kit)
            report(_("Setup packages ready: {done} of {total}", done=len(kits), total=len(kinds)))
    return _named(kits)


def kind_of(machine: Machine, plan: Plan) -> tuple[object, ...]:
    """Return what PCs that get the same package have in common."""
    # A lock for glibc 2.28 also fits 2.39, but not the other way round.
    release = machine.os_version if machine.os == "macos" else machine.glibc
    system = (machine.os, bool(machine.wsl), machine.arch, machine.libc, release)
    wanted = (plan.backend, plan.variant, plan.torch, plan.python, plan.index_url)
    return (*system, *wanted, plan.requirements, tuple(sorted(plan.env.items())))


def _kit(machine: Machine, plan: Plan, labels: list[Text], tools: Tools | None) -> Kit:
    """Make the package of one kind of PC, with a lock if its packages can be resolved."""
    plan = replace(plan, index_url=tools.sources.index_url or plan.index_url) if tools else plan
    setup = Setup(machine=machine, plan=plan)
    unlocked: Text = _("The packages could not be resolved where this setup package was made.")
    if tools:
        try:
            setup, unlocked = _locked(machine, plan, resolve_for(plan, machine, tools)), ""
        except WorkFailed as error:
            unlocked = error.message
    return Kit(name=kit_name(setup), pcs=tuple(dict.fromkeys(labels)), setup=setup, unlocked=unlocked)


def _locked(machine: Machine, plan: Plan, resolution: Resolution) -> Setup:
    """Return a setup with all that a resolver found; a lock that names files of this disk stays here."""
    elsewhere = any(package.url.startswith("file:") for package in resolution.packages)
    return Setup(
        machine=machine,
        plan=plan,
        versions=resolution.versions,
        lock="" if elsewhere else resolution.lock,
        hashes={package.name: package.sha256 for package in resolution.packages if package.sha256},
    )


def _named(kits: list[Kit]) -> list[Kit]:
    """Add numbers to names that are given twice."""
    seen: dict[str, int] = {}
    numbered = []
    for kit in kits:
        seen[kit.name] = seen.get(kit.name, 0) + 1
        name = kit.name if seen[kit.name] == 1 else f"{kit.name}-{seen[kit.name]}"
        numbered.append(replace(kit, name=name))
    return numbered
