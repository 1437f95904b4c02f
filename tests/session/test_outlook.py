"""What cards can run and what a driver opens, asked of the planner for recorded machines."""

from __future__ import annotations

import pytest

from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import use_language
from assistant.machines import load, shipped
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend
from assistant.session.what_if import outlook


def machine(name: str) -> Machine:
    """Detect a shipped machine."""
    return detect(ReplayHost(load(name))).machine


def test_each_card_is_judged_alone() -> None:
    """In a laptop with two makers' cards each says what it can run itself."""
    first, second = outlook(machine("linux-mint22-laptop-780m-rtx4070")).cards
    assert {plan.backend for plan in first.plans} == {Backend.CUDA}
    assert {plan.backend for plan in second.plans} == {Backend.ROCM}


def test_a_card_that_nothing_runs_on_says_why() -> None:
    """The reason is the planner's own, with what would help where something does."""
    (card,) = outlook(machine("linux-docker-rtx4090-not-passed")).cards
    assert card.plans == ()
    assert "container" in str(card.why)
    assert "--gpus" in str(card.would_help)


def test_equal_cards_are_one_kind() -> None:
    """Four equal cards are asked about once, even where their facts are equal in all."""
    assert len(outlook(Machine(os="linux", arch="x86_64", gpus=(Gpu(name="x"),) * 4)).cards) == 1


def test_an_older_driver_is_told_what_an_update_opens() -> None:
    """The steps rise with the driver, and those beyond the installed one are not reached."""
    steps = outlook(machine("linux-ubuntu2404-rtx5090-driver575")).openings
    assert [step.reached for step in steps] == [True, False, False]
    assert [step.variant for step in steps] == ["cu128", "cu130", "cu132"]


def test_what_a_card_has_no_code_for_is_not_opened_by_a_driver() -> None:
    """CUDA 13 dropped this card, so no driver is promised to bring it."""
    steps = outlook(machine("linux-ubuntu2204-gtx1080")).openings
    assert steps
    assert {step.variant for step in steps} <= {"cu118", "cu126"}


@pytest.mark.parametrize("name", ["linux-ubuntu2404-rx7900xtx", "macos14-m1", "linux-debian12-cpu-container"])
def test_only_nvidia_cards_have_a_ruler(name: str) -> None:
    """Other machines get none."""
    assert outlook(machine(name)).openings == ()


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_machine_can_be_asked(name: str) -> None:
    """No card is left without an answer: a plan, or nothing that is known to use it."""
    seen = machine(name)
    found = outlook(seen)
    assert {card.gpu for card in found.cards} == set(seen.gpus)
    assert list(found.openings) == sorted(found.openings, key=lambda step: not step.reached)


def test_reasons_are_told_in_the_language_in_force() -> None:
    """What is remembered belongs to one language."""
    hidden = machine("linux-ubuntu2404-rtx3090-hidden")
    try:
        english = outlook(hidden).cards[0].why
        use_language("zh_CN")
        assert str(outlook(hidden).cards[0].why) != english
    finally:
        use_language("en")


def test_unknown_cards_do_no_harm() -> None:
    """A machine of which next to nothing is known is asked without a fault."""
    found = outlook(Machine(gpus=(Gpu(), Gpu(vendor=Vendor.NVIDIA))))
    assert len(found.cards) == 2
