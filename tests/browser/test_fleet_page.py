"""The page of a fleet in a real browser: sorted by a click, in either language, on paper, and for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from accessibility import STRICT, violations
from fleet_records import WHEN, record
from playwright.sync_api import Browser, Page, expect

from assistant.fleet import read_records, rows_of, summed_up, write_record, write_report

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """Open the report on four machines and a broken file; a complaint in the console fails the test."""
    machines = ("linux-ubuntu2404-rtx5090-driver575", "linux-ubuntu2404-rtx4090", "linux-alpine-musl", "macos14-m1")
    for number, machine in enumerate(machines):
        write_record(record(f"pc-{10 - number}", machine), tmp_path)
    (tmp_path / "broken.json").write_text("{")
    fleet = summed_up(rows_of(read_records(tmp_path), WHEN), WHEN)
    write_report(fleet, "html", str(tmp_path), tmp_path / "report.html")
    page, said = browser.new_context(locale="en-US").new_page(), []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: said.extend([] if request.url.startswith("file:") else [request.url]))
    page.goto((tmp_path / "report.html").as_uri())
    yield page
    page.context.close()
    assert said == []


def names(page: Page) -> list[str]:
    """List the machines as they stand, without those that are not shown."""
    return page.locator("#machines tbody tr:visible td:first-child").all_inner_texts()


def test_a_heading_sorts(opened: Page) -> None:
    """Names by their numbers, the other way by another press, states by how bad they are."""
    assert names(opened)[:2] == ["pc-8", "broken.json"]
    heading = opened.locator("#machines").get_by_role("columnheader", name="Machine")
    heading.get_by_role("button").click()
    assert names(opened) == ["broken.json", "pc-7", "pc-8", "pc-9", "pc-10"]
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("button").press("Enter")
    assert names(opened) == ["pc-10", "pc-9", "pc-8", "pc-7", "broken.json"]
    opened.locator("#machines").get_by_role("button", name="State").click()
    assert names(opened)[:2] == ["pc-8", "broken.json"]
    opened.get_by_label("Only rows with these words:").fill("nvidia 4090")
    assert names(opened) == ["pc-9"]


def test_a_button_changes_the_language(opened: Page) -> None:
    """All that is a sentence changes; what was typed and sorted stays."""
    expect(opened.get_by_role("heading", level=1)).to_have_text("PyTorch on 4 machines", use_inner_text=True)
    opened.get_by_label("Only rows with these words:").fill("macos")
    opened.get_by_role("button", name="简体中文").click()
    expect(opened.get_by_role("heading", level=1)).to_have_text("4 台机器上的 PyTorch", use_inner_text=True)
    expect(opened.get_by_role("button", name="简体中文")).to_have_attribute("aria-pressed", "true")
    assert names(opened) == ["pc-7"]
    assert "could be better" not in opened.locator("body").inner_text()


def test_it_can_be_printed(opened: Page) -> None:
    """On paper there is nothing to press, and no cell is wider than the sheet."""
    opened.emulate_media(media="print")
    expect(opened.get_by_role("navigation")).to_be_hidden()
    expect(opened.locator("input")).to_be_hidden()
    opened.set_viewport_size({"width": 1047, "height": 718})  # A4 across, with its margins, at 96 dots to the inch
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.pdf(prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_for_everybody(opened: Page, scheme: str) -> None:
    """Axe finds nothing against WCAG 2.2 AA and its best practices, in the light and in the dark."""
    opened.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    assert violations(opened, "html", STRICT) == []
