"""The site that runs in the browser alone: built by its documented command and served as plain files, and a visitor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

import pytest
from guided import ROOT
from playwright.sync_api import Browser, Locator, Page, Route

from assistant.host.live import LiveHost
from assistant.install import Sources

START_MS = 240_000  # Python itself has to start in the page, on a machine that may be busy


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps no log."""

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:
        """Send a file; a browser that leaves the page takes no more of it."""
        with suppress(ConnectionError):
            super().copyfile(source, outputfile)


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the documented command."""
    command = [sys.executable, "-m", "uv", "run", "docs/lite/build.py", folder]
    environment = {**os.environ, **Sources(LiveHost()).environment, "UV_NO_BUILD": "0"}  # the assistant itself is built
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder as plain files, and give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def visit(browser: Browser, address: str, **options: object) -> Iterator[Page]:
    """Give a page, with nothing kept of earlier ones, that reads the site; whatever else it asks for is an error."""
    strayed = []

    def guard(route: Route) -> None:
        asked = route.request
        if asked.url.startswith(("data:", "blob:")) or (asked.url.startswith(address) and asked.method == "GET"):
            route.continue_()
        else:
            strayed.append(f"{asked.method} {asked.url}")
            route.abort()

    with browser.new_context(**{"viewport": {"width": 1280, "height": 1000}, "locale": "en-US", **options}) as context:
        context.route("**/*", guard)
        page = context.new_page()
        page.set_default_timeout(START_MS)
        yield page
    assert strayed == []


def run(cell: Locator) -> None:
    """Run a cell as a visitor does: before Python has started, JupyterLab takes no notice of the key, so once more."""
    cell.locator(".cm-content").click()
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    for _half_second in range(START_MS // 500):
        cell.page.keyboard.press("Control+Enter")
        cell.page.wait_for_timeout(500)
        if prompt.inner_text() != before:
            return


@pytest.fixture(scope="session")
def site_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site and serve it."""
    site = tmp_path_factory.mktemp("lite") / "site"
    done = build(site)
    assert done.returncode == 0, done.stdout + done.stderr
    with served(site) as address:
        yield address


@pytest.fixture
def site_visitor(browser: Browser, site_address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Give a page that reads the site and does nothing else; a parameter holds options, such as its language."""
    with visit(browser, site_address, **getattr(request, "param", {})) as page:
        yield page
