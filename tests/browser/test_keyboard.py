"""The guided setup without a mouse, in a narrow window, enlarged, and without motion."""

from __future__ import annotations

from pathlib import Path

import pytest
from guided import TASK_MS, main_button, run_first_cell
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
    """From the cell to the written files by Tab, Enter, Space and typing; each step's heading receives the focus."""
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    press(wizard, "Continue")
    expect_focus_on(page, "What will be installed?")
    press(wizard, "Continue", "Space")
    expect_focus_on(page, "Install")
    tab_to(wizard, "textbox", "Folder")
    page.keyboard.type(cpu_environment.path)
    page.keyboard.press("Enter")
    press(wizard, "Resolve the packages")
    press(wizard, "Install")
    expect(wizard.get_by_text("The environment is ready")).to_be_visible(timeout=TASK_MS)
    press(wizard, "Continue")
    expect_focus_on(page, "Does it compute correctly?")
    expect(wizard.get_by_text("All checks passed on the device cpu.")).to_be_visible(timeout=TASK_MS)
    press(wizard, "Continue")
    expect_focus_on(page, "Is anything wrong?")
    press(wizard, "Continue")
    expect_focus_on(page, "Take it with you")
    press(wizard, "Write the files")
    tab_to(wizard, "link", "Download report.md")
    tab_to(wizard, "button", "Plan done", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect_focus_on(page, "What will be installed?")
    assert {file.name for file in Path(cpu_environment.path, "assistant-export").iterdir()} >= {".env", "report.md"}


def test_keys_pressed_in_the_wizard_are_not_commands_of_the_notebook(page: Page, open_notebook) -> None:
    """`b` and `d d` on a button neither add nor delete a cell."""
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    tab_to(wizard, "button", "Continue")
    for key in "bddx":
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == 2
    expect(main_button(wizard, "Continue")).to_be_focused()


OVERFLOWING = """root => {
    const edge = root.getBoundingClientRect();
    const scrolls = (node) => node.closest(".ptsa-logbox, pre, .ptsa-plot, .ptsa-scroll") !== null;
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
    """Detection, plan and diagnosis fit their column: nothing sticks out, every control can be pressed."""
    page.set_viewport_size({"width": width, "height": 800})
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Continue")
    wizard.get_by_label("Machine").select_option("Ubuntu 24.04, RTX 3060 and GTX 1060, driver 580")
    expect(wizard.get_by_text("Simulation of")).to_be_visible()
    found = {"detect": _sticking_out(wizard)}
    main_button(wizard, "Continue").click()
    expect(wizard.get_by_role("heading", name="What will be installed?")).to_be_visible()
    found["plan"] = _sticking_out(wizard)
    wizard.get_by_role("button", name="Diagnose").click()
    expect(wizard.get_by_role("heading", name="Is anything wrong?")).to_be_visible()
    found["diagnose"] = _sticking_out(wizard)
    assert found == {"detect": [], "plan": [], "diagnose": []}
    edge = page.viewport_size["width"]
    assert wizard.bounding_box()["x"] + wizard.bounding_box()["width"] <= edge


def _sticking_out(wizard: Locator) -> list[str]:
    expect(wizard.get_by_role("button", name="Cancel")).to_be_disabled(timeout=TASK_MS)
    return wizard.evaluate(OVERFLOWING)


def test_nothing_moves_for_who_asked_for_stillness(page: Page, open_notebook) -> None:
    """With `prefers-reduced-motion` no part of the wizard is animated, the progress bar of unknown length included."""
    page.emulate_media(reduced_motion="reduce")
    wizard = run_first_cell(open_notebook("setup.ipynb"))
    main_button(wizard, "Continue")
    bar = wizard.locator(".ptsa-progress")
    bar.evaluate("bar => bar.classList.add('ptsa-progress-unknown')")
    moving = """root => [...root.querySelectorAll("*")].filter((node) => {
        const style = getComputedStyle(node);
        const fades = style.transitionDuration.split(",").some((time) => parseFloat(time) > 0);
        return node.getClientRects().length && (style.animationName !== "none" || fades);
    }).map((node) => node.outerHTML.slice(0, 120))"""
    assert wizard.evaluate(moving) == []
