"""The pages, one view for each, and what the saved page draws as they do."""

from __future__ import annotations

from assistant.session.state import Page
from assistant.wizard.panels.answer import draw_causes
from assistant.wizard.panels.base import PageView, busy_footer, failure, log_view
from assistant.wizard.panels.choice import draw_machine, draw_why, plan_headline
from assistant.wizard.panels.diagnose import WrongPage
from assistant.wizard.panels.environments import EnvironmentsPage
from assistant.wizard.panels.export import PACK, PAGE, ExportPage, read_files, zip_files
from assistant.wizard.panels.setup import SetupPage, draw_checks, draw_commands, draw_ready

PAGES: dict[Page, type[PageView]] = {
    Page.SETUP: SetupPage,
    Page.EXPORT: ExportPage,
    Page.ENVIRONMENTS: EnvironmentsPage,
    Page.WRONG: WrongPage,
}
