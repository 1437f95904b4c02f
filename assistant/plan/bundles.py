"""The packages of a bundle beside a candidate's torch: what to ask for, and what cannot be had here."""

from __future__ import annotations

from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY
from assistant.catalog.bundles import BundlePackage, load_bundles
from assistant.catalog.companions import bounds_beside
from assistant.catalog.recipes import Recipe, bundle_of
from assistant.catalog.rows import FAMILY
from assistant.i18n import Message, _
from assistant.plan.candidates import Candidate, Context
from assistant.plan.pins import companions

# Indexes that are not the catalogue's builds of a release: what they hold beside torch, their own tables say.
_ELSEWHERE = {AMD_INDEX, AMD_NIGHTLY, "directml", "pypi"}


class Beside(NamedTuple):
    """Requirements of a bundle: torch's `family`, from torch's own index, and `others`; `warnings` name what lacks.

    A bundle that stands `alone` brings its own ONNX and ONNX Runtime, or has no use for any: ours could only be in
    the way of what it pins.
    """

    family: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    warnings: tuple[Message, ...] = ()
    alone: bool = False


def beside(candidate: Candidate, context: Context) -> Beside:
    """Choose the packages of the bundle that was asked for; what no index holds for this machine is left out."""
    bundle = bundle_of(context.bundle)
    if isinstance(bundle, Recipe):  # its requirements are among the pins
        return Beside(others=bundle.also.get(candidate.backend, ()), alone=True)
    pinned = {pin.name.lower() for pin in (*context.pins.family, *context.pins.others)}
    found = {name: _line(name, candidate, context) for name in bundle.requirements if name not in pinned}
    text = _(
        "“{bundle}” comes without {packages}: no build is known for torch {torch} and Python {python} on this system."
    )
    lacking = ", ".join(name for name, line in found.items() if not line)
    values = {"bundle": bundle.name, "torch": candidate.version, "python": context.target.python}
    return Beside(
        family=tuple(line for name, line in found.items() if line and name in FAMILY),
        others=tuple(line for name, line in found.items() if line and name not in FAMILY),
        warnings=(text.format(packages=lacking, **values),) if lacking else (),
    )


def bundle_mb(key: str) -> int | None:
    """Estimate what a bundle adds to a download, in MB; None where no figure is known."""
    return bundle_of(key).mb


def _line(name: str, candidate: Candidate, context: Context) -> str:
    if name in FAMILY:
        return _family_line(name, candidate, context)
    row = next((row for row in load_bundles().packages.rows if row.package == name), None)
    return _package_line(row, candidate, context) if row else name


def _package_line(row: BundlePackage, candidate: Candidate, context: Context) -> str:
    """Return the requirement of a package, "" where it has no wheel; free-threaded Pythons are tried all the same."""
    tag = context.target.tag
    known = row.pythons.get(context.target.platform, row.pythons["any"])
    if tag and tag.isdigit() and tag not in known:
        return ""
    return f"{row.package}{bounds_beside(row.package, candidate.version)}"


def _family_line(name: str, candidate: Candidate, context: Context) -> str:
    """Pin torchvision or torchaudio to the release that goes with torch, where its build has a wheel."""
    version = built_companion(Requirement(name), candidate, context)
    return f"{name}=={version}" if version else ""


def built_companion(pin: Requirement, candidate: Candidate, context: Context) -> str:
    """Return the newest torchvision or torchaudio for a torch that satisfies a pin and has its build; "" for none."""
    release = context.catalog.release(candidate.version)
    fitting = companions(pin, release) if release else []
    name, target = canonicalize_name(pin.name), context.target
    build = (candidate.variant, target.platform, target.tag)
    own_index = candidate.variant in _ELSEWHERE - {"pypi"}  # which is not torch's, and has what it has
    return next(
        (one for one in fitting if own_index or context.catalog.has_companion(name, one, candidate.version, build)), ""
    )
