"""Looking at a part of JupyterLab with axe-core, in each of its themes."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
STRICT = {
    "runOnly": [*WCAG["runOnly"], "best-practice"],
    "rules": {"target-size": {"enabled": True}},  # off unless asked for
}


def wear(page: Page, theme: str) -> None:
    """Put a theme on JupyterLab and wait until it is there; JupyterLab remembers it."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
    page.locator("#jupyterlab-splash").wait_for(state="detached")  # a curtain while the style sheet loads


def violations(page: Page, place: str, rules: dict[str, object] = WCAG) -> list[str]:
    """List what axe has against a part of the page."""
    found = Axe().run(page, place, rules).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}: {node['failureSummary']}" for rule in found for node in rule["nodes"]]
