"""The wizard under rough hands in a real JupyterLab: many clicks, reloads, two tabs, a kernel that dies, long words."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from guided import main_button, run_first_cell, unfold
from made_up import write_made_up
from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as Late

pytestmark = pytest.mark.full

SHIPPED = "linux-mint22-laptop-780m-rtx4070"
# A machine that answers only once a file is there: a task that lasts as long as a test wants.
HELD = """
import time
from pathlib import Path
from assistant.host.live import LiveHost
from assistant.wizard.app import open_here

class Held(LiveHost):
    def ask(self, kind, *arguments):
        while not Path({gate!r}).exists():
            time.sleep(0.05)
        return super().ask(kind, *arguments)

open_here(host=Held())
"""
# Every click that was sent has been answered: for half a second nothing runs, in the kernel or in a job of the wizard.
IS_QUIET = """() => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const stop = [...document.querySelectorAll(".ptsa-wizard button")].find(b => b.textContent === "Cancel");
    if (kernel.status !== "idle" || (stop && !stop.hidden && !stop.disabled)) window.quietSince = undefined;
    else window.quietSince ??= performance.now();
    return performance.now() - window.quietSince > 500;
}"""
# Elements of ours whose text is wider or taller than they are, and that neither scroll nor wrap.
CLIPPED = """root => [...root.querySelectorAll("*")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.offsetParent
        && !e.closest("pre, select, svg, .ptsa-offscreen") && getComputedStyle(e).overflowX !== "visible"
        && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1))
    .map(e => `${e.className}: ${e.textContent.slice(0, 60)}`)"""


def storm(button: Locator) -> None:
    """Click twenty times, as fast as the browser can."""
    button.evaluate("button => { for (let n = 0; n < 20; n++) button.click(); }")


def link(wizard: Locator, name: str) -> Locator:
    """Find a way to another page."""
    return wizard.get_by_role("navigation").get_by_role("button", name=name)


def test_a_storm_of_clicks_is_one_press(open_notebook, notebook) -> None:
    """Twenty clicks on a link, on the main button, on a fold and a control do what one does."""
    page = open_notebook(notebook("storm.ipynb", f"from assistant.wizard import open_wizard\nopen_wizard('{SHIPPED}')"))
    wizard = run_first_cell(page)
    expect(wizard.get_by_text("so nothing can be installed").last).to_be_visible()
    storm(wizard.get_by_role("button", name="Install", exact=True))
    storm(link(wizard, "Something is wrong?"))
    storm(main_button(wizard, "Find the cause"))
    page.wait_for_function(IS_QUIET)
    expect(link(wizard, "Something is wrong?")).to_have_attribute("aria-current", "page")
    storm(link(wizard, "The setup"))
    unfold(wizard, "Change something")
    storm(wizard.get_by_role("button", name="Look at the machine again"))
    page.wait_for_function(IS_QUIET)
    expect(wizard.get_by_role("heading", name="RTX 4070").first).to_be_visible()
    expect(wizard.get_by_role("button", name="Install", exact=True)).to_be_disabled()


def test_a_reload_and_a_second_tab_show_the_same_work(open_notebook, notebook, jupyter_server, tmp_path: Path) -> None:
    """Work goes on through a reload, a second tab shows it, and a cancel there is over before the machine answers."""
    gate = tmp_path / "gate"
    page = open_notebook(notebook("tabs.ipynb", HELD.format(gate=str(gate))))
    wizard = run_first_cell(page)
    looking = "Looking at this machine"
    expect(wizard.get_by_role("heading", name=looking)).to_be_visible()
    page.keyboard.press("Control+s")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")

    page.reload()
    expect(wizard.get_by_role("heading", name=looking)).to_be_visible(timeout=60_000)
    second = page.context.new_page()
    second.goto(jupyter_server.document("tabs.ipynb"))
    other = second.locator(".ptsa-wizard")
    expect(other.get_by_role("heading", name=looking)).to_be_visible(timeout=60_000)
    expect(other.locator(".ptsa-time")).to_have_text(re.compile(r"\d:\d\d so far"), timeout=30_000)

    other.get_by_role("button", name="Cancel", exact=True).click()
    for shown in (wizard, other):
        expect(shown.get_by_text("You cancelled the work.")).to_be_visible()
    assert not gate.exists()
    gate.touch()
    main_button(wizard, "Try again").click()
    expect(wizard.get_by_role("heading", name="for your processor")).to_be_visible()
    expect(other.get_by_role("heading", name="for your processor")).to_be_visible()


def test_a_kernel_that_dies_is_told_and_the_cell_brings_the_wizard_back(
    open_notebook, notebook, jupyter_server, tmp_path: Path
) -> None:
    """What is left of the old wizard is greyed, says why, and cannot be pressed; running the cell again starts anew."""
    gate = tmp_path / "gate"
    page = open_notebook(notebook("dying.ipynb", HELD.format(gate=str(gate))))
    wizard = run_first_cell(page)
    expect(wizard.get_by_role("heading", name="Looking at this machine")).to_be_visible()
    (session,) = jupyter_server.ask("sessions")
    kernel = session["kernel"]["id"]
    (process,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if any(kernel in word for word in process.info["cmdline"] or ())
    )
    process.kill()
    expect(wizard.get_by_role("alert")).to_be_visible(timeout=60_000)
    expect(wizard.get_by_role("alert")).to_contain_text("run its cell again")
    gate.touch()
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000
    )
    dialog = page.get_by_role("button", name=re.compile("^(Ok|OK|Dismiss)$"))
    if dialog.is_visible():
        dialog.click()
    run_first_cell(page)
    main_button(wizard, "Install")
    expect(wizard.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 480])
def test_long_words_are_not_clipped(open_notebook, notebook, tmp_path: Path, width: int) -> None:
    """In a language that is a third longer everything is still to be read, on a wide page and on a narrow one."""
    folder = write_made_up(tmp_path / "made-up", slack=0.35)
    speak = f"from assistant.i18n import use_language\nuse_language('zh_CN', Path({str(folder)!r}))\n"
    source = f"from pathlib import Path\n{speak}from assistant.wizard.app import open_here\nopen_here('{SHIPPED}')"
    page = open_notebook(notebook("long.ipynb", source))
    page.set_viewport_size({"width": width, "height": 1000})
    wizard = run_first_cell(page)
    heading = wizard.locator(".ptsa-heading")
    links = wizard.get_by_role("navigation").get_by_role("button")
    for number in range(links.count()):
        links.nth(number).click()
        expect(links.nth(number)).to_have_attribute("aria-current", "page")
        expect(heading).to_contain_text("Ж")
        closed = wizard.locator(".ptsa-fold-button[aria-expanded=false]")
        while closed.count():
            with suppress(Late):  # a page that is drawn anew meanwhile may hold no closed one any more
                closed.first.click(timeout=2000)
        assert wizard.evaluate(CLIPPED) == []
        assert wizard.evaluate("root => root.scrollWidth <= root.clientWidth + 1")
