"""The demo that needs no server: the site is built, served as plain files, and opened with everything else cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from accessibility import STRICT, violations
from guided import unfold
from lite_site import START_MS, build, run
from playwright.sync_api import Locator, Page, expect

from assistant.machines import shipped


def open_notebook(page: Page, address: str, name: str) -> None:
    """Show a notebook of the site."""
    page.goto(f"{address}/lab/index.html?path={name}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(state="attached")


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


def run_code(cell: Locator, code: str) -> None:
    """Put code in the place of a cell's own, and run it."""
    editor = cell.locator(".cm-content")
    editor.click()
    editor.press("ControlOrMeta+A")
    editor.page.keyboard.insert_text(code)
    expect(editor).to_have_text(code)
    run(cell)


@pytest.mark.heavy
def test_a_lab_is_played_to_its_end_without_a_server(site_visitor: Page, site_address: str) -> None:
    """The start page opens it; its program fails in the page, its cause is named, and the mended file is right."""
    site_visitor.goto(site_address)
    site_visitor.get_by_role("link", name="The render group in a container").click()
    cell = site_visitor.locator(".jp-Notebook .jp-CodeCell").first
    run(cell)
    failing = cell.get_by_text("Unable to open /dev/kfd read-write: Permission denied").first
    expect(failing).to_be_visible(timeout=START_MS)
    mended = 'lab.write("compose.yaml", lab.read("compose.yaml") + "    group_add: [992]\\n")'
    for code, answer in (
        ('lab.predict("group-missing", "Permission denied")', "your evidence proves it"),
        ('lab.run("assistant plan --replay linux-ubuntu2404-rx7900xt-no-render")', "PyTorch 2."),
        ('lab.run("assistant doctor")', "A browser shows nothing of the machine"),
        ('lab.run("pip install torch")', "no environment to install into"),
        (mended, "Written to compose.yaml"),
        ("lab.check()", "Fixed: 10 of 10 points"),
    ):
        run_code(cell, code)
        expect(cell.get_by_text(answer).first).to_be_visible()


@pytest.mark.heavy
@pytest.mark.parametrize("site_visitor", [{"locale": "zh-CN"}], indirect=True)
def test_a_lab_that_needs_a_computer_says_so(site_visitor: Page, site_address: str) -> None:
    """In the browser's language, before it does anything."""
    open_notebook(site_visitor, site_address, "19-render-group.ipynb")
    cell = site_visitor.locator(".jp-Notebook .jp-CodeCell").first
    run_code(cell, 'from assistant.labs import Lab; Lab("wrong-kernel").start()')
    expect(cell.get_by_text("不能在浏览器中做").first).to_be_visible(timeout=START_MS)


@pytest.mark.heavy
@pytest.mark.parametrize("site_visitor", [{"locale": "zh-CN"}], indirect=True)
def test_the_start_page_leads_to_all_that_is_there(site_visitor: Page, site_address: str) -> None:
    """In the browser's language or the one that is chosen; each link leads to a page, the five lessons among them."""
    site_visitor.goto(site_address)
    for language, first, folder in (
        ("", "浏览器里的 PyTorch 安装助手", "docs/zh_CN/lessons"),
        ("English", "PyTorch setup assistant in the browser", "docs/lessons"),
    ):
        if language:
            site_visitor.get_by_role("combobox").select_option(language)
        expect(site_visitor.get_by_role("heading", level=1)).to_have_text(first)
        assert violations(site_visitor, "body", STRICT) == []
        links = [link.evaluate("link => link.href") for link in site_visitor.get_by_role("link").all()]
        assert sum(f"/{folder}/" in link for link in links) == 5
        for link in links:
            assert site_visitor.request.get(link).ok, link
            name = link.rpartition("path=")[2]
            assert "path=" not in link or site_visitor.request.get(f"{site_address}/files/{name}").ok, link
    site_visitor.get_by_role("link", name="Drivers and toolkits").click()
    expect(site_visitor.get_by_role("heading", name="Drivers and toolkits")).to_be_visible()


@pytest.mark.heavy
@pytest.mark.parametrize("site_visitor", [{"locale": "zh-CN"}], indirect=True)
def test_the_lines_of_a_lesson_are_changed_and_run_in_its_page(site_visitor: Page, site_address: str) -> None:
    """What comes is what the page has printed, for another machine another answer, and a refusal is one sentence."""
    site_visitor.goto(f"{site_address}/docs/zh_CN/lessons/drivers.html")
    block = site_visitor.locator(".highlight-console").filter(has_text="plan --replay").first
    fold = site_visitor.locator(".highlight-console + .try").nth(1)
    fold.get_by_text("在这里试试").click()
    line, run, printed = fold.get_by_role("textbox"), fold.get_by_role("button", name="运行"), fold.locator("pre")
    typed, _sign, answer = block.inner_text().strip().partition("\n")
    expect(line).to_have_value(typed.removeprefix("$ "))
    run.click()
    expect(printed).to_have_text(answer, timeout=START_MS)
    for changed, said in (
        ("assistant plan --replay windows11-rtx3060", "PyTorch 2."),
        ("assistant plan", "浏览器看不到它所在的机器"),
        ("assistant setup --yes", "无法在浏览器中运行"),
        ("pip install torch", "只能运行以 `assistant` 开头"),
    ):
        line.fill(changed)
        line.press("Enter")
        expect(printed).to_contain_text(said)
    assert violations(site_visitor, ".try[open]", STRICT) == []
    site_visitor.get_by_role("link", name="起始页").click()
    expect(site_visitor.get_by_role("heading", level=1)).to_have_text("浏览器里的 PyTorch 安装助手")
