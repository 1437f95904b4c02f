"""Intel XPU, DirectML, Apple MPS and the CPU: one short room each."""

from __future__ import annotations

from assistant.catalog import TorchWheel, number, python_range
from assistant.catalog.rows import DirectmlRelease, XpuFloor
from assistant.i18n import Message, Text, _
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan.cards import Card, hidden_by
from assistant.plan.options import Offers, Option, Question, floor


def xpu(question: Question) -> Offers:
    """Answer whether PyTorch's Intel backend drives a card of this machine: only cards that Intel or its code names."""
    cards = [card for card in question.cards if card.vendor is Vendor.INTEL]
    if not cards or question.target.os == "macos":
        return Offers()
    hidden = hidden_by(Vendor.INTEL, question.machine, question.catalog)
    ready = [card for card in cards if _xpu_serves(card)]
    if hidden or not ready:
        return Offers(rejected=(_no_xpu(cards[0], hidden),))
    card = min(ready, key=lambda card: card.integrated)
    least = _since(card, question)
    wheel = next((wheel for wheel in question.wheels("xpu") if wheel.minor >= least), None)
    if wheel is None:
        why = _(
            "No XPU build for {name} installs with Python {python} on this system.",
            name=card.name,
            python=question.target.python,
        )
        pythons = python_range(question.catalog.pythons_of("xpu"))
        helps = _("It needs x86_64 and Python {pythons}.", pythons=pythons)
        return Offers(rejected=(_no(Backend.XPU, "no-wheel-for-system", why, helps),))
    reason = _(
        "{name} is on the list of GPUs that the XPU build of torch {version} drives.",
        name=card.name,
        version=wheel.release.version,
    )
    option = Option(
        Backend.XPU,
        "xpu",
        wheel.release.version,
        (reason,),
        _xpu_warnings(card, question),
        integrated=card.integrated,
        wheel=wheel,
    )
    return Offers((option,))


def _xpu_serves(card: Card) -> bool:
    """Take listed GPUs, and unlisted discrete cards of a listed architecture."""
    identity = card.identity
    if identity is None or identity.xpu is None:
        return False
    return identity.xpu == "supported" or (identity.xpu == "undocumented" and not card.integrated)


def _since(card: Card, question: Question) -> tuple[int, ...]:
    identity = card.identity
    since = identity and ((question.target.os == "linux" and identity.since_linux) or identity.since)
    return max(number(_xpu_floor(question).torch), number(since or "")[:2])


def _xpu_floor(question: Question) -> XpuFloor:
    system = "wsl" if question.target.wsl else question.target.os
    return next(row for row in question.catalog.systems.xpu.rows if row.system == system)


def _xpu_warnings(card: Card, question: Question) -> tuple[Message, ...]:
    found = []
    if card.identity and card.identity.xpu == "undocumented":
        found.append(_("Intel does not list {name}; its architecture is listed.", name=card.name))
    floor_ = _xpu_floor(question)
    if question.target.windows_build and question.target.windows_build < floor_.documented_build:
        found.append(_("Intel documents {windows} for current XPU builds.", windows=floor_.documented_name))
    found.append(_("The newest Intel graphics driver is needed; nothing of oneAPI has to be installed."))
    return tuple(found)


def _no_xpu(card: Card, hidden: str | None) -> Rejection:
    if hidden:
        why = _("{setting} hides every Intel GPU from PyTorch.", setting=hidden)
        return _no(Backend.XPU, "devices-hidden", why, _("Remove that setting from the environment."))
    if card.identity is None:
        why = _("{name} is not in the list of Intel GPUs, so it cannot be told whether XPU drives it.")
        return _no(
            Backend.XPU, "gpu-unidentified", why.format(name=card.name), _("Give its PCI id if the name is not exact.")
        )
    why = _(
        "PyTorch's XPU backend does not support {name} ({generation}).",
        name=card.name,
        generation=card.identity.generation,
    )
    return _no(
        Backend.XPU,
        "xpu-unsupported-igpu",
        why,
        _("Arc cards and Core Ultra processors with Arc graphics are supported."),
    )


def directml(question: Question) -> Offers:
    """Answer whether torch-directml can stand in: Windows or WSL, a DirectX 12 card, one frozen torch."""
    cards = [card for card in question.cards if _draws(card, question)]
    target = question.target
    if not cards or not (target.platform == "windows_amd64" or (target.wsl and target.platform == "linux_x86_64")):
        return Offers()
    first = min(question.catalog.directml.windows.rows, key=lambda row: row.build)
    if target.windows_build is not None and target.windows_build < first.build:
        why = _("DirectML needs {windows} (build {build}) or newer.", windows=first.name, build=first.build)
        return Offers(rejected=(_no(Backend.DIRECTML, "windows-too-old", why, _("Update Windows.")),))
    release = _directml_release(question)
    if release is None:
        why = _("torch-directml has no wheel for Python {python}.")
        if question.wishes.text:
            why = _("torch-directml has no wheel for Python {python} and the pins given.")
        newest = question.catalog.directml.releases.rows[-1]
        helps = _(
            "Python {pythons} has it, with torch {torch}.", pythons=python_range(newest.pythons), torch=newest.torch
        )
        return Offers(rejected=(_no(Backend.DIRECTML, "no-wheel-for-system", why.format(python=target.python), helps),))
    return Offers((_directml_option(release, min(cards, key=lambda card: card.integrated), question),))


def _draws(card: Card, question: Question) -> bool:
    """Tell whether a card has DirectX 12 and no better use: NVIDIA and old Intel GPUs only where it was asked for."""
    if card.identity and card.identity.directx12 is False:
        return False
    if question.asked is Backend.DIRECTML:
        return card.vendor in (Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA)
    if card.vendor is Vendor.INTEL:
        return bool(card.identity and not (card.identity.generation or "").startswith("Gen"))
    return card.vendor is Vendor.AMD


def _directml_release(question: Question) -> DirectmlRelease | None:
    for row in reversed(question.catalog.directml.releases.rows):
        release = question.catalog.release(row.torch)
        if question.target.tag in row.pythons and release and question.wishes.allow_release(release):
            return None if question.wishes.local else row
    return None


def _directml_option(release: DirectmlRelease, card: Card, question: Question) -> Option:
    reason = _(
        "{name} draws through DirectX 12, which torch-directml {version} uses.", name=card.name, version=release.version
    )
    warnings = [_("torch-directml is frozen at torch {torch} and no longer developed.", torch=release.torch)]
    if question.target.wsl:
        warnings.append(_("In WSL, /usr/lib/wsl/lib must be on the loader's path; native Linux has no DirectML."))
    return Option(
        Backend.DIRECTML,
        "directml",
        release.torch,
        (reason,),
        tuple(warnings),
        also=(f"torchvision=={release.torchvision}", f"torch-directml=={release.version}"),
        integrated=card.integrated,
        rank=1,
    )


def mps(question: Question) -> Offers:
    """Answer whether Apple's GPU is reachable: the newest release whose MPS works on this macOS."""
    target = question.target
    if target.os != "macos":
        return Offers()
    if target.platform == "macos_x86_64" and (question.machine.rosetta or not _radeon(question)):
        why = _("An Intel build of Python reaches no Apple GPU.")
        helps = _("Install a native arm64 Python.") if question.machine.rosetta else ""
        key = "mps-x86-python-rosetta" if question.machine.rosetta else "gpu-without-code"
        return Offers(rejected=(_no(Backend.MPS, key, why, helps),))
    wheel = next((wheel for wheel in question.wheels("pypi") if _has_mps(wheel, target.macos)), None)
    if wheel is None:
        return Offers(rejected=(_no_mps(question),))
    reason = _(
        "The macOS wheel of torch {version} contains MPS, which works from macOS {least} on.",
        version=wheel.release.version,
        least=wheel.release.macos.mps,
    )
    warnings: tuple[Message, ...] = ()
    if wheel.release is not question.catalog.releases[0] and target.macos and not _has_mps_now(question):
        warnings = (
            _(
                "A newer macOS opens newer releases with MPS; {macos} is needed for the newest.",
                macos=_newest_macos(question),
            ),
        )
    return Offers((Option(Backend.MPS, "pypi", wheel.release.version, (reason,), warnings, wheel=wheel),))


def _radeon(question: Question) -> bool:
    return any(card.vendor is Vendor.AMD for card in question.cards)


def _has_mps(wheel: TorchWheel, macos: tuple[int, ...]) -> bool:
    return not macos or macos >= floor(wheel.release.macos.mps)


def _has_mps_now(question: Question) -> bool:
    return question.target.macos >= floor(question.catalog.releases[0].macos.mps)


def _newest_macos(question: Question) -> str:
    """Name the macOS that the newest release's MPS needs: "14" for 14.0."""
    return question.catalog.releases[0].macos.mps.removesuffix(".0")


def _no_mps(question: Question) -> Rejection:
    target = question.target
    why = _(
        "No release with a wheel for Python {python} has MPS on macOS {macos}.",
        python=target.python,
        macos=".".join(map(str, target.macos)) or "?",
    )
    return _no(Backend.MPS, "macos-too-old", why, _("Update macOS to {macos} or newer.", macos=_newest_macos(question)))


def cpu(question: Question) -> Offers:
    """Offer the newest CPU build: from the cpu index on Linux and Windows, from PyPI on macOS."""
    family = "pypi" if question.target.os == "macos" else "cpu"
    wheel = next(iter(question.wheels(family)), None)
    if wheel is None:
        return Offers(rejected=(_why_no_cpu(question, family),))
    reason = _("The CPU build of torch {version} runs on any processor of this kind.", version=wheel.release.version)
    return Offers((Option(Backend.CPU, wheel.variant, wheel.release.version, (reason,), rank=2, wheel=wheel),))


def _why_no_cpu(question: Question, family: str) -> Rejection:
    """Say what would open a CPU build: another Python, fewer pins, or else a newer system."""
    pins, target = question.wishes.text, question.target
    wheels = question._replace(target=target._replace(tag=None)).wheels(family)
    pythons = python_range(tag for wheel in wheels for tag in wheel.pythons)
    with_pins = _("No CPU build with {pins} installs with Python {python} on this system.")
    why = with_pins if pins else _("No CPU build installs with Python {python} on this system.")
    if pythons:
        helps = _("Relax the pins, or use Python {pythons}.") if pins else _("Use Python {pythons}.")
    else:
        helps = _("Relax the pin.") if pins else _("Only a newer system opens one.")
    told = why.format(pins=pins, python=target.python)
    return _no(Backend.CPU, "no-wheel-for-system", told, helps.format(pythons=pythons))


def _no(backend: Backend, key: str, why: Message, would_help: Text = "") -> Rejection:
    return Rejection(backend=backend, variant="", key=key, why=why, would_help=would_help)
