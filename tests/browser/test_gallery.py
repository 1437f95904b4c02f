"""The support matrix as a visitor reads it."""

from __future__ import annotations

from collections.abc import Callable

from accessibility import THEMES, violations, wear
from playwright.sync_api import Page, expect


def test_the_matrix_is_read_in_every_theme(page: Page, open_notebook: Callable[[str], Page]) -> None:
    """Every word of the tables has enough contrast on light and dark ground; Chinese is one press away."""
    page.set_viewport_size({"width": 1280, "height": 1600})
    shown = open_notebook("support_matrix.ipynb")
    page.add_style_tag(content="body { height: 100vh }")
    table = shown.locator(".jp-RenderedHTMLCommon table").first
    expect(table.get_by_text("works, with gaps").first).to_be_visible()
    expect(table.get_by_text("HIP")).to_have_count(0)
    try:
        for theme in THEMES:
            wear(page, theme)
            rules = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
            assert violations(page, ".jp-OutputArea .jp-RenderedHTMLCommon", rules) == []
    finally:
        wear(page, THEMES[0])
    shown.get_by_text("简体中文", exact=True).first.click()
    expect(shown.locator("details[open] caption").first).to_be_visible()
