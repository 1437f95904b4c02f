"""The pages, one view for each."""

from __future__ import annotations

from collections.abc import Callable

from assistant.model.visible import Markup
from assistant.session.state import Page, State
from assistant.wizard.panels.base import PageView, Part, busy_footer
from assistant.wizard.panels.choice import FACTS, draw_machine
from assistant.wizard.panels.diagnose import WrongPage
from assistant.wizard.panels.environments import EnvironmentsPage
from assistant.wizard.panels.export import ExportPage, find_file
from assistant.wizard.panels.install import PACKAGE_LIST, draw_packages
from assistant.wizard.panels.setup import SetupPage

LATER: dict[str, Callable[[State], Markup]] = {FACTS: draw_machine, PACKAGE_LIST: draw_packages}  # see `html.later`
PAGES: dict[Page, type[PageView]] = {
    Page.SETUP: SetupPage,
    Page.EXPORT: ExportPage,
    Page.ENVIRONMENTS: EnvironmentsPage,
    Page.WRONG: WrongPage,
}
