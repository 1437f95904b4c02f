"""Find a Chromium or Chrome for the browser tests, else fetch one; print its path, or fail with one sentence.

Looks for an installed one, then asks Playwright to download one, then the system's package manager (as root or
with a password-free sudo). Run by `start.py test` and by the tests themselves.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for those that run this file alone
from system_packages import install, run

DOWNLOAD_LIMIT_SECONDS = 300.0
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
    "microsoft-edge-stable",
)
MAC_NAMES = ("Google Chrome", "Chromium", "Microsoft Edge")
WINDOWS_FILES = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")


def installed() -> Iterator[Path]:
    """Name the browsers that are installed in the usual places and start."""
    places = [Path(found) for name in NAMES if (found := shutil.which(name))]
    places += [Path(f"/Applications/{name}.app/Contents/MacOS/{name}") for name in MAC_NAMES]
    roots = [os.environ.get(name, "") for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
    places += [Path(root) / file for root in roots if root for file in WINDOWS_FILES]
    yield from filter(starts, places)
    yield from filter(starts, playwrights())


def playwrights() -> list[Path]:
    """Name the place of Playwright's own Chromium, there or not."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - half a second that only this needs

    with sync_playwright() as playwright:
        return [Path(playwright.chromium.executable_path)]


def starts(browser: Path) -> bool:
    """Tell whether a browser is there and its libraries, too; a snap's stand-in is there and does not start."""
    if sys.platform == "win32":
        return browser.is_file()  # `--version` would open a window
    return browser.is_file() and run([str(browser), "--version"], 60)


def download() -> None:
    """Ask Playwright for its Chromium."""
    run([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_LIMIT_SECONDS)


def obtain() -> Path | None:
    """Find a browser, fetching one where none is installed."""
    steps: list[tuple[str, Callable[[], None]]] = [
        ("No Chrome or Chromium is installed; downloading one with Playwright.", download),
        ("Playwright could not download it; asking the system's package manager.", lambda: install("chromium")),
    ]
    found = next(installed(), None)
    for sentence, step in steps:
        if found is None:
            print(sentence, file=sys.stderr, flush=True)
            step()
            found = next(installed(), None)
    return found


if __name__ == "__main__":
    browser = obtain()
    if browser is None:
        sys.exit(
            "The browser tests need Chrome or Chromium, and none could be had: install one "
            "(Debian: apt install chromium) and run the tests again."
        )
    print(browser)
