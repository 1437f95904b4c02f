"""“Something is wrong?” below a cell that failed: from its traceback to a cell that runs, by two clicks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accessibility import STRICT, THEMES, violations, wear
from guided import TASK_MS, main_button, make_bare_kernel
from loopback import LoopbackIndex, make_wheel, with_code
from playwright.sync_api import Locator, Page, Route, expect
from served import KERNEL_IS_READY

from assistant.host.files import is_own_environment

pytestmark = pytest.mark.full

# What NumPy 2 prints, and then raises, where a module was compiled for NumPy 1: numpy/core/_internal and
# numpy/_core/src/multiarray, 2.1.
BUILT_FOR_NUMPY_1 = """import sys
import numpy
if numpy.__version__.startswith("2"):
    print("A module that was compiled using NumPy 1.x cannot be run in", file=sys.stderr)
    print("NumPy 2.1.0 as it may crash. To support both 1.x and 2.x", file=sys.stderr)
    raise ImportError("numpy.core.multiarray failed to import")
__version__ = "1.0"
"""
CELL = "import plotlets\nprint('plotlets', plotlets.__version__)"
ODD = "raise RuntimeError('something odd that nobody knows')"
READY = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"


@pytest.fixture(scope="module")
def jupyter_server(served_by: Callable[..., object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Serve with an index in which NumPy 1 can be had, and a kernel without the assistant that has NumPy 2."""
    folder = tmp_path_factory.mktemp("cells")
    index = LoopbackIndex(folder)
    index.add("numpy", "1.26.4")
    library = make_wheel(folder, "plotlets", "1.0", "py3-none-any")
    with_code(library, "plotlets", BUILT_FOR_NUMPY_1)
    two = make_wheel(folder, "numpy", "2.1.0", "py3-none-any")
    make_bare_kernel(folder / "env", folder / "jupyter" / "data", "broken", "ipykernel", library, two)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_INDEX_URL", index.url)
        with served_by("lab", folder / "jupyter") as server:
            yield server
    index.close()


def open_cells(open_notebook: Callable[[str], Page], folder: Path, kernel: str, *sources: str) -> Page:
    """Show a notebook of some cells on a kernel."""
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**cell, "id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
    spec = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
    (folder / f"{kernel}.ipynb").write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": spec, "cells": cells})
    )
    return open_notebook(f"{kernel}.ipynb")


def run_cell(page: Page, number: int) -> Locator:
    """Run a cell of the notebook; give it."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(number)
    cell.locator(".cm-content").first.click()
    page.keyboard.press("Control+Enter")
    return cell


def answer_of(page: Page, cell: Locator) -> Locator:
    """Press the button below a cell that failed; give the box at the side that shows what it printed."""
    cell.get_by_role("button", name="Something is wrong?").click()
    return page.locator(".ptsa-side").get_by_label("Paste an error message")


def numpy_of(server: object) -> str:
    """Tell which NumPy the kernel without the assistant has."""
    python = server.state_dir.parent / "env" / "bin" / "python"
    done = subprocess.run([python, "-c", "import numpy; print(numpy.__version__)"], capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_a_traceback_is_mended_by_two_clicks(open_notebook, jupyter_server) -> None:
    """The answer comes from a kernel that has the assistant, and changes the failing one's after the press alone."""
    page = open_cells(open_notebook, jupyter_server.root_dir, "broken", CELL)
    cell = run_cell(page, 0)
    cell.get_by_role("button", name="Something is wrong?").click()
    wizard = page.locator(".ptsa-side .ptsa-wizard")
    expect(wizard.locator(".ptsa-cause .ptsa-heading")).to_contain_text(
        "plotlets was built for NumPy 1", timeout=TASK_MS
    )
    assert numpy_of(jupyter_server) == "2.1.0"
    main_button(wizard, "Mend it").click()
    expect(wizard.get_by_text("Mended, and its check passed: Go back to NumPy 1.")).to_be_visible(timeout=TASK_MS)
    expect(wizard.get_by_text("Restart the kernel of the notebook, then run the cell again.")).to_be_visible()
    assert numpy_of(jupyter_server) == "1.26.4"
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    page.wait_for_function(READY, timeout=TASK_MS)
    expect(run_cell(page, 0).get_by_text("plotlets 1.0")).to_be_visible(timeout=TASK_MS)
    expect(cell.get_by_role("button", name="Something is wrong?")).to_have_count(0)
    main_button(wizard, "Find the cause")  # what was mended is offered no other fix


def test_the_notebook_that_asked_gets_the_kernel_that_was_made(open_notebook, jupyter_server) -> None:
    """What the press on “Use it in this notebook” sends reaches JupyterLab, and only from the page at its side."""
    page = open_cells(open_notebook, jupyter_server.root_dir, "python3", "1 / 0")
    cell = run_cell(page, 0)
    answer_of(page, cell)
    wizard = page.locator(".ptsa-side .ptsa-wizard")
    expect(wizard.get_by_role("heading", name="The code itself fails, in line 1")).to_be_visible(timeout=TASK_MS)
    asked = """(node) => node.dispatchEvent(
        new CustomEvent("ptsa-use-kernel", { detail: { kernel: "broken" }, bubbles: true, cancelable: true }))"""
    assert page.locator("body").evaluate(asked)  # nobody takes it
    assert not wizard.locator(".ptsa-foot").evaluate(asked)
    page.wait_for_function("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.name === 'broken'")


def test_a_traceback_that_nobody_knows_gets_the_next_step(open_notebook, jupyter_server) -> None:
    """By the command, and by the magic in a kernel that has the assistant: what to do with it is said."""
    load = "%load_ext torch_setup_assistant"
    page = open_cells(open_notebook, jupyter_server.root_dir, "python3", ODD, load, "%torch_doctor", "%torch_doctor zh")
    run_cell(page, 0).get_by_role("button", name="Something is wrong?").wait_for()
    page.evaluate("window.jupyterapp.commands.execute('torch-setup-assistant:ask')")
    wizard = page.locator(".ptsa-side .ptsa-wizard")
    expect(wizard.get_by_text("No known problem matches this text.")).to_be_visible(timeout=TASK_MS)
    expect(wizard.get_by_text("The program's authors can help")).to_be_visible()
    expect(wizard.get_by_text("in the assistant's own environment")).to_have_count(int(is_own_environment(sys.prefix)))
    found = []
    for theme in THEMES:
        wear(page, theme)
        found += [
            f"{theme}: {line}" for place in (".ptsa-side", ".ptsa-ask") for line in violations(page, place, STRICT)
        ]
    wear(page, THEMES[0])  # JupyterLab remembers it
    assert found == []
    run_cell(page, 1)
    own = run_cell(page, 2).locator(".ptsa-wizard")
    expect(own.get_by_text("No known problem matches this text.")).to_be_visible(timeout=TASK_MS)
    expect(own.get_by_label("Paste an error message")).to_have_value(re.compile("something odd that nobody knows"))
    expect(run_cell(page, 3).get_by_text("这段文字与任何已知问题都不匹配")).to_be_visible(timeout=TASK_MS)


def test_one_kernel_answers_every_question(open_notebook, jupyter_server) -> None:
    """Of another cell, after the page was loaded again, and from the menu of a right click on what a cell printed."""
    odd, other = re.compile("something odd"), re.compile("another oddity")
    more = "print('another oddity')\nraise ValueError"
    page = open_cells(open_notebook, jupyter_server.root_dir, "broken", ODD, more)
    expect(answer_of(page, run_cell(page, 0))).to_have_value(odd, timeout=TASK_MS)
    expect(answer_of(page, run_cell(page, 1))).to_have_value(other, timeout=TASK_MS)
    page.reload()
    page.wait_for_function(KERNEL_IS_READY, timeout=TASK_MS)
    expect(answer_of(page, run_cell(page, 0))).to_have_value(odd, timeout=TASK_MS)
    own = [one for one in jupyter_server.ask("sessions") if one["path"] == "torch-setup-assistant"]
    assert [one["kernel"]["name"] for one in own] == ["python3"]
    run_cell(page, 1).locator(".jp-RenderedText").first.click(button="right")
    page.get_by_role("menuitem", name="Something is wrong?").click()
    expect(page.locator(".ptsa-side").get_by_label("Paste an error message")).to_have_value(other, timeout=TASK_MS)


def test_where_no_kernel_has_the_assistant_the_way_is_said(open_notebook, jupyter_server, page: Page) -> None:
    """A dialog names the command, nothing is left at the side, and no kernel goes on running for it."""

    def only_broken(route: Route) -> None:
        known = route.fetch().json()["kernelspecs"]
        route.fulfill(json={"default": "broken", "kernelspecs": {"broken": known["broken"]}})

    page.route("**/api/kernelspecs*", only_broken)
    page = open_cells(open_notebook, jupyter_server.root_dir, "broken", ODD)
    run_cell(page, 0).get_by_role("button", name="Something is wrong?").click()
    expect(page.get_by_role("dialog")).to_contain_text("assistant diagnose FILE", timeout=TASK_MS)
    expect(page.locator(".ptsa-side")).to_have_count(0)
    assert [one["path"] for one in jupyter_server.ask("sessions")] == ["broken.ipynb"]
