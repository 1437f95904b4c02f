"""One view per page: made once for a language, then only told what changed."""

from __future__ import annotations

from assistant.session.state import Page
from assistant.wizard.panels.base import PageView
from assistant.wizard.panels.diagnose import WrongPage
from assistant.wizard.panels.environments import EnvironmentsPage
from assistant.wizard.panels.export import ExportPage
from assistant.wizard.panels.setup import SetupPage

__all__ = ["PAGES", "PageView"]

PAGES: dict[Page, type[PageView]] = {
    Page.SETUP: SetupPage,
    Page.EXPORT: ExportPage,
    Page.ENVIRONMENTS: EnvironmentsPage,
    Page.WRONG: WrongPage,
}
