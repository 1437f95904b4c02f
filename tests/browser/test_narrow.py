"""The guided setup in a narrow window, enlarged, and without motion."""

from __future__ import annotations

import pytest
from guided import choose_machine, main_button, run_first_cell, unfold
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.full


OVERFLOWING = """root => {
    const edge = root.getBoundingClientRect();
    const scrolls = (node) => node.closest(".ptsa-logbox, pre, .ptsa-scroll") !== null;
    const out = [...root.querySelectorAll("*")].filter((node) => {
        const box = node.getBoundingClientRect();
        return box.width > 0 && !scrolls(node) && (box.right > edge.right + 1 || box.left < edge.left - 1);
    });
    return out.map((node) => node.outerHTML.slice(0, 120));
}"""


def test_nothing_is_lost_in_a_narrow_window(page: Page, open_notebook) -> None:
    """On a phone every page fits its column with all folds open: nothing sticks out, every control can be pressed."""
    page.set_viewport_size({"width": 360, "height": 800})
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    choose_machine(wizard, "Ubuntu 24.04, RTX 3060 and GTX 1060, driver 580")
    unfold(wizard, "Why this one")
    found = {"setup": wizard.evaluate(OVERFLOWING)}
    for name in ("Something is wrong?", "My environments"):
        wizard.get_by_role("navigation").get_by_role("button", name=name).click()
        expect(wizard.get_by_role("button", name=name)).to_have_attribute("aria-current", "page")
        page.wait_for_timeout(500)
        found[name] = wizard.evaluate(OVERFLOWING)
    assert set(map(tuple, found.values())) == {()}, found
    edge = page.viewport_size["width"]
    assert wizard.bounding_box()["x"] + wizard.bounding_box()["width"] <= edge


def test_nothing_moves_for_who_asked_for_stillness(page: Page, open_notebook) -> None:
    """With `prefers-reduced-motion` no part of the wizard is animated, the progress bar of unknown length included."""
    page.emulate_media(reduced_motion="reduce")
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Install")
    bar = wizard.locator(".ptsa-progress")
    bar.evaluate("bar => bar.classList.add('ptsa-progress-unknown')")
    moving = """root => [...root.querySelectorAll("*")].filter((node) => {
        const style = getComputedStyle(node);
        const fades = style.transitionDuration.split(",").some((time) => parseFloat(time) > 0);
        return node.getClientRects().length && (style.animationName !== "none" || fades);
    }).map((node) => node.outerHTML.slice(0, 120))"""
    assert wizard.evaluate(moving) == []
