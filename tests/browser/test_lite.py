"""The demo that needs no server: the site is built, served as plain files, and opened with everything else cut off."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from guided import ROOT, run_first_cell, unfold
from lite_site import build
from playwright.sync_api import Page, expect

from assistant.machines import shipped


def open_notebook(page: Page, address: str, name: str) -> None:
    """Show a notebook of the site."""
    page.goto(f"{address}/lab/index.html?path={name}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(state="attached")


@pytest.mark.heavy
def test_the_gallery_and_its_wizard_work_without_a_server(site_visitor: Page, site_address: str) -> None:
    """The cards are there and can be filtered; one is opened in the wizard, which plans for it in both languages."""
    open_notebook(site_visitor, site_address, "gallery.ipynb")
    gallery = run_first_cell(site_visitor)
    cards = gallery.locator(".ptsa-machine-card:visible")
    expect(cards).to_have_count(len(shipped()))
    gallery.get_by_label("Search").fill("RX 6700 XT")
    gallery.get_by_label("Search").press("Enter")
    expect(cards).to_have_count(1)
    cards.first.click()
    gallery.get_by_role("button", name="Setup package for such PCs").click()
    with site_visitor.expect_download() as waiting:
        gallery.get_by_role("link", name="Download pytorch-packages.zip").click()
    assert "index.html" in zipfile.ZipFile(waiting.value.path()).namelist()
    gallery.get_by_role("button", name="Open in the wizard").click()
    wizard = gallery.locator(".ptsa-wizard")
    expect(wizard.get_by_text("python3 start.py")).to_be_visible()
    unfold(wizard, "Why this one")
    expect(wizard.get_by_text("HSA_OVERRIDE_GFX_VERSION=10.3.0").first).to_be_visible()
    wizard.get_by_role("combobox", name="Language", exact=True).select_option("简体中文")
    expect(wizard.get_by_role("heading", name="适用于")).to_be_visible()


@pytest.mark.heavy
@pytest.mark.parametrize("site_visitor", [{"locale": "zh-CN"}], indirect=True)
def test_the_wizard_looks_at_recorded_machines_only(site_visitor: Page, site_address: str) -> None:
    """The guided notebook runs by itself, on a recorded machine, in the browser's language; it cannot be installed."""
    open_notebook(site_visitor, site_address, "setup.ipynb")
    wizard = site_visitor.locator(".ptsa-wizard")
    wizard.wait_for()
    expect(wizard.get_by_text("正在模拟 Arch Linux")).to_be_visible()
    unfold(wizard, "更改")
    machines = wizard.get_by_label("机器", exact=True).locator("option")
    expect(machines).to_have_count(len(shipped()))
    unfold(wizard, "为什么")
    expect(wizard.get_by_text("HSA_OVERRIDE_GFX_VERSION=10.3.0").first).to_be_visible()
    expect(wizard.get_by_text("这是在模拟另一台机器，无法安装任何内容。")).to_be_visible()
    expect(wizard.get_by_role("button", name="安装", exact=True)).to_be_disabled()


@pytest.mark.heavy
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    """The build replaces an older site and nothing else; a wrong folder is refused before anything is fetched."""
    (tmp_path / "thesis.txt").write_text("mine")
    done = build(tmp_path)
    assert done.returncode == 2
    assert "name a new folder" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.heavy
def test_a_lab_is_played_to_its_end_without_a_server(site_visitor: Page, site_address: str) -> None:
    """Its program fails in the page, its cause is named, the assistant answers, and the mended file is right."""
    notebook = next((ROOT / "notebooks" / "labs").glob("*-render-group.ipynb")).name
    open_notebook(site_visitor, site_address, notebook)
    mended = 'lab.write("compose.yaml", lab.read("compose.yaml") + "    group_add: [992]\\n")'
    for code, answer in (
        ("", "Unable to open /dev/kfd read-write: Permission denied"),
        ('lab.predict("group-missing", "Permission denied")', "your evidence proves it"),
        ('lab.run("assistant plan --replay linux-ubuntu2404-rx7900xt-no-render")', "PyTorch 2."),
        (mended, "Written to compose.yaml"),
        ("lab.check()", "Fixed: 10 of 10 points"),
    ):
        cell = site_visitor.locator(".jp-Notebook .jp-CodeCell").first
        cell.locator(".cm-content").click()
        if code:
            site_visitor.keyboard.press("ControlOrMeta+A")
            site_visitor.keyboard.insert_text(code)
        site_visitor.keyboard.press("Control+Enter")
        expect(cell.get_by_text(answer).first).to_be_visible()
