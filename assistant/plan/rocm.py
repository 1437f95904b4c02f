"""AMD: the Linux builds of pytorch.org, AMD's own index on Linux and Windows, and the override as a bridge."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.catalog import AMD_INDEX, TorchWheel, number, python_range
from assistant.catalog.rows import AmdRelease
from assistant.i18n import Message, Text, _
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan.cards import Card, hidden_by
from assistant.plan.options import Offers, Option, Question

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


def offers(question: Question) -> Offers:
    """Answer which ROCm builds serve the machine's AMD cards; discrete cards decide over integrated ones."""
    cards = [card for card in question.cards if card.vendor is Vendor.AMD]
    if not cards or question.target.os == "macos":
        return Offers()
    hidden = hidden_by(Vendor.AMD, question.machine, question.catalog)
    if hidden:
        why = _("{setting} hides every AMD GPU from PyTorch.", setting=hidden)
        return Offers(rejected=(_no("devices-hidden", why, _("Remove that setting from the environment.")),))
    wanted = _deciding(cards, question)
    options = _ways(question, wanted)
    if options:
        return Offers(tuple(_warned(option, cards, question) for option in options))
    return Offers(rejected=(_why_none(question, cards),))


def _deciding(cards: list[Card], question: Question) -> list[Card]:
    """Keep the cards that some build serves, and of those the discrete ones where there are any."""
    served = [card for card in cards if card.gfx and _served_at_all(card.gfx, question)]
    return [card for card in served if not card.integrated] or served


def _served_at_all(gfx: str, question: Question) -> bool:
    catalog, target = question.catalog, question.target
    if gfx in catalog.amd_targets and target.os in catalog.amd_targets[gfx].systems:
        return True
    return target.os == "linux" and any(gfx in row.gfx for row in catalog.rocm.code.rows)


def _ways(question: Question, cards: list[Card]) -> list[Option]:
    """List the ways in order of trust; one that leaves no card out goes before any that does."""
    if not cards:
        return []
    native, bridge, own = _native(question, cards), _bridge(question, cards), _own_index(question, cards)
    ways = [native, own] if native and native.covers == len(cards) else [bridge, own, native]
    return sorted(filter(None, ways), key=lambda way: -way.covers)


def _native(question: Question, cards: list[Card]) -> Option | None:
    """Find the newest Linux build with code for all cards, else for as many as possible."""
    wheels = _linux_builds(question)
    if question.target.wsl:
        known = tuple(row.prefix for row in question.catalog.rocm.families.rows if row.wsl)
        cards = [card for card in cards if (card.gfx or "").startswith(known)]
    wheel = _newest(wheels, cards, question)
    if wheel is None:
        return None
    served = [card for card in cards if card.gfx in question.catalog.gfx(wheel)]
    reason = _(
        "{variant} of torch {version} holds code for {names} ({targets}).",
        variant=wheel.variant,
        version=wheel.release.version,
        names=_names(served),
        targets=_targets(served),
    )
    unsure = () if wheel.confirmed else (_("No index has been seen to hold this build; check before you rely on it."),)
    return _option(wheel, served, (reason,), warnings=(*unsure, *_old_support(wheel, served, question)))


def _linux_builds(question: Question) -> list[TorchWheel]:
    return question.wheels("rocm") if question.target.os == "linux" else []


def _newest(wheels: list[TorchWheel], cards: list[Card], question: Question) -> TorchWheel | None:
    def rating(wheel: TorchWheel) -> tuple[int, bool, tuple[int, ...]]:
        codes = question.catalog.gfx(wheel)
        return sum(card.gfx in codes for card in cards), wheel.confirmed, wheel.number

    best = max(wheels, key=rating, default=None)  # max keeps the first of equals: variants stand best first
    return best if best and rating(best)[0] else None


def _old_support(wheel: TorchWheel, cards: list[Card], question: Question) -> Iterable[Message]:
    newest = question.catalog.gfx(_linux_builds(question)[0])
    for card in cards:
        if card.gfx not in newest:
            yield _(
                "AMD no longer supports {name} ({gfx}); torch {version} is the last that runs on it.",
                name=card.name,
                gfx=card.gfx,
                version=wheel.release.version,
            )


def _bridge(question: Question, cards: list[Card]) -> Option | None:
    """Pretend a sister target: only Linux, only where every AMD card of the machine may pretend the same."""
    rows = [question.catalog.overrides.get(card.gfx or "") for card in cards]
    if question.target.wsl or not all(row and row.state == "works" for row in rows):
        return None
    everywhere = {_pretended(card, question) for card in question.cards if card.vendor is Vendor.AMD and card.gfx}
    wheels = [wheel for wheel in _linux_builds(question) if wheel.confirmed]
    twin = everywhere.pop()
    wheel = next((wheel for wheel in wheels if twin in question.catalog.gfx(wheel)), None)
    if everywhere or wheel is None:
        return None
    value = next(row.value for row in rows if row)
    reason = _(
        "{variant} lacks {targets}; with {name}={value} these cards run the code of {twin}.",
        variant=wheel.variant,
        targets=_targets(cards),
        name=OVERRIDE,
        value=value,
        twin=twin,
    )
    return _option(wheel, cards, (reason,), env={OVERRIDE: value})


def _pretended(card: Card, question: Question) -> str:
    row = question.catalog.overrides.get(card.gfx or "")
    return row.as_gfx if row else card.gfx or ""


def _own_index(question: Question, cards: list[Card]) -> Option | None:
    """Take the wheels that AMD publishes itself, with the code of each card as an extra."""
    catalog, target = question.catalog, question.target
    known = catalog.amd_targets
    served = [card for card in cards if card.gfx in known and target.os in known[card.gfx or ""].systems]
    release = _amd_release(question) if served and target.platform in {"linux_x86_64", "windows_amd64"} else None
    if release is None or target.wsl:
        return None
    extras = ",".join(f"device-{gfx}" for gfx in sorted({card.gfx or "" for card in served}))
    reason = _(
        "AMD's own index holds torch {version} with code for {names} ({targets}).",
        version=release.torch,
        names=_names(served),
        targets=_targets(served),
    )
    untested = [card for card in served if target.os not in known[card.gfx or ""].tested]
    return Option(
        Backend.ROCM,
        AMD_INDEX,
        release.torch,
        (reason,),
        tuple(
            _("AMD builds for {name} ({gfx}) without testing it.", name=card.name, gfx=card.gfx) for card in untested
        ),
        requirement=f"torch[{extras}]=={{version}}",
        integrated=all(card.integrated for card in served),
        covers=len(served),
    )


def _amd_release(question: Question) -> AmdRelease | None:
    target, wishes = question.target, question.wishes
    for row in question.catalog.amd_releases:
        release = question.catalog.release(row.torch)
        installs = target.tag in row.pythons and (not target.glibc or target.glibc >= number(row.glibc))
        if installs and release and wishes.allow_release(release) and not wishes.local:
            return row
    return None


def _option(
    wheel: TorchWheel,
    cards: list[Card],
    reasons: tuple[Message, ...],
    *,
    warnings: tuple[Message, ...] = (),
    env: dict[str, str] | None = None,
) -> Option:
    return Option(
        Backend.ROCM,
        wheel.variant,
        wheel.release.version,
        reasons,
        warnings,
        env=env or {},
        integrated=all(card.integrated for card in cards),
        covers=len(cards),
        wheel=wheel,
    )


def _warned(option: Option, cards: list[Card], question: Question) -> Option:
    """Add what holds for any way on this machine."""
    env, more = dict(option.env), []
    if question.target.wsl:
        env["HSA_ENABLE_DXG_DETECTION"] = "1"
        more.append(_("In WSL, ROCm goes over /dev/dxg: install AMD's WSL runtime (librocdxg) and a current driver."))
    elif question.target.os == "windows":
        release = next((row for row in question.catalog.amd_releases if row.torch == option.version), None)
        if release and release.adrenalin:
            more.append(_("AMD advises Adrenalin {driver} or newer for these wheels.", driver=release.adrenalin))
    already = question.machine.env.get(OVERRIDE)
    if already and already != env.get(OVERRIDE):
        more.append(
            _("{name}={value} is set here and would mislead this build; remove it.", name=OVERRIDE, value=already)
        )
    if option.integrated:
        rows = question.catalog.rocm.caveats.rows
        more += [_(row.text, name=card.name) for card in cards for row in rows if row.gfx == card.gfx]
    if len({card.integrated for card in cards}) > 1:
        more.append(
            _("Hide the integrated GPU with HIP_VISIBLE_DEVICES where a program picks it instead of the discrete card.")
        )
    return option._replace(env=env, warnings=(*option.warnings, *more))


def _why_none(question: Question, cards: list[Card]) -> Rejection:
    card = next((card for card in cards if not card.integrated), cards[0])
    target = question.target
    if card.gfx and _served_at_all(card.gfx, question):
        return _no_build(card, question)
    if card.identity is None and card.gfx is None:
        return _no(
            "gpu-unidentified",
            _("{name} could not be identified, so no ROCm build can be chosen for it.", name=card.name),
            _('Say what it is: add "gfx" to the machine, as rocminfo prints it.'),
        )
    what = card.gfx or (card.identity.generation if card.identity else None) or card.name
    if target.os == "windows" and card.gfx and any(card.gfx in row.gfx for row in question.catalog.rocm.code.rows):
        return _no(
            "gpu-without-code",
            _("AMD publishes no Windows wheels for {name} ({gfx}).", name=card.name, gfx=card.gfx),
            _("Linux has ROCm wheels for it."),
        )
    why = _("No ROCm build holds code for {name} ({gfx}).", name=card.name, gfx=what)
    current = tuple(row.prefix for row in question.catalog.rocm.families.rows if row.current)
    if card.gfx and card.gfx.startswith(current):
        return _no(
            "gpu-newer-than-catalogue",
            why,
            _("A newer ROCm than this catalogue knows may hold it: refresh the catalogue."),
        )
    return _no(
        "gpu-without-code",
        why,
        _("DirectML in Windows drives it.") if target.os == "linux" and _has_directx(card) else "",
    )


def _has_directx(card: Card) -> bool:
    return card.identity is None or card.identity.directx12 is not False


def _no_build(card: Card, question: Question) -> Rejection:
    if question.target.platform not in {"linux_x86_64", "windows_amd64"}:
        return _no("no-wheel-for-system", _("ROCm builds exist for x86_64 only."))
    if question.target.wsl:
        return _no(
            "rocm-wsl-unsupported-gpu",
            _("AMD's WSL runtime does not know {name} ({gfx}).", name=card.name, gfx=card.gfx),
            _("Use ROCm in Windows itself or in Linux without WSL."),
        )
    if question.wishes.text:
        return _no(
            "pins-exclude-build",
            _("No ROCm build for {name} satisfies {pins}.", name=card.name, pins=question.wishes.text),
            _("Relax the pin."),
        )
    pythons = [tag for row in question.catalog.amd_releases for tag in row.pythons]
    return _no(
        "no-wheel-for-system",
        _(
            "No ROCm build for {name} installs with Python {python} here.",
            name=card.name,
            python=question.target.python,
        ),
        _("Python {pythons} opens ROCm for it.", pythons=python_range(pythons)),
    )


def _no(key: str, why: Message, would_help: Text = "") -> Rejection:
    return Rejection(backend=Backend.ROCM, variant="", key=key, why=why, would_help=would_help)


def _names(cards: list[Card]) -> str:
    return ", ".join(dict.fromkeys(card.name for card in cards))


def _targets(cards: list[Card]) -> str:
    return ", ".join(sorted({card.gfx or "" for card in cards}))
