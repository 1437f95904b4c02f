"""What opens by itself: the guided setup from the start command alone; what it asks of JupyterLab; what stays shut."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from guided import ROOT, jupyter_environment, main_button, notebook_for, printed_address, stop, tab_to
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.full

# Points all over the wizard at which something else is seen.
COVERED = """root => {
    const { left, top, width, height } = root.getBoundingClientRect();
    const shares = [0.02, 0.2, 0.4, 0.6, 0.8, 0.98];
    const points = shares.flatMap(x => shares.map(y => [left + x * width, top + y * height]));
    return points.filter(([x, y]) => !root.contains(document.elementFromPoint(x, y)));
}"""
ASK = """([name, detail]) => {
    const event = new CustomEvent(name, { bubbles: true, cancelable: true, detail });
    document.querySelector(".ptsa-wizard").dispatchEvent(event);
    return event.defaultPrevented;
}"""
CELL = {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "outputs": []}


def notebook(*sources: str, kernel: str = "python3") -> dict[str, object]:
    """Give a notebook of code cells."""
    named = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
    cells = [{**CELL, "id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": named, "cells": cells}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a home that no assistant has seen."""
    return tmp_path / "home"


@contextmanager
def started(home: Path, *command: object) -> Iterator[str]:
    """Type a command and `lab`, with nothing but a free port and no window; give the address that it prints."""
    home.mkdir()
    environment = {**jupyter_environment(home), "HOME": str(home)}
    log = home / "log"
    options = ["lab", "--no-browser", "--ServerApp.port=0", "--LabApp.expose_app_in_browser=True"]
    with log.open("wb") as output:
        words = [*map(str, command), *options]
        child = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield printed_address(child, log)
    finally:
        stop(child)


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    """Type `python3 start.py`; give the address that it prints."""
    with started(home, sys.executable, ROOT / "start.py") as printed:
        yield printed


@pytest.fixture
def opened(page: Page, address: str) -> Iterator[Locator]:
    """Open the printed address in a window of 1280 by 800, and do nothing else; give the wizard."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(address)
    wizard = page.locator(".ptsa-wizard")
    wizard.wait_for(timeout=60_000)
    yield wizard
    page.goto("about:blank")  # its server ends before the page does


def drawn_again(page: Page, act: Callable[[], object]) -> Locator:
    """Mark the wizard that is seen, do something, and wait for another one."""
    page.locator(".ptsa-wizard").evaluate("root => root.dataset.old = 'yes'")
    act()
    again = page.locator(".ptsa-wizard:not([data-old])")
    again.wait_for(timeout=60_000)
    return again


def test_the_start_command_alone_shows_the_wizard(page: Page, opened: Locator, home: Path) -> None:
    """Without a click or a key the wizard fills the window's middle: no code, no question over it, no file changed."""
    expect(opened.get_by_role("button", name="Install", exact=True)).to_be_enabled(timeout=60_000)
    page.wait_for_timeout(2000)  # what JupyterLab might still ask
    box = opened.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 800
    assert box["width"] * box["height"] > 0.8 * 1280 * 800
    assert opened.evaluate(COVERED) == []
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("Jupyter news")).to_have_count(0)
    for part in (".jp-InputArea", ".jp-MarkdownOutput", ".jp-NotebookPanel-toolbar", ".jp-FileBrowser"):
        expect(page.locator(f"{part}:visible")).to_have_count(0)
    assert page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty") is False
    copies = home / "share" / "pytorch-setup-assistant" / "notebooks"
    assert (copies / "setup.ipynb").read_bytes() == (ROOT / "notebooks" / "setup.ipynb").read_bytes()
    assert not list(copies.glob("Untitled*"))


def test_a_restarted_kernel_and_a_reloaded_page_draw_the_wizard_again(page: Page, opened: Locator) -> None:
    """After Restart Kernel in the menu, and after a reload, the wizard comes back without a cell being run by hand."""
    main_button(opened, "Install")

    def restart() -> None:
        page.get_by_role("menuitem", name="Kernel", exact=True).click()
        page.locator(".lm-Menu-item").filter(has_text="Restart Kernel…").click()
        page.locator(".jp-Dialog-button.jp-mod-accept").click()

    again = drawn_again(page, restart)
    main_button(again, "Install")
    wrong = page.locator(".ptsa-wizard").get_by_role("button", name="Something is wrong?")
    wrong.click()
    expect(wrong).to_have_attribute("aria-current", "page")
    drawn_again(page, page.reload)
    expect(wrong).to_have_attribute("aria-current", "page")  # it stands where it stood
    expect(page.locator(".ptsa-wizard")).to_have_count(1)


def test_the_code_is_one_command_away(page: Page, opened: Locator) -> None:
    """The View menu shows the notebook with its code and instructions, and the page again."""
    main_button(opened, "Install")
    for seen in (True, False):
        page.get_by_role("menuitem", name="View", exact=True).click()
        page.get_by_text("Set up PyTorch: show the notebook's code").click()
        expect(page.locator(".jp-CodeCell .jp-InputArea")).to_be_visible(visible=seen)
        expect(page.locator(".jp-MarkdownOutput")).to_be_visible(visible=seen)
        expect(opened).to_be_visible()


def test_keys_do_not_change_the_notebook_behind_the_page(page: Page, opened: Locator) -> None:
    """Letters that mean a command of the notebook (delete, cut, add) do nothing, on the page and on a button of it."""
    main_button(opened, "Install")
    for key in ("Escape", "d", "d", "x", "m", "o", "z", "a", "Shift+Enter"):
        page.keyboard.press(key)
    tab_to(opened, "button", "Install")
    for key in "bddx":
        page.keyboard.press(key)
    expect(main_button(opened, "Install")).to_be_focused()
    page.wait_for_timeout(500)
    kinds = page.evaluate("[...window.jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.type)")
    assert kinds == ["markdown", "code"]
    expect(opened).to_be_visible()


@pytest.mark.parametrize("kind", ["other-code", "one-cell-more", "a-module-beside-it"])
def test_code_that_is_not_ours_is_not_run(kind: str, page: Page, jupyter_server, open_notebook) -> None:
    """A notebook with our metadata runs by itself only if all code is ours and no stranger's module would be loaded."""
    folder = jupyter_server.root_dir / kind
    folder.mkdir()
    shipped = notebook_for("python3")
    touch = "from pathlib import Path\nPath('touched').touch()"
    if kind == "a-module-beside-it":
        (folder / "torch_setup_assistant.py").write_text(touch)
    elif kind == "one-cell-more":
        shipped["cells"].append({**CELL, "id": "more", "source": touch})
    else:
        shipped["cells"][1]["source"] = touch
    (folder / "setup.ipynb").write_text(json.dumps(shipped))
    open_notebook(f"{kind}/setup.ipynb")
    expect(page.locator(".jp-InputArea").first).to_be_visible()
    page.wait_for_timeout(3000)
    assert page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status") == "idle"
    assert not (folder / "touched").exists()
    expect(page.locator(".jp-OutputArea-output")).to_have_count(0)


def test_a_kernel_without_the_assistant_is_seen_with_what_to_do(page: Page, jupyter_server, open_notebook) -> None:
    """Where the cell fails, nothing is hidden any more: code, instructions and the error are there to be read."""
    spec = jupyter_server.state_dir / "data" / "kernels" / "bare"
    spec.mkdir(parents=True)
    code = "import sys; sys.modules['torch_setup_assistant'] = None; import ipykernel.kernelapp as app; "
    argv = [sys.executable, "-c", f"{code}app.launch_new_instance()", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Bare", "language": "python"}))
    (jupyter_server.root_dir / "bare.ipynb").write_text(json.dumps(notebook_for("bare")))
    try:
        open_notebook("bare.ipynb")
        expect(page.get_by_text("ModuleNotFoundError").first).to_be_visible(timeout=60_000)
        for part in (".jp-CodeCell .jp-InputArea", ".jp-MarkdownOutput", ".jp-NotebookPanel-toolbar", "#jp-menu-panel"):
            expect(page.locator(part)).to_be_visible()
    finally:
        shutil.rmtree(spec)


@pytest.mark.parametrize("call", ['open_wizard(language="zh_CN")', 'open_wizard(language="en")'])
def test_it_runs_in_a_folder_and_a_language_of_ones_own(call: str, page: Page, jupyter_server, open_notebook) -> None:
    """Our code, with a language named, is recognised wherever it lies, if only notebooks and data lie beside it."""
    folder = jupyter_server.root_dir / f"mine-{call[-4:-2]}"
    (folder / "images").mkdir(parents=True)
    shipped = notebook_for("python3")
    shipped["cells"][1]["source"] = "".join(shipped["cells"][1]["source"]).replace("open_wizard()", call)
    (folder / "any name.ipynb").write_text(json.dumps(shipped))
    open_notebook(f"{folder.name}/any name.ipynb")
    page.locator(".ptsa-wizard").wait_for(timeout=60_000)


def test_the_gallery_runs_by_itself(page: Page, jupyter_server, open_notebook) -> None:
    """Table and wizard are there without a key, below what explains them; a copy with other code is not run."""
    open_notebook("gallery.ipynb")
    page.locator(".ptsa-wizard").wait_for(timeout=60_000)
    expect(page.get_by_role("heading", name="Gallery of machines")).to_be_visible()
    assert page.get_by_role("row").count() > 80
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    folder = jupyter_server.root_dir / "other"
    folder.mkdir()
    text = (ROOT / "notebooks" / "gallery.ipynb").read_text(encoding="utf-8")
    (folder / "gallery.ipynb").write_text(text.replace("draw_gallery()", "print('ran')"), encoding="utf-8")
    open_notebook("other/gallery.ipynb")
    page.wait_for_timeout(3000)
    expect(page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output")).to_have_count(0)


def test_the_wizard_has_a_notebook_opened_and_run(page: Page, jupyter_server, open_notebook) -> None:
    """`ptsa-open-notebook` saves a notebook beside the guided one and runs it on a kernel that was just registered."""
    open_notebook("setup.ipynb")
    page.locator(".ptsa-wizard").wait_for(timeout=60_000)
    spec = jupyter_server.state_dir / "data" / "kernels" / "made-just-now"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "New", "language": "python"}))
    sources = ("print('computed', 6 * 7)", "print(*range(99), sep='\\n')", "print('and', 8 * 9)")
    first = notebook(*sources, kernel="made-just-now")
    detail = {"name": "first-steps.ipynb", "notebook": first, "kernel": "made-just-now"}
    try:
        assert page.evaluate(ASK, ["ptsa-open-notebook", detail]) is True
        expect(page.get_by_text("and 72", exact=True)).to_be_attached(timeout=60_000)
        expect(page.get_by_text("computed 42", exact=True)).to_be_in_viewport()
        page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
        (session,) = (one for one in jupyter_server.ask("sessions") if one["path"] == "first-steps.ipynb")
        assert session["kernel"]["name"] == "made-just-now"

        assert page.evaluate(ASK, ["ptsa-open-notebook", detail]) is True  # the same is used again, and not run again
        page.wait_for_timeout(3000)
        expect(page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-InputPrompt").last).to_have_text("[3]:")
        other = {**detail, "notebook": notebook("print('another', 5 * 5)", kernel="made-just-now")}
        assert page.evaluate(ASK, ["ptsa-open-notebook", other]) is True
        expect(page.get_by_text("another 25", exact=True)).to_be_visible(timeout=60_000)
        names = {path.name for path in jupyter_server.root_dir.glob("first-steps*")}
        assert names == {"first-steps.ipynb", "first-steps-2.ipynb"}
        assert page.evaluate(ASK, ["ptsa-open-notebook", {**detail, "name": "../outside.ipynb"}]) is False
    finally:
        shutil.rmtree(spec)


def test_the_wizard_has_a_folder_shown(page: Page, address: str, home: Path, opened: Locator) -> None:
    """`ptsa-open-file` shows what lies below the server's folder in the file browser, and leaves the rest to others."""
    assert address
    copies = home / "share" / "pytorch-setup-assistant" / "notebooks"
    (copies / "labs-work" / "lab").mkdir(parents=True)
    assert page.evaluate(ASK, ["ptsa-open-file", {"path": str(copies / "labs-work")}]) is True
    expect(page.locator(".jp-FileBrowser")).to_be_visible()
    expect(page.locator(".jp-DirListing-item").filter(has_text="lab")).to_be_visible()
    for path in (str(home), "/etc", f"{copies}-of-another", ""):
        assert page.evaluate(ASK, ["ptsa-open-file", {"path": path}]) is False
    expect(opened).to_be_visible()
