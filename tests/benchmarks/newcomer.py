"""Time a newcomer's way with the README's commands alone: clone, wizard, verified CPU environment, first lab solved.

All of it happens in a home of its own with empty caches; a browser clicks what a person clicks. The checkout is a clone
of this one's last commit. Where packages come from is this machine's pip configuration, as for every newcomer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

TESTS = Path(__file__).parents[1]
LONG_MS = 600_000
LEFT_OUT = ("XDG_", "UV_", "JUPYTER", "VIRTUAL_ENV", "PYTHON", "PIP_CACHE")  # what would lead back to the real home


class Watch:
    """Prints the seconds of each stage."""

    def __init__(self) -> None:
        self.begun = self.since = time.perf_counter()

    def stage(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        print(f"{now - self.since:7.1f} s  {name}", flush=True)
        self.since = now


def environment(home: Path) -> dict[str, str]:
    """Give the variables of somebody who has just got an account; the browser only notes what it should open."""
    (home / "browser").write_text(f'#!/bin/sh\necho "$1" > {home}/address\n')
    (home / "browser").chmod(0o755)
    (home / ".jupyter").mkdir()  # lets a page be asked whether its kernel is ready, and changes nothing else
    (home / ".jupyter" / "jupyter_lab_config.json").write_text('{"LabApp": {"expose_app_in_browser": true}}')
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    return {**kept, "HOME": str(home), "LANGUAGE": "en", "BROWSER": str(home / "browser"), "TMPDIR": str(home)}


@contextmanager
def started(checkout: Path, home: Path) -> Iterator[str]:
    """Type `python3 start.py`; give the address that it has the browser open."""
    address = home / "address"
    with (home / "start.log").open("w") as log:
        child = subprocess.Popen(
            ["python3", "start.py"], cwd=checkout, env=environment(home), stderr=log, start_new_session=True
        )
    try:
        while not (address.exists() and address.read_text().strip()):
            if child.poll() is not None:
                sys.exit((home / "start.log").read_text()[-3000:])
            time.sleep(0.1)
        yield address.read_text().strip()
    finally:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait(60)


def set_up(page: Page, watch: Watch) -> None:
    """Press what the wizard offers, to the files of a verified environment."""
    from guided import main_button, run_first_cell  # noqa: PLC0415 - found once the browser's helpers are loaded

    wizard = run_first_cell(page)
    main_button(wizard, "Install")
    watch.stage("the wizard is there: looked at the machine, planned, packages worked out")
    main_button(wizard, "Install").click()
    main_button(wizard, "Open a notebook with it")
    watch.stage("installed and verified, cold caches")
    wizard.get_by_role("button", name="Save the configuration").click()
    main_button(wizard, "Write the files").click()
    wizard.get_by_role("link", name="Download configuration.zip").wait_for(timeout=LONG_MS)
    watch.stage("exported")


def play(page: Page, watch: Watch, ready: str, home: Path) -> None:
    """Open the labs in JupyterLab's list of files, start the first one, mend it, have it checked."""
    page.get_by_role("tab", name="File Browser").click()
    page.locator(".jp-DirListing-item", has_text="labs.ipynb").dblclick()
    notebook = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    notebook.get_by_role("heading", name="Labs: break it").first.wait_for(timeout=LONG_MS)
    page.wait_for_function(ready, timeout=LONG_MS)
    notebook.locator(".jp-CodeCell .cm-content").click()
    page.keyboard.press("Shift+Enter")
    notebook.get_by_role("button", name="Start").click(timeout=LONG_MS)
    notebook.get_by_text("Its folder is").wait_for(timeout=LONG_MS)
    watch.stage("first lab broken")
    next(home.rglob("labs-work/directml-on-linux/launch.json")).write_text('{"arguments": []}')
    notebook.get_by_role("button", name="Check it").click()
    notebook.get_by_text("Fixed, 9 points.").wait_for(timeout=LONG_MS)
    watch.stage("first lab solved")


def main() -> None:
    """Print the seconds of each stage and of all."""
    sys.path.insert(0, str(TESTS))  # where the helpers of all tests lie
    from served import BROWSER_ARGUMENTS, KERNEL_IS_READY  # noqa: PLC0415 - found only now

    obtain = [sys.executable, str(TESTS / "browser" / "obtain.py")]
    browser_path = subprocess.run(obtain, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="newcomer-", ignore_cleanup_errors=True) as name:
        home, checkout, watch = Path(name), Path(name, "checkout"), Watch()
        subprocess.run(["git", "clone", "-q", str(TESTS.parent), str(checkout)], check=True)
        watch.stage("cloned")
        with started(checkout, home) as address, sync_playwright() as playwright:
            watch.stage("python3 start.py has made its environment and opens the browser")
            browser = playwright.chromium.launch(executable_path=browser_path, args=BROWSER_ARGUMENTS)
            page = browser.new_page(viewport={"width": 1280, "height": 1000}, locale="en-US")
            page.goto(address)
            page.locator(".jp-Notebook").wait_for(timeout=LONG_MS)
            page.wait_for_function(KERNEL_IS_READY, timeout=LONG_MS)
            watch.stage("JupyterLab shows the notebook, its kernel is ready")
            set_up(page, watch)
            play(page, watch, KERNEL_IS_READY, home)
            browser.close()
        print(f"{time.perf_counter() - watch.begun:7.1f} s  in all")


if __name__ == "__main__":
    main()
