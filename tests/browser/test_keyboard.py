"""The guided setup without a mouse, in a narrow window, enlarged, and without motion."""

from __future__ import annotations

import pytest
from guided import TASK_MS, choose_machine, main_button, run_first_cell, unfold
from playwright.sync_api import Locator, Page, expect

from assistant.model.report import Environment

TABS = 40  # more than any step has places to go
FOCUSED = """() => {
    const focused = document.activeElement;
    const style = getComputedStyle(focused);
    return {
        inside: focused.closest(".ptsa-wizard") !== null,
        ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 || style.boxShadow !== "none",
        html: focused.outerHTML.slice(0, 200),
        heading: focused.matches(".ptsa-heading") ? focused.textContent : "",
    };
}"""


def tab_to(wizard: Locator, role: str, name: str, *, key: str = "Tab") -> Locator:
    """Move the focus to a control of the wizard by a key; each one passed by must show that it has the focus."""
    wanted = wizard.get_by_role(role, name=name, exact=True)
    expect(wanted).to_be_enabled(timeout=TASK_MS)
    for _step in range(TABS):
        wizard.page.keyboard.press(key)
        focused = wizard.page.evaluate(FOCUSED)
        assert focused["ring"] or not focused["inside"], f"nothing shows the focus on {focused['html']}"
        if wanted.evaluate("node => node === document.activeElement"):
            return wanted
    pytest.fail(f"{key} never reaches the {role} {name!r}")


def press(wizard: Locator, name: str, key: str = "Enter") -> None:
    """Press a button by keyboard."""
    tab_to(wizard, "button", name)
    wizard.page.keyboard.press(key)


def expect_focus_on(page: Page, heading: str) -> None:
    """Wait until a heading has the focus: reading goes on from there."""
    page.wait_for_function(f"heading => ({FOCUSED})().heading === heading", arg=heading)


def test_the_whole_journey_by_keyboard_alone(page: Page, open_notebook, cpu_environment: Environment) -> None:
    """From the first sight to the written files by Tab, Enter, Space and typing; each view's heading gets the focus."""
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Install")
    press(wizard, "Change something: machine, version, Python, folder, nightly builds", "Space")
    tab_to(wizard, "textbox", "Folder")
    page.keyboard.type(cpu_environment.path)
    page.keyboard.press("Enter")
    expect(wizard.get_by_text("It is installed here already.")).to_be_visible(timeout=TASK_MS)
    press(wizard, "Install")
    expect_focus_on(page, "PyTorch works on your processor")
    expect(wizard.get_by_text("All checks passed on the device cpu.").first).to_be_visible(timeout=TASK_MS)
    press(wizard, "Save the configuration colleague, project, container, bug report")
    expect_focus_on(page, "Save the configuration")
    tab_to(wizard, "radio", "Everything all the files that suit this setup")
    page.keyboard.press("ArrowRight")
    expect(wizard.get_by_role("radio", name="A colleague")).to_be_checked()
    press(wizard, "Write the files")
    tab_to(wizard, "link", "Download configuration.zip")
    tab_to(wizard, "button", "Something is wrong?", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect_focus_on(page, "Is anything wrong?")


def test_keys_pressed_in_the_wizard_are_not_commands_of_the_notebook(page: Page, open_notebook) -> None:
    """`b` and `d d` on a button neither add nor delete a cell."""
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Install")
    tab_to(wizard, "button", "Install")
    for key in "bddx":
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == 2
    expect(main_button(wizard, "Install")).to_be_focused()


OVERFLOWING = """root => {
    const edge = root.getBoundingClientRect();
    const scrolls = (node) => node.closest(".ptsa-logbox, pre, .ptsa-scroll") !== null;
    const out = [...root.querySelectorAll("*")].filter((node) => {
        const box = node.getBoundingClientRect();
        return box.width > 0 && !scrolls(node) && (box.right > edge.right + 1 || box.left < edge.left - 1);
    });
    return out.map((node) => node.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize(
    "width",
    [
        pytest.param(360, id="a phone's width"),
        pytest.param(640, id="1280 px at 200 % zoom", marks=pytest.mark.heavy),
    ],
)
def test_nothing_is_lost_in_a_narrow_window(page: Page, open_notebook, width: int) -> None:
    """Every page fits its column with all folds open: nothing sticks out, every control can be pressed."""
    page.set_viewport_size({"width": width, "height": 800})
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
