"""The pages, one view for each."""

from __future__ import annotations

from assistant.session.state import Page
from assistant.wizard.panels.base import PageView, Part, busy_footer
from assistant.wizard.panels.diagnose import WrongPage
from assistant.wizard.panels.environments import EnvironmentsPage
from assistant.wizard.panels.export import ExportPage, find_file
from assistant.wizard.panels.setup import SetupPage

PAGES: dict[Page, type[PageView]] = {
    Page.SETUP: SetupPage,
    Page.EXPORT: ExportPage,
    Page.ENVIRONMENTS: EnvironmentsPage,
    Page.WRONG: WrongPage,
}
