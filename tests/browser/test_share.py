"""The page that `diagnose --share` writes, opened in a browser without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import forked
import pytest
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.full]

LOG = """Traceback (most recent call last):
  File "/home/jane/ComfyUI/main.py", line 4, in <module>
    import torch
RuntimeError: CUDA error: no kernel image is available for execution on the device
token=hf_abcdefghijklmnop <script>alert(1)</script>
"""


@pytest.mark.parametrize(("language", "title"), [("en", "no code for the GPU"), ("zh_CN", "计算能力")])
def test_a_shared_page_needs_no_network_and_no_script(
    browser: Browser, tmp_path: Path, language: str, title: str
) -> None:
    """It shows cause, line, commands and machine; it asks for nothing else, runs nothing, and keeps nothing private."""
    (tmp_path / "e.log").write_text(LOG)
    line = ("--lang", language, "diagnose", "e.log", "--replay", "windows11-rtx3060", "--share", "answer.html")
    done = forked.run(*line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    context = browser.new_context()
    context.set_offline(True)
    page, asked, told = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    address = (tmp_path / "answer.html").as_uri()
    page.goto(address)
    assert title in page.title()
    assert page.locator("h1").inner_text() == page.title()
    assert "no kernel image is available" in page.locator("mark").inner_text()
    assert "assistant setup --backend cuda" in page.locator("ol").inner_text()
    assert "RTX 3060" in page.locator("table").inner_text()
    page.locator("summary").click()
    assert "### Actual Behavior" in page.locator("details pre").inner_text()
    assert page.locator("script").count() == 0
    text = page.content()
    assert "jane" not in text
    assert "hf_abcdefghijklmnop" not in text
    assert asked == [address]
    assert told == []
    wide = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 320, "height": 700})
    assert wide
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert sys.getsizeof(text) < 100_000
