"""What must work in a browser, walked through on one JupyterLab: from opening it to files on disk."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from accessibility import complaints
from guided import (
    ERROR,
    TASK_MS,
    choose_machine,
    expect_focus_on,
    main_button,
    press,
    run_first_cell,
    tab_to,
    unfold,
)
from playwright.sync_api import Locator, Page, expect
from served import Server

INSTALL_MS = 300_000
OTHER_ERROR = "The operator 'aten::_linalg_solve_ex.result' is not currently implemented for the MPS device."
RADEON = "Arch Linux, Radeon RX 6700 XT, torch-directml installed"
IMAGES = Path(__file__).parents[2] / "notebooks" / "images"
# Pictures tell nothing of the machine that they were taken on: of each path they keep the last part.
HIDE_PATHS = r"""root => {
    const path = /(?<![\w:/.…])(?:file:\/\/)?(?!\/(?:proc|sys)\/)(?:\/[\w.+%@-]+)+(?=\/[\w.+%@-]+)/g;
    const shorter = text => text.replace(path, "/home/ada");
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = shorter(walker.currentNode.data);
    for (const field of root.querySelectorAll("input")) field.value = shorter(field.value);
}"""

# Nothing in the page changes for a second. What draws without end takes a processor as long as the page is open.
STANDS_STILL = """() => new Promise((answer) => {
    const watcher = new MutationObserver(() => { watcher.disconnect(); answer(false); });
    watcher.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    setTimeout(() => { watcher.disconnect(); answer(true); }, 1000);
})"""


@pytest.fixture
def wizard(open_notebook) -> Locator:
    """Open the guided notebook and wait for the wizard."""
    return run_first_cell(open_notebook("setup.ipynb"))


@pytest.fixture
def picture(page: Page, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Give a function that renews the README's pictures of one view, in both languages, when the run was asked to.

    `at` is a selector of what shall stand at the top.
    """
    wizard = page.locator(".ptsa-wizard")
    language = wizard.locator(".ptsa-language select")

    def take(name: str, *, at: str = "") -> None:
        if not request.config.getoption("--screenshots"):
            return
        found = subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True, check=True).stdout
        assert found, "There is no Chinese font for the pictures: install one, such as Debian's fonts-noto-cjk."
        page.mouse.move(0, 0)  # nothing is shown as pointed at
        for code, words, suffix in (("zh-CN", "简体中文", "-zh"), ("en", "English", "")):
            language.select_option(words)
            expect(wizard).to_have_attribute("lang", code)
            page.wait_for_timeout(1000)  # all of it is drawn again
            wizard.evaluate(HIDE_PATHS)
            if at:
                wizard.locator(at).first.evaluate("element => element.scrollIntoView()")
            wizard.screenshot(path=IMAGES / f"wizard-{name}{suffix}.png", animations="disabled")

    return take


def test_a_recorded_machine_is_planned_for_and_diagnosed(wizard: Locator, picture: Callable[..., None]) -> None:
    """It is replayed, said so, and never installed on; the page speaks Chinese, and answers for the text in its box.

    What was opened stays open when it is drawn anew, for another machine, too.

    The plan is accessible as WCAG 2.2 AA asks; `test_accessible` looks at every view.
    """
    choose_machine(wizard, RADEON)
    expect(wizard.get_by_role("heading", name="for your Radeon RX 6700 XT")).to_be_visible()
    unfold(wizard, "Why this one")
    facts = wizard.get_by_role("region", name="This computer")
    facts.get_by_text("All facts, and where each comes from").click()
    expect(facts.get_by_role("row", name="GPU")).to_contain_text("gfx1031")
    expect(wizard.get_by_role("button", name="Install", exact=True)).to_be_disabled()
    page = wizard.page
    page.set_viewport_size({"width": 1280, "height": 3000})  # axe passes over what is out of sight
    page.add_style_tag(content="body { height: 100vh }")  # axe takes a body of no height, as JupyterLab's, for hidden
    assert complaints(wizard) == []
    page.set_viewport_size({"width": 1280, "height": 900})

    wizard.get_by_label("Machine", exact=True).select_option("Linux Mint 22 laptop, Radeon 780M and RTX 4070 Laptop")
    expect(facts.get_by_role("heading", name="Radeon 780M")).to_be_visible()
    expect(facts.get_by_role("row", name="GPU")).to_have_count(2)
    expect(wizard.get_by_role("heading", name="The alternatives")).to_be_visible()
    picture("why", at="button[aria-expanded=true]")

    language = wizard.locator(".ptsa-language select")
    button = wizard.get_by_role("button", name="Back to this machine")
    button.evaluate(
        """button => {
            window.settled = 0;
            const count = () => { window.settled += button.classList.contains("ptsa-settling"); };
            new MutationObserver(count).observe(button, { attributeFilter: ["class"] });
        }"""
    )
    language.select_option("简体中文")
    expect(wizard.get_by_role("heading", name="适用于")).to_be_visible()
    wizard.page.wait_for_function("window.settled > 0")  # a button whose words change takes no press for a moment
    expect(wizard.get_by_text("包含适用于").first).to_be_visible()
    expect(wizard).to_have_attribute("lang", "zh-CN")
    language.select_option("English")
    expect(wizard.get_by_role("heading", name="for your GeForce")).to_be_visible()
    expect(wizard).to_have_attribute("lang", "en")
    wizard.page.wait_for_function(STANDS_STILL)

    choose_machine(wizard, RADEON)
    wizard.get_by_role("button", name="Something is wrong?").click()
    box = wizard.get_by_label("Paste an error message")
    box.fill(ERROR)
    main_button(wizard, "Find the cause").click()
    expect(wizard.get_by_role("heading", name="which only Windows and WSL have")).to_be_visible()
    main_button(wizard, "Mend it")
    wizard.get_by_role("button", name=re.compile("Other fixes")).click()
    expect(wizard.get_by_text("python -m pip uninstall -y torch-directml")).to_be_visible()
    box.fill(OTHER_ERROR)
    expect(wizard.get_by_role("heading", name="which only Windows and WSL have")).to_have_count(0)
    main_button(wizard, "Find the cause").click()
    expect(wizard.get_by_role("heading", name="An operator has no Metal kernel")).to_be_visible()
    box.fill("something odd that nobody knows")
    main_button(wizard, "Find the cause").click()
    expect(wizard.get_by_text("No known problem matches this text.")).to_be_visible()
    expect(wizard.get_by_text("No problem was found")).to_have_count(0)


FEW = 9  # files that one purpose writes at most: who is given 35 looks for the one that matters


def expect_written(wizard: Locator, folder: Path, downloaded: Path) -> None:
    """Find the files of a configuration in their folder, in what was downloaded, and on the page."""
    assert {path.name for path in folder.iterdir()} >= {"requirements.txt", "assistant.toml", "report.md"}
    assert len(list(folder.iterdir())) <= FEW
    with zipfile.ZipFile(downloaded) as pack:
        assert pack.read("report.md") == (folder / "report.md").read_bytes()
    unfold(wizard, "The individual files")
    report = wizard.get_by_role("listitem").filter(has=wizard.page.get_by_role("link", name="Download report.md"))
    report.get_by_text("Read it here").click()
    expect(report.locator("pre")).to_have_text((folder / "report.md").read_text())


def test_the_whole_journey_by_keyboard_alone(
    page: Page, tmp_path: Path, jupyter_server: Server, picture: Callable[..., None]
) -> None:
    """At the server's address the plan comes by itself; Tab, Enter, Space and typing lead to a notebook that computes.

    Each view's heading gets the focus.
    """
    page.goto(f"{jupyter_server.url}/?token={jupyter_server.token}")
    target = tmp_path / "pytorch"
    wizard = page.locator(".ptsa-wizard")
    main_button(wizard, "Install")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for part in (".jp-InputArea", ".jp-MarkdownOutput", ".jp-NotebookPanel-toolbar", ".jp-FileBrowser"):
        expect(page.locator(f"{part}:visible")).to_have_count(0)
    picture("ready")
    press(wizard, "Change something: machine, version, Python, folder, nightly builds", "Space")
    tab_to(wizard, "textbox", "Folder")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(str(target))
    page.keyboard.press("Enter")
    unfold(wizard, "The exact commands")
    expect(wizard.locator("pre").filter(has_text="uv venv")).to_contain_text(str(target), timeout=TASK_MS)
    expect(wizard.get_by_role("row").filter(has_text="Download")).to_contain_text("MB", timeout=TASK_MS)

    press(wizard, "Install")
    expect(wizard.get_by_role("progressbar")).to_be_visible()
    expect(wizard.get_by_role("heading", name="PyTorch works on your processor")).to_be_visible(timeout=INSTALL_MS)
    expect_focus_on(page, "PyTorch works on your processor")
    expect(wizard.get_by_text("All checks passed on the device cpu.").first).to_be_visible(timeout=TASK_MS)
    expect(wizard.get_by_role("img", name="A Julia set")).to_be_visible(timeout=TASK_MS)  # its own torch drew it
    expect(wizard.get_by_text("240,000 points in")).to_be_visible()
    picture("done")
    unfold(wizard, "The checks, one by one")
    expect(wizard.get_by_role("row", name="Multiply matrices")).to_be_visible()
    python = target / "bin" / "python"
    kernels = json.loads(json.dumps(jupyter_server.ask("kernelspecs")))["kernelspecs"]
    assert any(spec["spec"]["argv"][0] == str(python) for spec in kernels.values())

    tab_to(wizard, "button", "Something is wrong?", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect_focus_on(page, "Is anything wrong?")
    press(wizard, "Back")
    expect_focus_on(page, "PyTorch works on your processor")
    press(wizard, "Save the configuration colleague, project, container, bug report")
    expect_focus_on(page, "Save the configuration")
    tab_to(wizard, "radio", "A colleague to make the same environment on a similar machine")
    page.keyboard.press("ArrowRight")
    expect(wizard.get_by_role("radio", name="My project")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    press(wizard, "Write the files")
    with page.expect_download() as download:
        tab_to(wizard, "link", "Download configuration.zip")
        page.keyboard.press("Enter")
    picture("export")
    expect_written(wizard, jupyter_server.root_dir / "pytorch-configuration", download.value.path())

    main_button(wizard, "Back").click()
    main_button(wizard, "Open a notebook with it").click()
    printed = page.locator(".jp-OutputArea-output").filter(has_text=re.compile(r"torch \S+\+cpu → cpu"))
    printed.wait_for(timeout=120_000)


def test_a_failing_cell_is_explained_at_its_side(open_notebook, notebook) -> None:
    """The button below its traceback opens the cause beside the notebook, and who types in a cell goes on typing."""
    page = open_notebook(notebook("failing.ipynb", f"raise ImportError({ERROR.partition(': ')[2]!r})", "text = ''"))
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    cell.get_by_role("button", name="Something is wrong?").click()
    wizard = page.locator(".ptsa-side .ptsa-wizard")
    expect(wizard.locator(".ptsa-cause .ptsa-heading")).to_contain_text("DirectML", timeout=TASK_MS)
    typing = page.locator(".jp-CodeCell").nth(1).locator(".cm-content")
    typing.click()
    wizard.get_by_role("button", name="Back", exact=True).evaluate("button => button.click()")
    expect(wizard.get_by_role("heading", name="Is anything wrong?")).to_have_count(0)
    page.wait_for_timeout(500)  # a page takes the focus to its heading once its widgets are drawn
    expect(typing).to_be_focused()
