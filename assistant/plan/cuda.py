"""NVIDIA: compute capability, driver and published builds decided together, over every card of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.catalog import JETSON_INDEX, Catalog, Number, TorchWheel, has_code, number, python_range
from assistant.catalog.tables import Row
from assistant.i18n import Message, _
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
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
from assistant.plan.target import USUAL_PYTHON, Card


def offers(context: Context) -> list[Offer]:
    """Return CUDA's candidates, best first, and rejections after them; [] for a machine without NVIDIA cards.

    The first candidate is the best build for all cards that decide (`_cards_that_decide`). A second is of a newer
    torch, if there is one for the newest card alone. Rejections say what would bring a newer torch, or without a
    candidate, why there is none.
    """
    cards = [card for card in context.cards if card.vendor is Vendor.NVIDIA]
    if not cards:
        return []
    if stop := reject_hidden(Backend.CUDA, Vendor.NVIDIA, context) or _reject_driver_state(context):
        return [stop]
    deciding = _cards_that_decide(cards, context.catalog)
    fitting = _builds_for_driver(context)
    chosen = _best_build(fitting, deciding, context)
    if chosen is None:
        return _reject_all(context, deciding)
    found: list[Offer] = [_to_candidate(chosen, cards, context)]
    newest = max(deciding, key=lambda card: card.capability)
    alone = _best_build(fitting, [newest], context)
    if alone is not None and alone.number > chosen.number:  # covering every card holds torch back
        found.append(_to_candidate(alone, cards, context))
    return [*found, *_newer_builds_missed(context, chosen, deciding)]


def _reject_driver_state(context: Context) -> Rejection | None:
    """Return the rejection of CUDA, with what to do, if NVIDIA's driver is known not to be ready; else None."""
    obstacle = context.driver.obstacle
    if obstacle is None:
        return None
    build = context.catalog.releases[0].pypi["linux_x86_64"]
    help_ = obstacle.wsl_help if context.target.wsl and obstacle.wsl_help else obstacle.help
    return reject(Backend.CUDA, obstacle.key, _(obstacle.text), _(help_, floor=_needed_driver(build, context)))


def _cards_that_decide(cards: Iterable[Card], catalog: Catalog) -> list[Card]:
    """Return the cards whose code must be in the build: all but retired ones, or all if every card is retired.

    A card is retired if its last driver runs none of the newest release's builds, as for Kepler and older. A card
    without a known capability gets that of its family.
    """
    rated = [
        card if card.capability else card._replace(capability=number(_family_by_name(card.name, catalog).capability))
        for card in cards
    ]
    return [card for card in rated if not () < _last_branch(card, catalog)[:1] < catalog.oldest_driver] or rated


def _family_by_name(name: str, catalog: Catalog) -> Row:
    """Return the row of the first family whose pattern (`words`) occurs in a card's name, for cards in no other table.

    `capability` is what to assume of the card. The last row's pattern is empty and takes every name: a current card.
    """
    return next(row for row in catalog.rows("cuda.families") if re.search(row.words, name))


def _last_branch(card: Card, catalog: Catalog) -> Number:
    """Return the last driver branch that knows a card, () where no end is known."""
    branches = catalog.by("cuda.branches", "capability")
    row = branches.get(_dotted(card.capability)) or branches.get(_dotted((*card.capability[:1], 0)))
    return number(row.last) if row else ()


def _builds_for_driver(context: Context) -> list[TorchWheel]:
    """Return the builds that install here and that the driver runs, by NVIDIA's minor-version compatibility.

    If the catalogue has no driver for a build's CUDA major, the driver's own CUDA version must be of that major or
    newer. A driver of which nothing is known runs all.
    """
    driver, windows = context.driver, context.target.windows_driver
    unknown = not (driver.version or driver.api)
    enough = {
        variant
        for (variant, on), floor in context.catalog.drivers.items()
        if on == windows
        if (_driver_reaches(floor.least, context) if floor.least or unknown else driver.api[:1] >= _cuda(variant)[:1])
    }
    return [wheel for wheel in context.wheels("cu") if wheel.variant in enough]


def _driver_reaches(least: Number, context: Context) -> bool:
    """Return whether the driver is of version `least` or newer; True if nothing is known about it.

    If only its CUDA version is known, that is compared, by driver branch, with the highest that drivers up to `least`
    support.
    """
    driver = context.driver
    if driver.version or not driver.api:
        return not driver.version or driver.version >= least
    floors = context.catalog.drivers.items()
    majors = [(_cuda(build)[0], 0) for (build, _on), floor in floors if () < floor.least[:1] <= least[:1]]
    named = [_cuda(build) for (build, _on), floor in floors if floor.own and floor.own[:1] <= least]
    return driver.api >= max([*majors, *named], default=())


def _cuda(variant: str) -> Number:
    """Read (12, 8) off "cu128"."""
    return int(variant[2:-1]), int(variant[-1])


def _needed_driver(variant: str, context: Context) -> str:
    """Return the oldest driver of this system that runs a build, as a version; "CUDA 13.0" if that is not listed."""
    row = context.catalog.driver(variant)
    if row is None:
        return f"CUDA {_cuda(variant)[0]}.0"
    return row.windows if context.target.windows_driver else row.linux


def _first_branch(card: Card, catalog: Catalog) -> Number:
    """Return the first driver branch that knows the card itself."""
    row = catalog.by("cuda.branches", "capability").get(_dotted(card.capability))
    return number(row.driver) if row else ()


def _serves(wheel: TorchWheel, card: Card, context: Context) -> bool:
    """Return whether a build holds code for a card, and the driver is new enough for the card."""
    row = context.catalog.by("cuda.tegra", "capability").get(_dotted(card.capability))
    alone = row is not None and not (row.desktop_code_from and _cuda(wheel.variant) >= _cuda(row.desktop_code_from))
    return has_code(wheel.sm, wheel.ptx, card.capability, alone=alone) and _driver_reaches(
        _first_branch(card, context.catalog), context
    )


def _best_build(wheels: list[TorchWheel], cards: list[Card], context: Context) -> TorchWheel | None:
    """Return the best of some builds, which are given newest first, for some cards; None if none serves any of them.

    What counts, in this order: that it serves all cards, that an index was seen to hold it, that it serves the newest
    card (then the next, and so on), how new its torch is, and `_driver_fit`.
    """
    ranked = sorted(cards, key=lambda card: card.capability, reverse=True)
    best, highest = None, None
    for wheel in wheels:  # newest first: past the first release that serves all, none can be better
        if best and highest and highest[:2] == (True, True) and wheel.number != best.number:
            break
        serves = [_serves(wheel, card, context) for card in ranked]
        rating = (all(serves), wheel.confirmed, serves, wheel.number, _driver_fit(wheel, context))
        if any(serves) and (highest is None or rating > highest):
            best, highest = wheel, rating
    return best


def _driver_fit(wheel: TorchWheel, context: Context) -> tuple[bool, Number]:
    """Return a sort key, higher for the build to prefer: one whose CUDA is no newer than the driver's.

    Of several such builds, that of the newest CUDA is preferred; of other builds, that of the oldest.
    """
    own = context.catalog.drivers[wheel.variant, context.target.windows_driver].own
    cuda = int(wheel.variant[2:])
    version = context.driver.version
    full = bool(own and version and version >= own)
    return full, (cuda,) if full else (-cuda,)


def _to_candidate(wheel: TorchWheel, cards: list[Card], context: Context) -> Candidate:
    """Return a build as a candidate for those of `_cards_that_decide` that it serves, with reasons and warnings."""
    served = [card for card in _cards_that_decide(cards, context.catalog) if _serves(wheel, card, context)]
    floor = context.catalog.drivers[wheel.variant, context.target.windows_driver].least
    own = max((_first_branch(card, context.catalog) for card in served), default=())
    # What the build needs, or the cards.
    needed = str(own[0]) if () < floor < own else _needed_driver(wheel.variant, context)
    reasons = [*_code_reasons(wheel, served)]
    if context.driver.version:
        reasons.append(sentence("nvidia-driver-suffices", driver=context.driver.text, floor=needed))
    if context.catalog.build_of(wheel.version, "pypi", wheel.platform) == wheel.variant:
        reasons.append(sentence("pypi-has-build", version=wheel.version))
    return Candidate(
        Backend.CUDA,
        wheel.variant,
        wheel.version,
        reasons=tuple(reasons),
        warnings=tuple(_warnings(wheel, served, cards, needed, context)),
        wheel=wheel,
        cards=tuple(served),
    )


def _code_reasons(wheel: TorchWheel, served: list[Card]) -> Iterator[Message]:
    """Yield a sentence on the cards that a build holds code for, and one on those whose code is compiled from PTX."""
    made = [card for card in served if not has_code(wheel.sm, None, card.capability, alone=False)]
    held = [card for card in served if card not in made]
    for key, cards in (("cuda-build-has-code", held), ("cuda-build-has-ptx", made)):
        if cards:
            said = sentence(
                key,
                variant=wheel.variant,
                version=wheel.version,
                names=", ".join(dict.fromkeys(card.name for card in cards)),
                code=", ".join(dict.fromkeys(_dotted(card.capability) for card in cards)),
            )
            yield said if cards is made else with_assumed_code(said, wheel)


def _warnings(
    wheel: TorchWheel, served: list[Card], cards: list[Card], needed: str, context: Context
) -> Iterator[Message]:
    """Yield warnings of unused cards, assumptions on cards and driver, a card's last driver branch, an unseen build.

    `served` are those of the `cards` that the build has code for; `needed` is the oldest driver for it and them.
    """
    for card in cards:
        if not any(card.name == other.name for other in served):
            yield sentence("card-unused", name=card.name)
        if not card.capability:
            family = _family_by_name(card.name, context.catalog)
            key = "capability-assumed" if family.words else "card-assumed-current"
            yield sentence(key, name=card.name, code=family.capability)
    if not context.driver.text:
        yield sentence("nvidia-driver-unknown", floor=needed)
    version = context.driver.version
    for branch in {_last_branch(card, context.catalog) for card in served} - {()}:
        if version > branch and version[0] > branch[0]:
            yield sentence("nvidia-driver-branch-last", branch=branch[0])
    if not wheel.confirmed:
        yield sentence("build-not-seen")


def _newer_builds_missed(context: Context, chosen: TorchWheel, deciding: list[Card]) -> Iterator[Rejection]:
    """Yield the rejections of a newer torch that a newer driver would run, and of a still newer for a newer card.

    Newer is what goes beyond the build that was `chosen` for the `deciding` cards.
    """
    free = context.with_any_driver()
    better = _best_build(_builds_for_driver(free), deciding, free)
    if better is not None and better.number > chosen.number:
        yield _reject_driver(better, context)
    current = number(_family_by_name("", context.catalog).capability)
    newest = _best_build(_builds_for_driver(free), [deciding[0]._replace(capability=current)], free)
    if newest is not None and (better is None or newest.number > better.number):
        oldest = min(deciding, key=lambda card: card.capability)
        why = _(
            "torch {version} ({variant}) holds no code for {name} (compute capability {code}).",
            version=newest.version,
            variant=newest.variant,
            name=oldest.name,
            code=_dotted(oldest.capability),
        )
        key, help_ = _key_and_help(oldest, _("This needs a newer GPU."), context)
        yield reject(Backend.CUDA, key, with_assumed_code(why, newest), help_, newest.variant)


def _reject_driver(wheel: TorchWheel, context: Context) -> Rejection:
    """Return the rejection of a build for which the driver is too old, or not known to be new enough."""
    floor, have, variant = _needed_driver(wheel.variant, context), context.driver.text, wheel.variant
    if context.catalog.driver(variant) is None and not context.driver.api:
        why = _(
            "{variant} needs a driver for {floor}, and it is not known whether {have} is one.",
            variant=variant,
            floor=floor,
            have=have,
        )
        help_ = _('nvidia-smi names the CUDA version in its first lines: add it to the machine as "cuda_driver_api".')
        return reject(Backend.CUDA, "driver-floor-unknown", why, help_, variant)
    why = _(
        "{variant} needs driver {floor} or newer, and {have} is installed.", variant=variant, floor=floor, have=have
    )
    help_ = _(
        "Update the NVIDIA driver to {floor} or newer to use torch {version} with {variant}.",
        floor=floor,
        version=wheel.version,
        variant=variant,
    )
    return reject(Backend.CUDA, "nvidia-driver-too-old", why, help_, variant)


def _reject_all(context: Context, deciding: list[Card]) -> list[Offer]:
    """Return why no CUDA build serves the `deciding` cards: a rejection for each of driver, pins and system in the way.

    That is one without which there would be a build; the system is its age and the Python. For a Jetson, NVIDIA's own
    wheels are offered or named instead. If several are in the way only together, the driver is named; if there is no
    code, a card.
    """
    if board := _from_jetson_index(context, deciding):
        return [board]

    def best(freed: Context) -> TorchWheel | None:
        return _best_build(_builds_for_driver(freed), deciding, freed)

    opened = context.without_each(("driver", "pins", "system"), best)
    found: list[Offer] = []
    if wheel := opened.get("driver"):
        found.append(_reject_driver(wheel, context))
    if wheel := opened.get("pins"):
        found.append(reject_pins(Backend.CUDA, context, wheel.version, wheel.variant))
    if wheel := opened.get("system"):
        usual = USUAL_PYTHON.replace(".", "") in wheel.pythons
        help_ = _(
            "Python {python} on a current system can use torch {version} with {variant}.",
            python=USUAL_PYTHON if usual else python_range(wheel.pythons),
            version=wheel.version,
            variant=wheel.variant,
        )
        found.append(reject_system(Backend.CUDA, context, help_, wheel.variant))
    if found:
        return found
    free = context.with_any_driver()._replace(pins=context.pins.unpinned(), target=context.target.anywhere())
    if not free.wheels("cu"):
        why = _("PyTorch publishes no CUDA build for this system and processor.")
        linux = _("Linux in WSL 2 has CUDA builds.") if context.target.os == "windows" else ""
        return [reject(Backend.CUDA, "no-wheel-for-system", why, linux)]
    last = best(free)
    return [_reject_code(context, deciding) if last is None else _reject_driver(last, context)]


def _from_jetson_index(context: Context, deciding: list[Card]) -> Offer | None:
    """Return NVIDIA's own build for a Jetson board, or the rejection that names its wheels; None for another machine.

    The wheels of JetPack 6 are for its own Python; glibc tells its Ubuntu 22.04 from the 20.04 of JetPack 5.
    """
    target = context.target
    rows = context.catalog.rows("cuda.jetson") if target.platform == "linux_aarch64" else ()
    for row in rows:
        card = next((card for card in deciding if _dotted(card.capability) in row.capabilities), None)
        if card is None:
            continue
        release, board = context.catalog.release(row.torch), _(row.board)
        enough = not target.glibc or target.glibc >= number(row.glibc)
        if release and enough and target.tag == row.python and context.pins.allow_release(release):
            reason = sentence("jetson-index-has-code", version=row.torch, name=card.name, board=board)
            warnings = (sentence("jetson-index-is-nvidias", url=row.index), sentence("jetson-needs-cudss"))
            return Candidate(Backend.CUDA, JETSON_INDEX, row.torch, (reason,), warnings, cards=(card,))
        why = _(
            "No build of pytorch.org serves {name} ({board}) with this driver and Python.", name=card.name, board=board
        )
        helps = _("NVIDIA's wheels for this board: {wheels}.", wheels=_(row.wheels))
        return reject(Backend.CUDA, "jetson-wheels-elsewhere", why, helps)
    return None


def _reject_code(context: Context, deciding: list[Card]) -> Rejection:
    """Return the rejection of CUDA for cards whose code no build of this platform holds; it names the newest card."""
    newest = max(deciding, key=lambda card: card.capability)
    why = _(
        "No CUDA build for this platform holds code for {name} (compute capability {code}).",
        name=newest.name,
        code=_dotted(newest.capability),
    )
    elsewhere = _("CUDA needs a newer GPU; you can ask for DirectML instead.")
    older = elsewhere if context.target.os == "windows" else _("CUDA needs a newer GPU.")
    key, help_ = _key_and_help(newest, older, context)
    return reject(Backend.CUDA, key, why, help_)


def _key_and_help(card: Card, too_old: Message, context: Context) -> tuple[str, Message]:
    """Return a rejection's key and help for a card without code: `too_old`, or to refresh the catalogue if newer."""
    if card.capability[0] > max(max(row.sm) for row in context.catalog.cuda_code) // 10:
        help_ = _("A newer torch than this catalogue knows may hold it: refresh the catalogue.")
        return "gpu-newer-than-catalogue", help_
    return "gpu-without-code", too_old


def _dotted(capability: Number) -> str:
    return ".".join(map(str, capability))
