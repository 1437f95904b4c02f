"""What change of packages would mend what is wrong with an environment, by the keys of findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.needs import sharing
from assistant.catalog.onnxruntimes import runtime_plugins
from assistant.catalog.rows import FAMILY
from assistant.install import Site, Wanted, guards, read_marker, version_in_place
from assistant.model.errors import AssistantError
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Request
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.survey import Known


def mendable(environment: Known) -> bool:
    """Return whether anything that is wrong with an environment can be mended by changing its packages."""
    closed = environment.own or environment.others or environment.unread
    return not closed and any(one.key in _WAYS for one in environment.findings)


def wanted_for(site: Site, findings: Iterable[Finding], machine: Machine) -> Wanted:
    """Return the change that would mend what is wrong with an environment, as far as changing packages can."""
    requires: dict[str, str] = {}
    wanted = Wanted()
    order = list(_WAYS)
    for finding in sorted((one for one in findings if one.key in _WAYS), key=lambda one: order.index(one.key)):
        more = _WAYS[finding.key](site, finding, machine)
        for line in more.requires:  # of two ways that name a package the first counts
            requires.setdefault(canonicalize_name(Requirement(line).name), line)
        wanted = Wanted(
            removes=(*wanted.removes, *more.removes),
            again=(*wanted.again, *more.again),
            index_url=wanted.index_url or more.index_url,
        )
    removes = tuple(name for name in dict.fromkeys(wanted.removes) if name not in requires)
    again = tuple(name for name in dict.fromkeys(wanted.again) if name not in removes)
    return replace(wanted, requires=tuple(requires.values()), removes=removes, again=again)


def _one_runtime(site: Site, finding: Finding, machine: Machine) -> Wanted:
    """Keep the flavour of ONNX Runtime that a plan for this machine takes, else the plain one, and install it again.

    What plugs into it in the plan comes along: the provider of the flavour that goes may be a plug-in by now.
    """
    flavours = [canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence]
    plan = _best_plan(site, machine)
    planned = {canonicalize_name(Requirement(line).name) for line in plan.requirements} if plan else set()
    stays = next((name for name in flavours if name in planned), None)
    stays = stays or next((name for name in flavours if name == "onnxruntime"), flavours[0])
    plugins = tuple(sorted(planned & {*runtime_plugins()})) if stays in planned else ()
    return Wanted(removes=tuple(name for name in flavours if name != stays), again=(stays,), requires=plugins)


def _one_version(site: Site, finding: Finding, _machine: Machine) -> Wanted:
    """Install again the version that has most of its files in place; that removes the files of the others."""
    name = str(finding.evidence[0]).partition("==")[0]
    return Wanted(requires=(f"{name}=={version_in_place(site, name)}",), again=(name,))


def _older_numpy(_site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    return Wanted(requires=("numpy<2",))


def _one_index(site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Take what belongs to torch from torch's own index."""
    versions = site.versions
    beside = [name for name in FAMILY if name in versions]
    return Wanted(requires=(f"torch=={versions['torch']}", *beside))


def _for_this_gpu(site: Site, _finding: Finding, machine: Machine) -> Wanted:
    """Take the build that a plan for this machine takes; none where the plan needs variables beside the packages."""
    plan = _best_plan(site, machine)
    if plan is None or plan.env:
        return Wanted()
    lines = [line for line in plan.requirements if carried_by_torch_index(canonicalize_name(Requirement(line).name))]
    named = {canonicalize_name(Requirement(line).name) for line in lines}
    beside = [name for name in FAMILY if name in site.versions and name not in named]
    return Wanted(requires=(*lines, *beside), index_url=plan.index_url)


def _no_directml(site: Site, finding: Finding, _machine: Machine) -> Wanted:
    """Remove what cannot load here; ONNX Runtime comes in its plain flavour where none other is there."""
    names = tuple(canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence)
    alone = sharing("onnxruntime-packages-conflict", site.versions) == ("onnxruntime-directml",)
    return Wanted(removes=names, requires=("onnxruntime",) if alone else ())


def _original(site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Bring back the versions that the environment's constraints name."""
    prefix, versions = Path(site.prefix), site.versions
    lines = guards(prefix)[0].read_text(encoding="utf-8", errors="replace").splitlines()  # its comments may be edited
    pins = (line.strip() for line in lines if "==" in line and not line.startswith("#"))
    others = tuple(pin for pin in pins if versions.get(pin.partition("==")[0]) != pin.partition("==")[2])
    marker = read_marker(prefix)
    return Wanted(requires=others, index_url=marker.plan.index_url if marker else None)


def _what_is_required(_site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Ask for nothing: what is required and does not fit is mended by every change (see `work_out`)."""
    return Wanted()


Way = Callable[[Site, Finding, Machine], Wanted]
_WAYS: dict[str, Way] = {  # in order: where two name the same package, the first counts
    "wrong-backend-build-for-gpu": _for_this_gpu,
    "torch-cpu-build-installed": _for_this_gpu,
    "build-replaced": _original,
    "package-installed-twice": _one_version,
    "directml-on-native-linux": _no_directml,
    "onnxruntime-packages-conflict": _one_runtime,
    "torch-torchvision-mismatch": _one_index,
    "numpy2-abi": _older_numpy,
    "requirement-broken": _what_is_required,
    "torch-pinned": _what_is_required,
}


def _best_plan(site: Site, machine: Machine) -> Plan | None:
    """Return what would be installed into a new environment of the same Python."""
    try:
        return make_plans(machine, load_catalog(), Request(python=site.minor)).choice
    except AssistantError:
        return None
