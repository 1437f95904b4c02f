"""The gallery as a visitor uses it: cards chosen by keyboard, a package for a class, the wizard in their place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from accessibility import THEMES, violations, wear
from guided import run_first_cell
from playwright.sync_api import Locator, Page, expect

from assistant.machines import shipped

PACKAGE_MS = 180_000  # every index is asked, and those that cannot be reached are asked again


@pytest.fixture
def gallery(page: Page, open_notebook: Callable[[str], Page]) -> Locator:
    """Show the gallery in a small laptop's window."""
    page.set_viewport_size({"width": 1280, "height": 800})
    shown = run_first_cell(open_notebook("gallery.ipynb"))
    expect(cards(shown)).to_have_count(len(shipped()))
    expect(shown.get_by_role("button", name="Open in the wizard")).to_be_in_viewport()
    expect(shown.get_by_label("Language")).to_be_in_viewport()
    return shown


def cards(gallery: Locator) -> Locator:
    """Find the cards that are seen."""
    return gallery.locator(".ptsa-machine-card:visible")


def chosen(gallery: Locator) -> list[str]:
    """Name the cards that are chosen."""
    return gallery.locator(".ptsa-machine-card[aria-pressed=true] .ptsa-machine-name").all_inner_texts()


def test_the_wizard_opens_in_sight_and_takes_the_focus(gallery: Locator) -> None:
    """What was pressed is answered where one looks: the wizard stands in the place of the cards, with the way back."""
    page = gallery.page
    gallery.get_by_label("Search").fill("RX 6700 XT")
    gallery.get_by_label("Search").press("Enter")
    expect(cards(gallery)).to_have_count(1)
    cards(gallery).first.click()
    gallery.get_by_role("button", name="Open in the wizard").click()
    wizard = page.locator(".ptsa-wizard .ptsa-wizard")
    expect(wizard.get_by_text("Simulation of Arch Linux")).to_be_in_viewport()
    expect(wizard.locator(".ptsa-heading")).to_be_focused()
    expect(wizard.locator(".ptsa-heading")).to_be_in_viewport()
    expect(wizard.locator(".ptsa-foot button").first).to_be_in_viewport()
    expect(gallery.get_by_role("combobox", name="Language", exact=True).locator("visible=true")).to_have_count(1)
    wizard.get_by_role("combobox", name="Language", exact=True).select_option("zh_CN")
    expect(gallery.get_by_role("heading", name="录制的机器", level=1).last).to_be_visible()
    wizard.locator(".ptsa-language select").select_option("en")
    page.get_by_role("button", name="Back to the machines").click()
    expect(cards(gallery)).to_have_count(1)
    assert len(chosen(gallery)) == 1


def test_a_machine_in_full_takes_the_focus_and_one_fact_changes_its_plan(gallery: Locator) -> None:
    """It stands above the cards, in sight; the plan with the fact stands beside what it was."""
    gallery.get_by_label("Search").fill("5070")
    gallery.get_by_label("Search").press("Enter")
    expect(cards(gallery)).to_have_count(1)
    cards(gallery).first.click()
    gallery.get_by_role("button", name="Show details").click()
    heading = gallery.locator(".ptsa-heading")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    fact = gallery.get_by_label("Set a fact")
    fact.fill("nvidia_driver=580.95.05")
    fact.press("Enter")
    expect(gallery.get_by_text("cu130").first).to_be_visible()


def test_the_language_is_chosen_on_the_page(gallery: Locator) -> None:
    """Every word changes; what was chosen stays."""
    cards(gallery).first.click()
    gallery.get_by_role("combobox", name="Language", exact=True).select_option("zh_CN")
    expect(gallery.get_by_label("搜索")).to_be_visible()
    expect(gallery.get_by_label("Search")).to_have_count(0)
    assert len(chosen(gallery)) == 1
    gallery.locator("select").first.select_option("en")
    expect(gallery.get_by_label("Search")).to_be_visible()


def test_axe_finds_nothing_in_the_gallery(gallery: Locator) -> None:
    """Cards, one machine in full, the foot: no violation of WCAG 2.2 AA in any theme."""
    page = gallery.page
    page.add_style_tag(content="body { height: 100vh }")  # axe takes a body of no height, as JupyterLab's, for hidden
    cards(gallery).nth(3).click()
    found = []
    try:
        for theme in THEMES:
            wear(page, theme)
            found += [f"{theme}: {line}" for line in violations(page, ".ptsa-wizard")]
        gallery.get_by_role("button", name="Show details").click()
        expect(gallery.locator(".ptsa-heading")).to_be_focused()
        found += violations(page, ".ptsa-wizard")
    finally:
        wear(page, THEMES[0])  # JupyterLab remembers it
    assert not found, "\n".join(found)
