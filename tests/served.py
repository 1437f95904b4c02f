"""A JupyterLab that runs, and a real browser that opens it, as the tests of several folders share them."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).parents[1]
FAILURES = ROOT / "tests" / "browser" / "failures"
SERVER_LIMIT_SECONDS = 90.0
# Debian's Chromium as root in a container: no sandbox, and none of the services that call home.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Asked of JupyterLab itself: its indicator says "idle" before the kernel is connected, and a cell run then is lost.
KERNEL_IS_READY = """() => {
    const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
    return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""
FAILED = pytest.StashKey[bool]()


@dataclass(frozen=True)
class Server:
    """A running JupyterLab: its address, its token, and the folder whose notebooks it shows."""

    url: str
    token: str
    root_dir: Path
    state_dir: Path

    def document(self, name: str) -> str:
        """Give the address that shows one notebook alone; `/lab/tree` would bring back tabs of earlier tests."""
        return f"{self.url}/doc/tree/{name}?token={self.token}"

    def ask(self, path: str, method: str = "GET") -> object:
        """Ask the server's REST API; answer the decoded JSON, None for an empty answer."""
        headers = {"Authorization": f"token {self.token}"}
        answer = httpx.request(method, f"{self.url}/api/{path}", headers=headers, timeout=20, trust_env=False)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def end_sessions(self) -> None:
        """End every kernel; they would outlive the page."""
        for session in self.ask("sessions"):
            self.ask(f"sessions/{session['id']}", "DELETE")


@pytest.fixture(scope="session")
def browser_path() -> Path:
    """Find or fetch a browser; the tests fail, and are never skipped, where none can be had."""
    script = ROOT / "tests" / "browser" / "obtain.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def browser(browser_path: Path) -> Iterator[Browser]:
    """Start the browser without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser_path, args=BROWSER_ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> BrowserContext:
    """Give what all pages share: JupyterLab's files are fetched and compiled once."""
    # Each frame of a moving bar would be drawn by the processor, for as long as an installation takes.
    size = {"width": 1280, "height": 900}
    return browser.new_context(viewport=size, locale="en-US", reduced_motion="reduce")


@pytest.fixture
def page(
    context: BrowserContext,
    jupyter_server: Server,
    request: pytest.FixtureRequest,
    tmp_path: Path,  # noqa: ARG001 - it may hold a kernel's environment, so it goes after the kernels
) -> Iterator[Page]:
    """Give a fresh page; a failed test leaves a screenshot, errors in the console fail it, its kernels are ended."""
    errors: list[str] = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.extend({str(error)} - {NO_DEBUGGER}))
    opened.on("console", lambda message: errors.extend(_complaint(message)))
    yield opened
    if request.node.stash.get(FAILED, False):
        FAILURES.mkdir(exist_ok=True)
        name = re.sub(r"\W+", "-", request.node.name)
        opened.screenshot(path=FAILURES / f"{name}.png", full_page=True)
    for shown in context.pages:
        shown.close()
    jupyter_server.end_sessions()
    assert not errors, "The page complained in its console:\n" + "\n".join(errors)


@pytest.fixture
def open_notebook(page: Page, jupyter_server: Server) -> Callable[[str], Page]:
    """Give a function that shows a notebook of the server's folder and waits until its kernel is there."""

    def opened(name: str) -> Page:
        page.goto(jupyter_server.document(name))
        page.locator(".jp-Notebook").wait_for(timeout=60_000)
        page.wait_for_function(KERNEL_IS_READY, polling=200, timeout=60_000)  # not for each frame that is drawn
        return page

    return opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember that a test failed, for the screenshot."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


# A box of ipywidgets tells its children a moment after they came that they have a size, also those that have gone by
# then (`update_children` in packages/controls/src/widget_box.ts, 8.1): said in the console, and to nobody's harm.
GONE_ALREADY = "Cannot read properties of null (reading 'processLuminoMessage')"
# JupyterLab's debugger asks each kernel for its state, and says so of one that is killed before it answered
# (`restoreState` in packages/debugger/src/service.ts, 4.6).
KILLED_BEFORE = "Could not restore the debugger state: Canceled future for debug_request message"
# Where there is no session yet, or no longer, its requests throw this, and nothing catches it (the same file).
NO_DEBUGGER = "No active debugger session"


def _complaint(message: ConsoleMessage) -> list[str]:
    """Keep errors, but not JupyterLab's own: a resource that it lives without, a size told too late, a dead kernel."""
    known = message.text.startswith(("Failed to load resource", KILLED_BEFORE)) or GONE_ALREADY in message.text
    if message.type != "error" or known:
        return []
    return [f"{message.text} ({message.location['url']})"]


def free_port() -> int:
    """Find a port of this machine that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def server_options(server: Server, app: str = "LabApp") -> list[str]:
    """Name the options of a server that a test can find and enter."""
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": server.url.rpartition(":")[2],
        "ServerApp.port_retries": "0",
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        "IdentityProvider.token": server.token,
        f"{app}.expose_app_in_browser": "True",
    }
    return [f"--{name}={value}" for name, value in options.items()]


def wait_for(server: Server, child: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers, or fail with the end of its log."""
    deadline = time.monotonic() + SERVER_LIMIT_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        try:
            server.ask("status")
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab did not come up:\n{log.read_text(errors='replace')[-3000:]}", pytrace=False)
