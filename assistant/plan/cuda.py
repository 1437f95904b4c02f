"""NVIDIA: compute capability, driver and published builds decided together, over every card of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from assistant.catalog import Catalog, Number, TorchWheel, number, python_range
from assistant.catalog.rows import Family
from assistant.i18n import Message, Text, _
from assistant.model.machine import Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan.cards import Card, hidden_by
from assistant.plan.options import Offers, Option, Question
from assistant.plan.target import USUAL_PYTHON


def offers(question: Question) -> Offers:
    """Answer which CUDA builds serve the machine's NVIDIA cards."""
    cards = [card for card in question.cards if card.vendor is Vendor.NVIDIA]
    if not cards:
        return Offers()
    stop = _stopped(question)
    if stop:
        return Offers(rejected=(stop,))
    wanted = _deciding(cards, question.catalog)
    fitting = _fitting(question)
    chosen = _best(fitting, wanted, question)
    if chosen is None:
        return Offers(rejected=_why_none(question, wanted))
    options = [_option(wheel, cards, question) for wheel in _choices(fitting, chosen, wanted, question)]
    return Offers(tuple(options), tuple(_rivals(question, chosen, wanted)))


def _stopped(question: Question) -> Rejection | None:
    """Say what keeps torch from any NVIDIA card here, whatever the build."""
    hidden, obstacle = hidden_by(Vendor.NVIDIA, question.machine, question.catalog), question.driver.obstacle
    if hidden:
        why = _("{setting} hides every NVIDIA GPU from PyTorch.", setting=hidden)
        return _no("devices-hidden", why, _("Remove that setting from the environment."))
    if obstacle is None:
        return None
    build = question.catalog.releases[0].pypi["linux_x86_64"]
    help_ = obstacle.wsl_help if question.target.wsl and obstacle.wsl_help else obstacle.help
    return _no(obstacle.key, _(obstacle.text), _(help_, floor=_floor_text(build, question)))


def _no(key: str, why: Message, would_help: Text = "", variant: str = "") -> Rejection:
    return Rejection(backend=Backend.CUDA, variant=variant, key=key, why=why, would_help=would_help)


def _deciding(cards: Iterable[Card], catalog: Catalog) -> list[Card]:
    """Keep the cards whose code must be in the build: retired ones decide only when no other is there."""
    known = [
        card if card.capability else card._replace(capability=number(_family(card.name, catalog).capability))
        for card in cards
    ]
    return [card for card in known if not _retired(card, catalog)] or known


def _family(name: str, catalog: Catalog) -> Family:
    """Find the family that a card's name belongs to; the last one takes every name."""
    return next(row for row in catalog.cuda.families.rows if re.search(row.words, name))


def _retired(card: Card, catalog: Catalog) -> bool:
    """Tell whether the last driver of a card runs none of the newest release's builds, as for Kepler and older."""
    return () < _last_branch(card, catalog)[:1] < catalog.oldest_driver


def _fitting(question: Question) -> list[TorchWheel]:
    """List the builds that install here and that the driver runs, by NVIDIA's minor-version compatibility."""
    windows = question.target.windows_driver
    floors = question.catalog.drivers.items()
    enough = {variant for (variant, on), floor in floors if on == windows and _reaches(floor.least, question)}
    return [wheel for wheel in question.wheels("cu") if wheel.variant in enough]


def _reaches(least: Number, question: Question) -> bool:
    """Tell whether the driver is at least of a version; one that is unknown is taken to be."""
    driver = question.driver
    if driver.version:
        return driver.version >= least
    return not driver.api or driver.api >= _api(least, question.catalog)


def _api(least: Number, catalog: Catalog) -> Number:
    """Return the highest CUDA version that a driver branch supports, as far as the catalogue knows."""
    rows = catalog.drivers.items()
    majors = [(_cuda(build)[0], 0) for (build, _on), floor in rows if floor.least[:1] <= least[:1]]
    named = [_cuda(build) for (build, _on), floor in rows if floor.own and floor.own[:1] <= least]
    return max([*majors, *named], default=())


def _cuda(variant: str) -> Number:
    """Read (12, 8) off "cu128"."""
    return int(variant[2:-1]), int(variant[-1])


def _floor(variant: str, question: Question) -> Number:
    return question.catalog.drivers[variant, question.target.windows_driver].least


def _floor_text(variant: str, question: Question) -> str:
    rows = question.catalog.cuda.drivers.rows
    windows = question.target.windows_driver
    return next(row.windows if windows else row.linux for row in rows if row.variant == variant)


def _own_floor(card: Card, catalog: Catalog) -> Number:
    """Answer the first driver branch that knows the card itself."""
    row = catalog.branches.get(card.capability)
    return number(row.driver) if row else ()


def _runs(wheel: TorchWheel, card: Card, question: Question) -> bool:
    codes, ptx = question.catalog.sm(wheel)
    row = question.catalog.tegra.get(card.capability)
    alone = row is not None and not (row.desktop_code_from and _cuda(wheel.variant) >= _cuda(row.desktop_code_from))
    return _has_code(codes, ptx, card.capability, alone=alone) and _reaches(
        _own_floor(card, question.catalog), question
    )


@lru_cache(maxsize=4096)
def _has_code(codes: tuple[int, ...], ptx: int | None, capability: Number, *, alone: bool) -> bool:
    """Tell whether code serves a capability: the same major, an equal or lower minor; else PTX newer than all code.

    What stands `alone` takes only its very own code.
    """
    major, minor = capability[0], capability[1]
    own = major * 10 + minor
    if own in codes:
        return True
    if alone:
        return False
    if any(code // 10 == major and code % 10 <= minor for code in codes):
        return True
    return ptx is not None and ptx == max(codes) and own > ptx


def _best(wheels: list[TorchWheel], cards: list[Card], question: Question) -> TorchWheel | None:
    """Choose the newest build that serves all cards, else the newest for as many of the newest cards as possible."""
    for sure in (True, False):
        newest: Number = ()
        equal: list[TorchWheel] = []
        for wheel in wheels:  # newest first: past the first release that serves all, none can be better
            if newest and wheel.number != newest:
                break
            if wheel.confirmed is sure and all(_runs(wheel, card, question) for card in cards):
                newest = wheel.number
                equal.append(wheel)
        if equal:
            return max(equal, key=lambda wheel: _ease(wheel, question))
    return _best_for_some(wheels, cards, question) if len(cards) > 1 else None


def _best_for_some(wheels: list[TorchWheel], cards: list[Card], question: Question) -> TorchWheel | None:
    ranked = sorted(cards, key=lambda card: card.capability, reverse=True)
    rated = [
        (
            wheel.confirmed,
            [_runs(wheel, card, question) for card in ranked],
            wheel.number,
            _ease(wheel, question),
            index,
        )
        for index, wheel in enumerate(wheels)
    ]
    best = max((rating for rating in rated if any(rating[1])), default=None)
    return wheels[best[-1]] if best else None


def _ease(wheel: TorchWheel, question: Question) -> tuple[bool, Number]:
    """Prefer the newest CUDA whose own driver is here; failing that, the oldest of the major."""
    own = question.catalog.drivers[wheel.variant, question.target.windows_driver].own
    cuda = int(wheel.variant[2:])
    version = question.driver.version
    full = bool(own and version and version >= own)
    return full, (cuda,) if full else (-cuda,)


def _choices(fitting: list[TorchWheel], chosen: TorchWheel, wanted: list[Card], question: Question) -> list[TorchWheel]:
    """Offer beside the choice the newest build for the newest cards, where covering all holds torch back."""
    newest = max(wanted, key=lambda card: card.capability)
    alone = _best(fitting, [newest], question)
    return [chosen, alone] if alone is not None and alone.number > chosen.number else [chosen]


def _option(wheel: TorchWheel, cards: list[Card], question: Question) -> Option:
    served = [card for card in _deciding(cards, question.catalog) if _runs(wheel, card, question)]
    return Option(
        Backend.CUDA,
        wheel.variant,
        wheel.release.version,
        reasons=tuple(_reasons(wheel, served, question)),
        warnings=tuple(_warnings(wheel, served, cards, question)),
        integrated=all(card.integrated for card in served),
        wheel=wheel,
    )


def _reasons(wheel: TorchWheel, served: list[Card], question: Question) -> Iterable[Message]:
    names = ", ".join(dict.fromkeys(card.name for card in served))
    code = ", ".join(dict.fromkeys(_text(card.capability) for card in served))
    yield _(
        "{variant} of torch {version} holds code for {names} (compute capability {code}).",
        variant=wheel.variant,
        version=wheel.release.version,
        names=names,
        code=code,
    )
    if question.driver.version:
        yield _(
            "Driver {driver} reaches the {floor} that is needed.",
            driver=question.driver.text,
            floor=_needed(wheel, served, question),
        )


def _needed(wheel: TorchWheel, served: list[Card], question: Question) -> str:
    """Name the driver that a build and the cards themselves need."""
    own = max((_own_floor(card, question.catalog) for card in served), default=())
    return str(own[0]) if own > _floor(wheel.variant, question) else _floor_text(wheel.variant, question)


def _warnings(wheel: TorchWheel, served: list[Card], cards: list[Card], question: Question) -> Iterable[Message]:
    for card in cards:
        if not any(card.name == other.name for other in served):
            yield _("{name} is not served by this build and stays unused.", name=card.name)
        if not card.capability:
            family = _family(card.name, question.catalog)
            by_name = _("{name} is in no table; compute capability {code} was assumed from its name.")
            told = by_name if family.words else _("{name} is in no table; a current card was assumed.")
            yield told.format(name=card.name, code=family.capability)
    if not question.driver.text:
        yield _(
            "The driver version is not known; this build needs {floor} or newer.",
            floor=_needed(wheel, served, question),
        )
    for branch in {_last_branch(card, question.catalog) for card in served} - {()}:
        if question.driver.version > branch and question.driver.version[0] > branch[0]:
            yield _("Driver branches after {branch} no longer list this card; keep {branch}.", branch=branch[0])
    if not wheel.confirmed:
        yield _("No index has been seen to hold this build; check before you rely on it.")


def _last_branch(card: Card, catalog: Catalog) -> Number:
    row = catalog.branches.get(card.capability) or catalog.branches.get((*card.capability[:1], 0))
    return number(row.last) if row else ()


def _rivals(question: Question, chosen: TorchWheel, wanted: list[Card]) -> Iterable[Rejection]:
    """Name the newer torch that another driver, pin or card would open."""
    free = question._replace(driver=question.driver._replace(version=(), api=()))
    better = _best(_fitting(free), wanted, free)
    if better is not None and better.number > chosen.number:
        yield _driver_rejection(better, question)
    current = number(_family("", question.catalog).capability)
    newest = _best(_fitting(free), [wanted[0]._replace(capability=current)], free)
    if newest is not None and (better is None or newest.number > better.number):
        oldest = min(wanted, key=lambda card: card.capability)
        yield _no(
            "gpu-without-code",
            _(
                "torch {version} ({variant}) holds no code for {name} (compute capability {code}).",
                version=newest.release.version,
                variant=newest.variant,
                name=oldest.name,
                code=_text(oldest.capability),
            ),
            _("Only a newer card opens it."),
            newest.variant,
        )


def _driver_rejection(wheel: TorchWheel, question: Question) -> Rejection:
    floor = _floor_text(wheel.variant, question)
    have = question.driver.text
    return _no(
        "nvidia-driver-too-old",
        _(
            "{variant} needs driver {floor} or newer, and {have} is installed.",
            variant=wheel.variant,
            floor=floor,
            have=have,
        ),
        _(
            "Update the NVIDIA driver to {floor} or newer: that opens torch {version} with {variant}.",
            floor=floor,
            version=wheel.release.version,
            variant=wheel.variant,
        ),
        wheel.variant,
    )


def _why_none(question: Question, wanted: list[Card]) -> tuple[Rejection, ...]:
    """Name each condition whose lifting alone opens a build: driver, pins, system and Python; else the cards' age."""
    board = _jetson(question, wanted)
    if board:
        return (board,)
    driver = question._replace(driver=question.driver._replace(version=(), api=()))
    pins = question._replace(wishes=question.wishes.unpinned())
    system = question._replace(target=question.target.anywhere())
    found = [
        against(wheel, question)
        for freer, against in ((driver, _driver_rejection), (pins, _pin_rejection), (system, _system_rejection))
        if (wheel := _best(_fitting(freer), wanted, freer)) is not None
    ]
    if found:
        return tuple(found)
    everything = driver._replace(wishes=pins.wishes, target=system.target)
    wheel = _best(_fitting(everything), wanted, everything)
    return (_no_code(question, wanted) if wheel is None else _driver_rejection(wheel, question),)


def _pin_rejection(wheel: TorchWheel, question: Question) -> Rejection:
    return _no(
        "pins-exclude-build",
        _("No CUDA build that satisfies {pins} runs here.", pins=question.wishes.text),
        _(
            "Relax the pin: torch {version} with {variant} runs here.",
            version=wheel.release.version,
            variant=wheel.variant,
        ),
        wheel.variant,
    )


def _system_rejection(wheel: TorchWheel, question: Question) -> Rejection:
    pins = question.wishes.text
    with_pins = _("No CUDA build that satisfies {pins} installs with Python {python} on this system.")
    why = with_pins if pins else _("No CUDA build for this card installs with Python {python} on this system.")
    return _no(
        "no-wheel-for-system",
        why.format(pins=pins, python=question.target.python),
        _(
            "Python {python} and a current system open torch {version} with {variant}.",
            python=_python_for(wheel),
            version=wheel.release.version,
            variant=wheel.variant,
        ),
        wheel.variant,
    )


def _python_for(wheel: TorchWheel) -> str:
    """Name the Python to take for a build: the usual one where it has a wheel for it."""
    return USUAL_PYTHON if USUAL_PYTHON.replace(".", "") in wheel.pythons else python_range(wheel.pythons)


def _jetson(question: Question, wanted: list[Card]) -> Rejection | None:
    """Send a Jetson board that no upstream build serves to NVIDIA's own wheels."""
    if question.target.platform != "linux_aarch64":
        return None
    for row in question.catalog.cuda.jetson.rows:
        card = next((card for card in wanted if _text(card.capability) in row.capabilities), None)
        if card:
            why = _("No build of pytorch.org serves {name} ({board}) with this driver and Python.")
            helps = _("NVIDIA's wheels for this board: {wheels}.", wheels=_(row.wheels))
            return _no("jetson-wheels-elsewhere", why.format(name=card.name, board=_(row.board)), helps)
    return None


def _no_code(question: Question, wanted: list[Card]) -> Rejection:
    newest = max(wanted, key=lambda card: card.capability)
    why = _(
        "No CUDA build for this platform holds code for {name} (compute capability {code}).",
        name=newest.name,
        code=_text(newest.capability),
    )
    if newest.capability[0] > max(max(row.sm) for row in question.catalog.cuda.code.rows) // 10:
        return _no(
            "gpu-newer-than-catalogue",
            why,
            _("A newer torch than this catalogue knows may hold it: refresh the catalogue."),
        )
    if question.target.os == "windows":
        return _no("gpu-without-code", why, _("Only a newer card opens CUDA; DirectML can be asked for instead."))
    return _no("gpu-without-code", why, _("Only a newer card opens CUDA."))


def _text(capability: Number) -> str:
    return ".".join(map(str, capability))
