"""Walking through the guided setup in a browser, as the browser tests share it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from assistant.host.live import LiveHost
from assistant.install import Sources

TASK_MS = 60_000
expect.set_options(timeout=20_000)  # a machine under load is slow, not wrong; what holds at once is not waited for
ROOT = Path(__file__).parents[1]


ERROR = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory"
LINE = "2026-11-22 10:00:00 step {number} loss 0.123 on the way, all is well, going on with the next batch of images\n"
# Notes the page's tasks of more than 50 ms, without the time for which the browser itself stands still while it hands
# over what was pasted: no page can begin before that.
WATCH = """() => {
    const own = (window.own ??= DataTransfer.prototype.getData);
    const handed = [];
    window.longest = 0;
    DataTransfer.prototype.getData = function (kind) {
        const begun = performance.now();
        const text = own.call(this, kind);
        handed.push([begun, performance.now() - begun]);
        return text;
    };
    const note = ({ startTime, duration }) => {
        for (const [begun, took] of handed) if (startTime <= begun && begun < startTime + duration) duration -= took;
        window.longest = Math.max(window.longest, duration);
    };
    window.watcher = new PerformanceObserver((list) => list.getEntries().forEach(note));
    window.watcher.observe({ entryTypes: ["longtask"] });
}"""


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


def write_long_log(file: Path) -> Path:
    """Write a log of 25 MB with one error near its end."""
    lines = (LINE.format(number=number) for number in range(25 * 10**6 // len(LINE.format(number=0)) + 1))
    file.write_text("".join(lines) + f"{ERROR}\n" + LINE.format(number=-1) * 50, encoding="utf-8")
    return file


def copy_file(page: Page, file: Path) -> None:
    """Put a file's text on the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.route("**/copied.log", lambda route: route.fulfill(path=file, content_type="text/plain"))
    page.evaluate("async () => navigator.clipboard.writeText(await (await fetch('/copied.log')).text())")


def watch(page: Page) -> None:
    """Begin to note for how long the page answers nothing."""
    page.evaluate(WATCH)


def watched(page: Page) -> float:
    """Return the longest time in ms since `watch` for which the page answered nothing, pasting by the browser aside."""
    return float(page.evaluate("() => (window.watcher.disconnect(), window.longest)"))


def run_first_cell(page: Page) -> Locator:
    """Give the wizard of a notebook: the guided one runs by itself, of any other the first cell is run."""
    wizard = page.locator(".ptsa-wizard")
    if not page.locator(".ptsa-page").count():
        page.locator(".jp-CodeCell").first.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
    wizard.wait_for(timeout=60_000)
    return wizard


def run_code(page: Page) -> float:
    """Have the notebook's kernel run something, and return after how many seconds the page had its answer."""
    code = """async () => {
        const begun = performance.now();
        const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
        await kernel.requestExecute({ code: "1", store_history: false }).done;
        return (performance.now() - begun) / 1000;
    }"""
    return float(page.evaluate(code))


def main_button(wizard: Locator, name: str) -> Locator:
    """Find the main button once it bears a name and can be pressed."""
    button = wizard.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled(timeout=TASK_MS)
    return button


def unfold(wizard: Locator, name: str) -> None:
    """Open a fold of the page."""
    fold = wizard.get_by_role("button", name=name)
    if fold.get_attribute("aria-expanded") == "false":
        fold.click()
    expect(fold).to_have_attribute("aria-expanded", "true")


def aim_at(wizard: Locator, target: Path) -> None:
    """Have the environment in a folder of the test's own, and wait until its packages are resolved."""
    main_button(wizard, "Install")
    unfold(wizard, "Change something")
    folder = wizard.get_by_label("Folder")
    folder.fill(str(target))
    folder.press("Enter")
    unfold(wizard, "The exact commands")
    expect(wizard.get_by_role("row").filter(has_text="Folder")).to_contain_text(str(target), timeout=TASK_MS)
    expect(wizard.locator(".ptsa-main")).to_be_enabled(timeout=TASK_MS)


def choose_machine(wizard: Locator, machine: str) -> None:
    """Look at a recorded machine, and wait for its plan."""
    unfold(wizard, "Change something")
    wizard.get_by_label("Machine", exact=True).select_option(machine)
    expect(wizard.get_by_text(f"Simulation of {machine}")).to_be_visible()
    expect(wizard.get_by_text("so nothing can be installed.").last).to_be_visible()


def make_bare_kernel(folder: Path, data: Path, name: str, *packages: str | Path) -> Path:
    """Make an environment with packages, ipykernel among them; make it known as a kernel; give its Python."""
    python = folder / "bin" / "python"
    environment = {**os.environ, **Sources(LiveHost()).environment}
    for command in (
        ["venv", "--quiet", "--python", sys.executable, folder],
        ["pip", "install", "--quiet", "--python", python, *packages],
    ):
        subprocess.run([sys.executable, "-m", "uv", *map(str, command)], env=environment, check=True)
    spec = data / "kernels" / name / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))
    return python


def notebook_for(kernel: str) -> dict[str, object]:
    """Give the guided notebook as one that asks for a kernel."""
    notebook = json.loads((ROOT / "notebooks" / "setup.ipynb").read_text(encoding="utf-8"))
    notebook["metadata"]["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    return notebook


def stop(child: subprocess.Popen[bytes]) -> None:
    """End a server and its kernels; one that does not go, though the machine was busy, is killed and fails the test."""
    child.terminate()
    try:
        child.wait(150)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        raise


def printed_address(child: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the address, token included, that a server prints into its log."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and child.poll() is None:
        if found := re.search(r"http://127\S+token=\w+", log.read_text(errors="replace")):
            return found[0]
        time.sleep(0.2)
    pytest.fail("no address was printed:\n" + log.read_text(errors="replace"), pytrace=False)


def jupyter_environment(state: Path) -> dict[str, str]:
    """Name the variables that keep all of Jupyter's state, and the assistant's, in a folder."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "XDG_DATA_HOME": "share",
        "XDG_STATE_HOME": "state",
    }
    own = {name: str(state / folder) for name, folder in folders.items()}
    return {**os.environ, **own, "JUPYTER_PREFER_ENV_PATH": "1", "LANGUAGE": "en"}


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
