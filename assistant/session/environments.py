"""The environments on this machine: found, judged by what their files say, looked into when the user asks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.folders import OWN_ENVIRONMENTS
from assistant.i18n import Text, _, ngettext
from assistant.install import (
    Kind,
    Marker,
    Site,
    Spot,
    Tools,
    Undoable,
    dead,
    environments_with_kernels,
    find_environments,
    guards,
    look_at,
    marked_environments,
    read_marker,
    read_site,
    replaced,
    size_of,
    spot_at,
    torch_build,
    undoable,
)
from assistant.model.errors import BadInput
from assistant.model.event import Progress, Step
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import Record, replace
from assistant.plan import make_plans
from assistant.session.doctor import findings_of


class Light(Enum):
    """How an environment stands, by the worst of its findings; unknown where it could not be looked at."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"


class Known(Record, frozen=True):
    """One environment: where and what it is, what it holds, what is wrong with it.

    `kind` and `of` tell what keeps it: "venv" or "conda", a "project" of uv or pixi, a Jupyter "kernel", an
    "application". `made` is set for one of the assistant's making, `own` for the one that the assistant runs in.
    `checked` is when its Python was asked, "" where only files were read; `size` in bytes, None until then.
    """

    path: str
    name: str
    kind: Kind = "venv"
    of: str = ""
    python: str = ""
    torch: str = ""
    backend: Backend | None = None
    findings: tuple[Finding, ...] = ()
    kernels: tuple[str, ...] = ()
    made: bool = False
    own: bool = False
    unread: bool = False
    checked: str = ""
    size: int | None = None
    undo: Undoable | None = None

    @property
    def light(self) -> Light:
        """How it stands."""
        if self.unread:
            return Light.UNKNOWN
        found = {finding.severity for finding in self.findings}
        return Light.BAD if Severity.ERROR in found else Light.WARNING if Severity.WARNING in found else Light.GOOD

    @property
    def state(self) -> Text:
        """The worst that is wrong with it, or that nothing is, in a sentence."""
        order = list(Severity)
        wrong = sorted((one for one in self.findings if one.wrong), key=lambda one: -order.index(one.severity))
        if self.own:
            return _("This is the assistant's own environment; it looks after it by itself.")
        if self.unread:
            return _("It could not be read.")
        if not wrong:
            return _("Works: its packages go together.") if self.checked else _("No problems found in its packages.")
        more = len(wrong) - 1
        rest = ngettext("and {count} more problem", "and {count} more problems", more) if more else ""
        return _("{problem} ({rest})", problem=wrong[0].text, rest=rest) if rest else wrong[0].text


class Survey(Record, frozen=True):
    """The environments that were found, in `folders` that the user named and in the usual places.

    `cut_short` is set where the search ended before it had been everywhere; `notes` are what the last change reported.
    """

    environments: tuple[Known, ...] = ()
    folders: tuple[str, ...] = ()
    cut_short: bool = False
    notes: tuple[Finding, ...] = ()

    def of(self, path: str) -> Known | None:
        """Return the environment at a path; None where none was found there."""
        return next((one for one in self.environments if one.path == path), None)

    def with_known(self, known: Known) -> Survey:
        """Put what is known by now of one environment in its place, or at the end."""
        if self.of(known.path) is None:
            return replace(self, environments=(*self.environments, known))
        return replace(self, environments=tuple(known if one.path == known.path else one for one in self.environments))

    def without(self, path: str) -> Survey:
        """Leave out an environment that is no more."""
        return replace(self, environments=tuple(one for one in self.environments if one.path != path))


def survey(host: Host, machine: Machine, folders: Iterable[str] = (), here: Path | None = None) -> Survey:
    """Find the environments on this machine and judge each by its files; nothing in them is started."""
    marked, kernels = dict(marked_environments()), environments_with_kernels()
    named = tuple(str(Path(folder).expanduser().absolute()) for folder in folders)
    found = find_environments(host, here or Path.cwd(), marked, map(Path, named))
    rows = []
    for spot in found.spots:
        row = Known(path=str(spot.path), name=spot.name, kind=spot.kind, of=spot.of, unread=True)
        with suppress(OSError, ValueError):  # a stranger's files may hold anything
            row = known_of(spot, read_site(spot.path, host), host, machine, kernels.get(spot.path, ()))
        rows.append(row)
    return Survey(environments=tuple(rows), folders=named, cut_short=found.cut_short)


def known_of(spot: Spot, site: Site, host: Host, machine: Machine, kernels: Iterable[str] = ()) -> Known:
    """Return what is known of an environment by what it holds, with its findings."""
    marker, versions = read_marker(spot.path), site.versions
    own = spot.path.parent.name == OWN_ENVIRONMENTS or site.prefix == str(host.facts("platform").get("prefix", ""))
    return Known(
        path=str(spot.path),
        name=spot.name,
        kind=spot.kind,
        of=spot.of,
        python=site.version,
        torch=versions.get("torch", ""),
        backend=_backend(site, host, machine),
        findings=() if own else _judged(site, marker, host, machine),
        kernels=tuple(kernels),
        made=marker is not None,
        own=own,
        undo=undoable(spot.path),
    )


def looked_into(path: str, host: Host, machine: Machine, before: Known | None = None) -> tuple[Known, Site | None]:
    """Ask an environment's own Python what it holds, and judge that; None for the second where it does not answer.

    Raises `BadInput` for a folder that is no environment.
    """
    spot = spot_at(path)
    spot = Spot(spot.path, before.name, before.kind, before.of) if before else spot
    kernels = environments_with_kernels().get(spot.path, ())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    site = None
    try:
        site = look_at(spot.path, host)
        known = known_of(spot, site, host, machine, kernels)
    except BadInput as error:
        known = known_of(spot, read_site(spot.path, host), host, machine, kernels)
        if not known.findings or known.findings[0].key != "environment-without-python":
            silent = Finding(key="python-does-not-answer", severity=Severity.ERROR, text=error.message)
            known = replace(known, findings=(silent, *known.findings))
    return replace(known, checked=now, size=size_of(spot.path)), site


def machine_here(host: Host, known: Machine | None) -> Machine:
    """Return the machine at hand: as it is known already, or detected now."""
    return known or detect(host).machine


def checked(known: Known, site: Site, tools: Tools) -> Known:
    """Verify a device of an environment that has torch: add what its quick checks find."""
    from assistant.verify import raised, verify  # noqa: PLC0415 - only this needs it

    tools.sink(Progress(step=Step.VERIFY, text=_("Checking {name}", name=known.name)))
    try:
        device = (known.backend or Backend.CPU).value
        report = verify(site.python, device, tools.sink, tools.cancel, traceless=True)
    except BadInput as error:
        return replace(known, findings=(Finding(key="verify", severity=Severity.ERROR, text=error.message),))
    wrong = tuple(finding for finding in raised(report) if finding.wrong)
    return replace(known, findings=(*known.findings, *wrong))


def _judged(site: Site, marker: Marker | None, host: Host, machine: Machine) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made."""
    if gone := dead(site, host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    pins = host.read(str(guards(Path(site.prefix))[0]))
    changed = replaced(Path(site.prefix), pins.text, site.versions) if pins else None
    found = (*filter(None, (changed,)), *findings_of(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong)


def _backend(site: Site, host: Host, machine: Machine) -> Backend | None:
    """Return what torch was built for; None without torch, or where that cannot be told."""
    if "torch-directml" in site.versions:
        return Backend.DIRECTML
    built = torch_build(site, host).partition(" ")[0]
    if built == "cpu" and machine.os == "macos" and machine.arch == "arm64":
        return Backend.MPS
    return {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)
