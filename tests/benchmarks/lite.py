"""Time the site that runs in the browser alone: first paint, and how soon the setup, a lab and a lesson's line answer.

`python3 start.py bench lite [SITE]` builds the site, or takes one that is there. Each round is a first visit, with
nothing kept by the browser; whatever is not of the site is refused and fails the benchmark.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROUNDS = 5
LAB = "19-render-group.ipynb"
LIMITS = {"first paint, start page": 1.0, "a lab is started": 30.0}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def painted(page: Page, address: str) -> float:
    """Open a page; answer the seconds from the request to its first text or picture, by the browser's own clock."""
    page.goto(address)
    page.wait_for_function(PAINT)
    return float(page.evaluate(PAINT)) / 1000


def lab_started(page: Page, address: str) -> float:
    """Open a lab's notebook and run its first cell; answer the seconds until its failing program has printed."""
    from lite_site import run  # noqa: PLC0415 - found once the tests' own helpers are

    begun = time.perf_counter()
    page.goto(f"{address}/lab/index.html?path={LAB}")
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    run(cell)
    cell.get_by_text("Permission denied").first.wait_for()
    return time.perf_counter() - begun


def setup_shown(page: Page, address: str) -> float:
    """Open the guided notebook, which runs by itself; answer the seconds until its plan is there."""
    begun = time.perf_counter()
    page.goto(f"{address}/lab/index.html?path=setup.ipynb")
    page.locator(".ptsa-wizard").get_by_role("button", name="Install", exact=True).wait_for()
    return time.perf_counter() - begun


def line_answered(page: Page, address: str) -> float:
    """Open a lesson and run its first line; answer the seconds until its answer is there."""
    begun = time.perf_counter()
    page.goto(f"{address}/docs/lessons/drivers.html")
    fold = page.locator(".try").first
    fold.get_by_text("Try it here").click()
    fold.get_by_role("button", name="Run").click()
    fold.locator("pre").first.wait_for()
    return time.perf_counter() - begun


MEASURES: dict[str, Callable[[Page, str], float]] = {
    "first paint, start page": painted,
    "first paint, a lab in JupyterLab": lambda page, address: painted(page, f"{address}/lab/index.html?path={LAB}"),
    "a lab is started": lab_started,
    "the guided setup shows its plan": setup_shown,
    "a line of a lesson is answered": line_answered,
}


def measured(browser: Browser, address: str, measure: Callable[[Page, str], float]) -> float:
    """Take one measure as a first visit."""
    from lite_site import visit  # noqa: PLC0415 - found once the tests' own helpers are

    with visit(browser, address) as page:
        return measure(page, address)


def main() -> None:
    """Print the medians and ranges; fail when a limit is missed."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from lite_site import build, served  # noqa: PLC0415 - found once the tests' own helpers are
    from served import BROWSER_ARGUMENTS, ROOT  # noqa: PLC0415 - likewise

    found = [sys.executable, ROOT / "tests" / "browser" / "obtain.py"]
    path = subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()
    with ExitStack() as stack:
        site = Path(sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(tempfile.TemporaryDirectory()) + "/site")
        if len(sys.argv) == 1:
            done = build(site)
            if done.returncode:
                sys.exit(done.stderr)
            print(done.stdout.strip())
        address = stack.enter_context(served(site))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_ARGUMENTS)
        medians = {}
        for name, measure in MEASURES.items():
            seconds = sorted(measured(browser, address, measure) for _round in range(ROUNDS))
            medians[name] = statistics.median(seconds)
            span = f"{seconds[0]:.2f} to {seconds[-1]:.2f}"
            print(f"{name}: {medians[name]:.2f} s ({span})", flush=True)
        browser.close()
    missed = [name for name, limit in LIMITS.items() if medians[name] > limit]
    print(f"missed: {', '.join(missed)}" if missed else "all within their limits")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
