"""AMD: the Linux builds of pytorch.org, AMD's own indexes on Linux and Windows, and the override as a bridge.

AMD's own indexes hold releases with the code of each card as an extra, and nightly builds.
"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, TorchWheel, number, python_range
from assistant.catalog.companions import takes_device_extra
from assistant.catalog.tables import FAMILY, AmdRelease
from assistant.i18n import Message, Text, _, sentences
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection, name_of
from assistant.model.record import replace
from assistant.plan.candidates import (
    Candidate,
    Context,
    Offer,
    reject,
    reject_hidden,
    reject_pins,
    reject_system,
    sentence,
    with_assumed_code,
)
from assistant.plan.target import Card

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
# AMD's own indexes hold wheels for these platforms alone: AMD's release notes (ROCm/TheRock, RELEASES.md).
_AMD_PLATFORMS = {"linux_x86_64", "windows_amd64"}


def offers(context: Context) -> list[Offer]:
    """Return the ROCm candidates for the machine's AMD cards, as `_candidates` sorts them, or one rejection.

    Integrated cards count only if no discrete one has a build. [] for a machine without AMD cards, and on macOS.
    """
    cards = [card for card in context.cards if card.vendor is Vendor.AMD]
    if not cards or context.target.os == "macos":
        return []
    if hidden := reject_hidden(Backend.ROCM, Vendor.AMD, context):
        return [hidden]
    served = [card for card in cards if _has_any_build(card, context)]
    deciding = [card for card in served if not card.integrated] or served
    candidates = [_with_environment(candidate, cards, context) for candidate in _candidates(context, deciding)]
    return [*candidates] or [_reject_all(context, cards, deciding)]


def _has_any_build(card: Card, context: Context) -> bool:
    """Return whether some build for this operating system holds code for a card."""
    on_linux = context.target.os == "linux" and any(card.gfx in row.gfx for row in context.catalog.rocm_code)
    return on_linux or _is_in_amd_index(card, context)


def _candidates(context: Context, cards: list[Card]) -> list[Candidate]:
    """Return the candidates for some cards, those that serve more of them first, of PyTorch's index and AMD's.

    Of equals the order is: AMD's nightly build, if asked for, but not beside PyTorch's of the newest torch, which has a
    nightly one of its own; then PyTorch's, if it serves all cards, and AMD's; else AMD's, PyTorch's with the override,
    which every shell and service would have to set, and PyTorch's.
    """
    if not cards:
        return []
    native, bridge = _from_pytorch_index(context, cards), _with_override(context, cards)
    own = _from_amd_index(AMD_INDEX, context._replace(request=replace(context.request, nightly=False)), cards)
    found = [native, own] if native and len(native.cards) == len(cards) else [own, bridge, native]
    if context.request.nightly and not (native and native.version == context.catalog.newest_torch):
        # What else is built each night continues the newest torch.
        found.insert(0, _from_amd_index(AMD_NIGHTLY, context, cards))
    return sorted(filter(None, found), key=lambda candidate: -len(candidate.cards))


def _from_pytorch_index(context: Context, cards: list[Card]) -> Candidate | None:
    """Return PyTorch's newest Linux build with code for all cards, else for as many as possible; None for none.

    Of builds for as many cards, one that an index was seen to hold goes first. In WSL only some families count.
    """
    wheels = context.wheels("rocm")
    if context.target.wsl:
        prefixes = tuple(row.prefix for row in context.catalog.rows("rocm.families") if row.wsl)
        cards = [card for card in cards if (card.gfx or "").startswith(prefixes)]

    rated = [(sum(card.gfx in wheel.gfx for card in cards), wheel.confirmed, wheel.number) for wheel in wheels]
    wheel = wheels[rated.index(max(rated))] if rated else None  # the first of equals: variants stand best first
    served = [card for card in cards if wheel and card.gfx in wheel.gfx]
    if wheel is None or not served:
        return None
    values = {"variant": wheel.variant, "version": wheel.version, "names": _names(served), "targets": _codes(served)}
    reason = with_assumed_code(sentence("rocm-build-has-code", **values), wheel)
    unsure = [] if wheel.confirmed else [sentence("build-not-seen")]
    newer = wheels[0]
    ended = [_why_last(card, wheel, context) for card in served if card.gfx not in newer.gfx]
    return Candidate(
        Backend.ROCM, wheel.variant, wheel.version, (reason,), (*unsure, *ended), wheel=wheel, cards=tuple(served)
    )


def _why_last(card: Card, wheel: TorchWheel, context: Context) -> Message:
    """Return the warning that newer builds lack a card's code, and that AMD's nightly index has it, if that is so."""
    ended = next((row.rocm for row in context.catalog.rows("rocm.ends") if row.gfx == card.gfx), "")
    key = "rocm-support-ended" if ended else "rocm-no-newer-build"
    said = sentence(key, name=card.name, gfx=card.gfx or "", version=wheel.version, rocm=ended)
    return sentences((said, _nightly_only_text(card, context)))


def _with_override(context: Context, cards: list[Card]) -> Candidate | None:
    """Return the newest build of a related target, whose code these cards run with `OVERRIDE` set to that target.

    Returns None if this is not known to work for each of them, in WSL, if the machine's AMD cards would not all have
    the same target then, and if no index was seen to hold such a build.
    """
    overrides = context.catalog.by("rocm.overrides", "gfx")
    rows = [overrides.get(card.gfx or "") for card in cards]
    if context.target.wsl or not all(row and row.state == "works" for row in rows):
        return None
    targets = [card.gfx for card in context.cards if card.vendor is Vendor.AMD and card.gfx]
    pretended = {overrides[gfx].as_gfx if gfx in overrides else gfx for gfx in targets}
    twin = pretended.pop()
    builds = (wheel for wheel in context.wheels("rocm") if wheel.confirmed and twin in wheel.gfx)
    wheel = next(builds, None)
    if pretended or wheel is None:
        return None
    value = next(row.value for row in rows if row)
    reason = sentence(
        "rocm-sister-code",
        variant=wheel.variant,
        targets=_codes(cards),
        name=OVERRIDE,
        value=value,
        twin=twin,
    )
    reasons = (with_assumed_code(reason, wheel),)
    return Candidate(
        Backend.ROCM, wheel.variant, wheel.version, reasons, env={OVERRIDE: value}, wheel=wheel, cards=tuple(cards)
    )


def _with_environment(candidate: Candidate, cards: list[Card], context: Context) -> Candidate:
    """Return a candidate with the variables and warnings that any ROCm build needs on a machine with these cards."""
    env, more = dict(candidate.env), []
    if context.target.wsl:
        env["HSA_ENABLE_DXG_DETECTION"] = "1"
        more.append(sentence("rocm-in-wsl"))
    already = context.machine.env.get(OVERRIDE)
    if already and already != env.get(OVERRIDE):
        more.append(sentence("hsa-override-misleads", name=OVERRIDE, value=already))
    if candidate.integrated:
        rows = context.catalog.rows("rocm.caveats")
        more += [
            _(row.text, f"rocm-caveat-{row.gfx}", name=card.name)
            for card in cards
            for row in rows
            if row.gfx == card.gfx
        ]
    if len({card.integrated for card in cards}) > 1:
        more.append(sentence("hide-integrated-gpu"))
    return candidate._replace(env=env, warnings=(*candidate.warnings, *more))


def _reject_all(context: Context, cards: list[Card], deciding: list[Card]) -> Rejection:
    """Return the rejection of ROCm for the first discrete card, else the first of all.

    `deciding` are the cards that a build was sought for. The reason is that the card is unknown, that no build or only
    a nightly one has code for it, or what is in the way of its build here (`_reject_here`).
    """
    card = next((card for card in cards if not card.integrated), cards[0])
    name, gfx, os = card.name, card.gfx, context.target.os
    if gfx and _has_any_build(card, context):
        return _reject_here(card, context, deciding)
    if card.identity is None and gfx is None:
        why = _("{name} could not be identified, so no ROCm build can be chosen for it.", name=name)
        help_ = _('Name its target: add "gfx" to the machine, as rocminfo prints it.')
        return reject(Backend.ROCM, "gpu-unidentified", why, help_)
    if alone := _nightly_only_text(card, context):
        help_ = _("Choose nightly builds to try it.", option="--nightly")
        return reject(Backend.ROCM, "nightly-only", alone, help_, AMD_NIGHTLY)
    if os == "windows" and gfx and any(gfx in row.gfx for row in context.catalog.rocm_code):
        why = _("AMD publishes no Windows wheels for {name} ({gfx}).", name=name, gfx=gfx)
        return reject(Backend.ROCM, "gpu-without-code", why, _("Linux has ROCm wheels for it."))
    what = gfx or (card.identity.generation if card.identity else None) or name
    why = _("No ROCm build holds code for {name} ({gfx}).", name=name, gfx=what)
    current = tuple(row.prefix for row in context.catalog.rows("rocm.families") if row.current)
    if gfx and gfx.startswith(current):
        help_ = _("A newer ROCm than this catalogue knows may hold it: refresh the catalogue.")
        return reject(Backend.ROCM, "gpu-newer-than-catalogue", why, help_)
    directx = card.identity is None or card.identity.directx12 is not False
    in_windows = _("DirectML on Windows supports it.") if os == "linux" and directx else ""
    return reject(Backend.ROCM, "gpu-without-code", why, in_windows)


def _reject_here(card: Card, context: Context, deciding: list[Card]) -> Rejection:
    """Return the rejection of ROCm for what is in the way of a card that has a build: processor, WSL, pins, or Python.

    WSL and the pins are blamed if there is a candidate for the `deciding` cards without that one alone.
    """
    if context.target.platform not in _AMD_PLATFORMS:
        return reject(Backend.ROCM, "no-wheel-for-system", _("ROCm builds exist for x86_64 only."))
    opened = context.without_each(("wsl", "pins"), lambda freed: next(iter(_candidates(freed, deciding)), None))
    if "wsl" in opened:
        why = _("AMD's WSL runtime does not know {name} ({gfx}).", name=card.name, gfx=card.gfx)
        help_ = _("Use ROCm in Windows itself or in Linux without WSL.")
        return reject(Backend.ROCM, "rocm-wsl-unsupported-gpu", why, help_)
    if found := opened.get("pins"):
        return reject_pins(Backend.ROCM, context, found.version, found.variant)
    pythons = python_range(tag for row in context.catalog.amd_releases for tag in row.pythons)
    return reject_system(Backend.ROCM, context, _("Use Python {pythons} to get ROCm.", pythons=pythons))


def _is_in_amd_index(card: Card, context: Context) -> bool:
    """Return whether AMD's own indexes hold code for a card on this system; nightly builds count only if asked for."""
    row = context.catalog.amd_targets.get(card.gfx or "")
    return row is not None and context.target.os in row.systems and (context.request.nightly or not row.nightly_only)


def _nightly_only_text(card: Card, context: Context) -> Text:
    """Return the sentence that AMD has only nightly builds for a card here; "" if that is not so, and in WSL."""
    row = context.catalog.amd_targets.get(card.gfx or "")
    if row is None or not row.nightly_only or context.target.os not in row.systems or context.target.wsl:
        return ""
    return sentence("amd-nightly-index-alone", name=card.name, gfx=row.gfx)


def _from_amd_index(variant: str, context: Context, cards: list[Card]) -> Candidate | None:
    """Return the newest release on AMD's own index that installs here, with the code of each card as an extra.

    `variant` is `AMD_INDEX`, or `AMD_NIGHTLY` for the nightly build, which is of AMD's newest release line of torch,
    for the ROCm of tomorrow. Returns None if there is none, in WSL, and for a nightly build if the pins name a build.
    """
    catalog, target = context.catalog, context.target
    served = [card for card in cards if _is_in_amd_index(card, context)]
    if not served or target.wsl or target.platform not in _AMD_PLATFORMS:
        return None
    release = next((row for row in catalog.amd_releases if _can_install(row, context)), None)
    if release is None or (context.pins.local and variant == AMD_NIGHTLY):
        return None
    key, warnings = "amd-index-has-code", []
    if variant == AMD_NIGHTLY:
        key, warnings = "amd-nightly-index-has-code", [sentence("nightly-untested")]
    if target.os == "windows" and release.adrenalin:
        warnings.append(sentence("adrenalin-advised", driver=release.adrenalin))
    return Candidate(
        Backend.ROCM,
        variant,
        release.torch,
        (sentence(key, rocm=release.rocm, version=release.torch, names=_names(served), targets=_codes(served)),),
        tuple(warnings),
        targets=tuple(sorted({card.gfx or "" for card in served})),
        cards=tuple(served),
        index_url=catalog.index_url(variant, f"{release.torch}+rocm{release.rocm}") or "",
    )


def _can_install(row: AmdRelease, context: Context) -> bool:
    """Return whether a release of AMD's index installs here and the pins allow it; a tag such as +rocm10.1.0 counts."""
    target, pins = context.target, context.pins
    if target.os not in row.systems or target.tag not in row.pythons or pins.local not in (None, f"rocm{row.rocm}"):
        return False
    torch = context.catalog.release(row.torch)
    enough = not target.glibc or target.glibc >= number(row.glibc)
    return enough and torch is not None and pins._replace(local=None).allow_release(torch)


def with_device_code(line: str, targets: tuple[str, ...]) -> str:
    """Return a requirement line with a "device-" extra for each GPU target, if its package has such on AMD's index."""
    if not targets or not takes_device_extra((need := Requirement(line)).name):
        return line
    extras = sorted({*need.extras, *(f"device-{gfx}" for gfx in targets)})
    return f"{need.name}[{','.join(extras)}]{need.specifier}"


def family_line(line: str, variant: str) -> str:
    """Return a line that pins torchvision or torchaudio with "==", for AMD's indexes with bounds of its minor release.

    There it is a pre-release (0.29.0a0+rocm10.1.0) or a patch of AMD's own (2.11.0.3+rocm10.1.0):
    https://github.com/ROCm/TheRock/issues, installs of 2026-09 and 2026-10. Lines of all other packages, torch's too,
    and those for other variants stay as they are.
    """
    if variant not in (AMD_INDEX, AMD_NIGHTLY) or name_of(line) not in FAMILY:
        return line
    major, minor = number(line.partition("==")[2])[:2]
    return f"{name_of(line)}<{major}.{minor + 1},>={major}.{minor}.0a0"


def device_targets(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the GPU targets in the "device-" extras of requirement lines, such as "gfx1100", sorted."""
    with_code = (Requirement(line) for line in lines if "device-" in line)
    extras = {extra for need in with_code for extra in need.extras if extra.startswith("device-")}
    return tuple(sorted(extra.removeprefix("device-") for extra in extras))


def _names(cards: Iterable[Card]) -> str:
    """Return the names of cards in one line, each once, in their order."""
    return ", ".join(dict.fromkeys(card.name for card in cards))


def _codes(cards: Iterable[Card]) -> str:
    """Return the GPU targets of cards in one line, each once, sorted."""
    return ", ".join(sorted({card.gfx or "" for card in cards}))
