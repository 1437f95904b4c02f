"""Intel XPU, DirectML, Apple MPS and the CPU: what each offers in a few lines."""

from __future__ import annotations

import re

from assistant.catalog import number, python_range
from assistant.i18n import _
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan.candidates import (
    Candidate,
    Context,
    Offer,
    macos_minimum,
    reject,
    reject_hidden,
    reject_pins,
    reject_system,
    sentence,
)
from assistant.plan.target import Card


def xpu(context: Context) -> list[Offer]:
    """Return one offer: the newest XPU build for an Intel GPU, a discrete one if possible, or a rejection.

    A GPU qualifies if Intel or PyTorch lists it or, with a warning, if it is a discrete one of a listed architecture.
    Returns [] for a machine without Intel GPUs, and on macOS.
    """
    cards = [card for card in context.cards if card.vendor is Vendor.INTEL]
    if not cards or context.target.os == "macos":
        return []
    listed = {card: card.identity.xpu if card.identity else None for card in cards}
    ready = [  # what is listed, and discrete cards of a listed architecture
        card
        for card, support in listed.items()
        if support == "supported" or (support == "undocumented" and not card.integrated)
    ]
    if hidden := reject_hidden(Backend.XPU, Vendor.INTEL, context):
        return [hidden]
    if not ready:
        return [_reject_intel(cards[0])]
    card = min(ready, key=lambda card: card.integrated)
    system = "wsl" if context.target.wsl else context.target.os
    needs = next(row for row in context.catalog.rows("systems.xpu") if row.system == system)
    identity = card.identity
    since = identity and ((context.target.os == "linux" and identity.since_linux) or identity.since)
    least = max(number(needs.torch), number(since or "")[:2])
    wheel = next((wheel for wheel in context.wheels("xpu") if wheel.minor >= least), None)
    if wheel is None:
        free = context._replace(pins=context.pins.unpinned()).wheels("xpu") if context.pins.text else []
        if other := next((wheel for wheel in free if wheel.minor >= least), None):
            return [reject_pins(Backend.XPU, context, other.version, other.variant)]
        pythons = python_range(context.catalog.pythons_of("xpu"))
        help_ = _("It needs x86_64 and Python {pythons}.", pythons=pythons)
        return [reject_system(Backend.XPU, context, help_)]
    reason = sentence("xpu-drives-card", name=card.name, version=wheel.version)
    warnings = []
    if identity and identity.xpu == "undocumented":
        warnings.append(sentence("xpu-card-not-listed", name=card.name))
    if context.target.windows_build and context.target.windows_build < needs.documented_build:
        warnings.append(sentence("xpu-windows-not-documented", windows=needs.documented_name))
    warnings.append(sentence("intel-driver-newest"))
    return [Candidate(Backend.XPU, "xpu", wheel.version, (reason,), tuple(warnings), wheel=wheel, cards=(card,))]


def _reject_intel(card: Card) -> Rejection:
    """Return the rejection of XPU for an Intel GPU that is in no list, or that the list says is not supported."""
    if card.identity is None:
        why = _("{name} is not in the list of Intel GPUs, so it is unknown whether XPU drives it.", name=card.name)
        return reject(Backend.XPU, "gpu-unidentified", why, _("Give its PCI id if the name is not exact."))
    why = _(
        "PyTorch's XPU backend does not support {name} ({generation}).",
        name=card.name,
        generation=card.identity.generation,
    )
    help_ = _("Arc cards and Core Ultra processors with Arc graphics are supported.")
    return reject(Backend.XPU, "xpu-unsupported-igpu", why, help_)


def directml(context: Context) -> list[Offer]:
    """Return one offer: torch-directml with its old torch for a card, a discrete one if possible, or a rejection.

    Returns [] unless the system is Windows or WSL on x86_64 with such a card.
    """
    cards = [card for card in context.cards if _can_use_directml(card, context)]
    target, releases = context.target, context.catalog.rows("directml.releases")
    if not cards or not (target.platform == "windows_amd64" or (target.wsl and target.platform == "linux_x86_64")):
        return []
    first = min(context.catalog.rows("directml.windows"), key=lambda row: row.build)
    if target.windows_build is not None and target.windows_build < first.build:
        why = _("DirectML needs {windows} (build {build}) or newer.", windows=first.name, build=first.build)
        return [reject(Backend.DIRECTML, "windows-too-old", why, _("Update Windows."))]
    fitting = (
        row
        for row in reversed(releases)
        if target.tag in row.pythons
        if (torch := context.catalog.release(row.torch)) and context.pins.allow_release(torch)
    )
    release = next(fitting, None)
    if release is None or context.pins.local:
        newest = releases[-1]
        pythons = python_range(newest.pythons)
        help_ = _("It exists for Python {pythons}, with torch {torch}.", pythons=pythons, torch=newest.torch)
        return [reject_system(Backend.DIRECTML, context, help_)]
    card = min(cards, key=lambda card: card.integrated)
    reason = sentence("directml-drives-card", name=card.name, version=release.version)
    warnings = [sentence("directml-frozen", torch=release.torch)]
    if target.wsl:
        warnings.append(sentence("directml-in-wsl"))
    candidate = Candidate(
        Backend.DIRECTML,
        "directml",
        release.torch,
        (reason,),
        tuple(warnings),
        also=(f"torchvision=={release.torchvision}", f"torch-directml=={release.version}"),
        cards=(card,),
    )
    return [candidate]


def _can_use_directml(card: Card, context: Context) -> bool:
    """Return whether to offer DirectML for a card; never for one that is known to lack DirectX 12.

    NVIDIA's cards, and Intel's that are old or unknown, count only if the user asks for DirectML.
    """
    if card.identity and card.identity.directx12 is False:
        return False
    names = (row.name for row in context.catalog.rows("directml.without_directx12"))
    if card.identity is None and any(re.search(name, card.name, re.IGNORECASE) for name in names):
        return False
    if context.request.backend is Backend.DIRECTML:
        return card.vendor in (Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA)
    if card.vendor is Vendor.INTEL:
        return bool(card.identity and not (card.identity.generation or "").startswith("Gen"))
    return card.vendor is Vendor.AMD


def mps(context: Context) -> list[Offer]:
    """Return one offer: the newest release whose MPS works on this macOS and Python, or a rejection; [] elsewhere."""
    target, newest = context.target, context.catalog.releases[0]
    if target.os != "macos":
        return []
    rosetta = context.machine.rosetta
    radeon = any(card.vendor is Vendor.AMD for card in context.cards)
    if target.platform == "macos_x86_64" and (rosetta or not radeon):
        why = _("An Intel build of Python reaches no Apple GPU.")
        help_ = _("Install a native arm64 Python.") if rosetta else ""
        key = "mps-x86-python-rosetta" if rosetta else "gpu-without-code"
        return [reject(Backend.MPS, key, why, help_)]
    wheels = (
        wheel
        for wheel in context.wheels("pypi")
        if not target.macos or target.macos >= macos_minimum(wheel.release.macos.mps)
    )
    wheel = next(wheels, None)
    needed = newest.macos.mps.removesuffix(".0")
    if wheel is None:
        version = ".".join(map(str, target.macos)) or "?"
        why = _(
            "No release with a wheel for Python {python} has MPS on macOS {macos}.", python=target.python, macos=version
        )
        help_ = _("Update macOS to {macos} or newer.", macos=needed)
        return [reject(Backend.MPS, "macos-too-old", why, help_)]
    reason = sentence("mps-in-wheel", version=wheel.version, least=wheel.release.macos.mps)
    held_back = wheel.release is not newest and target.macos and target.macos < macos_minimum(newest.macos.mps)
    warnings = (sentence("newer-macos", macos=needed),) if held_back else ()
    return [Candidate(Backend.MPS, "pypi", wheel.version, (reason,), warnings, wheel=wheel)]


def cpu(context: Context) -> list[Offer]:
    """Return one offer: the newest build for the CPU, on macOS PyPI's, or a rejection if none installs."""
    family = "pypi" if context.target.os == "macos" else "cpu"
    wheel = next(iter(context.wheels(family)), None)
    if wheel:
        reason = sentence("cpu-build-runs", version=wheel.version)
        return [Candidate(Backend.CPU, wheel.variant, wheel.version, (reason,), wheel=wheel)]
    wheels = context._replace(target=context.target._replace(tag=None)).wheels(family)
    pythons = python_range(tag for wheel in wheels for tag in wheel.pythons)
    if pythons:
        help_ = _("Relax the pins, or use Python {pythons}.") if context.pins.text else _("Use Python {pythons}.")
    else:
        help_ = _("Relax the pin.") if context.pins.text else _("A newer system is needed.")
    return [reject_system(Backend.CPU, context, help_.format(pythons=pythons))]
