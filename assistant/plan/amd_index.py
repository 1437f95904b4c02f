"""AMD's own indexes on Linux and Windows: releases with the code of each card as an extra, and nightly builds."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, number
from assistant.catalog.companions import takes_device_extra
from assistant.catalog.rows import FAMILY, AmdRelease
from assistant.i18n import Message, Text, _
from assistant.model.plan import Backend
from assistant.model.requirement import name_of
from assistant.plan.candidates import Candidate, Context
from assistant.plan.gpus import Card

# They hold wheels for these platforms alone: AMD's release notes (ROCm/TheRock, RELEASES.md).
PLATFORMS = {"linux_x86_64", "windows_amd64"}


def serves(card: Card, context: Context) -> bool:
    """Return whether AMD's own indexes hold code for a card on this operating system, nightly builds as asked for."""
    row = context.catalog.amd_targets.get(card.gfx or "")
    return row is not None and context.target.os in row.systems and (context.nightly or not row.nightly_only)


def only_nightly(card: Card, context: Context) -> Text:
    """Say that AMD builds for a card each night and releases nothing for it; "" where that is not so."""
    row = context.catalog.amd_targets.get(card.gfx or "")
    if row is None or not row.nightly_only or context.target.os not in row.systems or context.target.wsl:
        return ""
    return _(
        "AMD's nightly index alone holds newer builds for {name} ({gfx}); nobody tests them.",
        name=card.name,
        gfx=row.gfx,
    )


def newest(context: Context, cards: list[Card]) -> Candidate | None:
    """Take the newest release that AMD publishes itself, with the code of each card as an extra."""
    return _candidate(AMD_INDEX, context._replace(nightly=False), cards)


def nightly(context: Context, cards: list[Card]) -> Candidate | None:
    """Take AMD's build of the last night: its newest release line of torch, for the ROCm of tomorrow."""
    return _candidate(AMD_NIGHTLY, context, cards)


def _candidate(variant: str, context: Context, cards: list[Card]) -> Candidate | None:
    catalog, target = context.catalog, context.target
    served = [card for card in cards if serves(card, context)]
    if not served or target.wsl or target.platform not in PLATFORMS:
        return None
    release = next((row for row in catalog.amd_releases if _installs(row, context)), None)
    if release is None or (context.pins.local and variant == AMD_NIGHTLY):
        return None
    return Candidate(
        Backend.ROCM,
        variant,
        release.torch,
        (_reason(variant, release, served),),
        (*_warnings(variant, release, served, context),),
        targets=tuple(sorted({card.gfx or "" for card in served})),
        integrated=all(card.integrated for card in served),
        covers=len(served),
        cards=tuple(served),
        index_url=catalog.index_url(variant, f"{release.torch}+rocm{release.rocm}") or "",
    )


def _installs(row: AmdRelease, context: Context) -> bool:
    """Return whether a release installs here and the pins allow it; ==2.14.0+rocm10.1.0 names its ROCm."""
    target, pins = context.target, context.pins
    if target.os not in row.systems or target.tag not in row.pythons or pins.local not in (None, f"rocm{row.rocm}"):
        return False
    torch = context.catalog.release(row.torch)
    enough = not target.glibc or target.glibc >= number(row.glibc)
    return enough and torch is not None and pins._replace(local=None).allow_release(torch)


def _reason(variant: str, release: AmdRelease, served: list[Card]) -> Message:
    if variant == AMD_NIGHTLY:
        text = _("You asked for a nightly build: AMD's nightly index holds torch with code for {names} ({targets}).")
    else:
        text = _("AMD's own index for ROCm {rocm} holds torch {version} with code for {names} ({targets}).")
    return text.format(rocm=release.rocm, version=release.torch, names=names(served), targets=codes(served))


def _warnings(variant: str, release: AmdRelease, served: list[Card], context: Context) -> Iterable[Message]:
    os, known = context.target.os, context.catalog.amd_targets
    if variant == AMD_NIGHTLY:
        yield _("A nightly build is made each night and barely tested; use it only for what no release has.")
    for card in served:
        if os not in known[card.gfx or ""].tested:
            yield _("AMD publishes builds for {name} ({gfx}) but does not test on it.", name=card.name, gfx=card.gfx)
    if os == "windows" and release.adrenalin:
        yield _("AMD advises Adrenalin {driver} or newer for these wheels.", driver=release.adrenalin)


def with_device_code(line: str, targets: tuple[str, ...]) -> str:
    """Return a requirement line with the code of GPU targets as extras, where AMD's indexes keep it in such."""
    if not targets or not takes_device_extra((need := Requirement(line)).name):
        return line
    extras = sorted({*need.extras, *(f"device-{gfx}" for gfx in targets)})
    return f"{need.name}[{','.join(extras)}]{need.specifier}"


def family_line(line: str, variant: str) -> str:
    """Return the line for torchvision or torchaudio, on AMD's indexes bounded by its release line.

    There it is a pre-release (0.29.0a0+rocm10.1.0) or a patch of AMD's own (2.11.0.3+rocm10.1.0):
    https://github.com/ROCm/TheRock/issues, installs of 2026-09 and 2026-10.
    """
    if variant not in (AMD_INDEX, AMD_NIGHTLY) or name_of(line) not in FAMILY:
        return line
    major, minor = number(line.partition("==")[2])[:2]
    return f"{name_of(line)}<{major}.{minor + 1},>={major}.{minor}.0a0"


def targets_of(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the GPU targets whose code requirement lines ask for, "gfx1100"; none where no line asks for extras."""
    with_code = (Requirement(line) for line in lines if "device-" in line)
    extras = {extra for need in with_code for extra in need.extras if extra.startswith("device-")}
    return tuple(sorted(extra.removeprefix("device-") for extra in extras))


def names(cards: Iterable[Card]) -> str:
    """Name cards in one line, each once."""
    return ", ".join(dict.fromkeys(card.name for card in cards))


def codes(cards: Iterable[Card]) -> str:
    """Name the GPU targets of cards in one line, each once."""
    return ", ".join(sorted({card.gfx or "" for card in cards}))
