"""Looking at a part of JupyterLab with axe-core, in each of its themes."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
STRICT = {
    "runOnly": [*WCAG["runOnly"], "best-practice"],
    "rules": {"target-size": {"enabled": True}},  # off unless asked for
}

SEEN = {"color-contrast": 9, "target-size": 4}  # sentences and controls that every step has at least
UNDECIDED = (
    "contains only non-text characters",  # the stepper's marks, which a word stands beside
    "due to a background image",  # the arrow in a drop-down list of ipywidgets
)


def wear(page: Page, theme: str) -> None:
    """Put a theme on JupyterLab and wait until it is there; JupyterLab remembers it."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
    page.locator("#jupyterlab-splash").wait_for(state="detached")  # a curtain while the style sheet loads


def violations(page: Page, place: str, rules: dict[str, object] = WCAG) -> list[str]:
    """List what axe has against a part of the page."""
    found = Axe().run(page, place, rules).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}: {node['failureSummary']}" for rule in found for node in rule["nodes"]]


def complaints(wizard: Locator) -> list[str]:
    """List what axe has against the wizard, and what it could not decide."""
    answer = Axe().run(wizard.page, ".ptsa-wizard", STRICT).response
    lines = [
        f"{rule['id']}: {node['html'][:160]}: {node['failureSummary']}"
        for kind in ("violations", "incomplete")
        for rule in answer[kind]
        for node in rule["nodes"]
        if not any(known in node["failureSummary"] for known in UNDECIDED)
    ]
    judged = {rule["id"]: len(rule["nodes"]) for rule in answer["passes"]}
    blind = [f"axe saw too little of {rule}" for rule, least in SEEN.items() if judged.get(rule, 0) < least]
    return lines + blind
