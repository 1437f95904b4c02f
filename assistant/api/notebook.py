"""What a page of an add-on is made of: widgets that follow the state of the guided setup."""

from __future__ import annotations

from assistant.session.actions import Action, Begin, Choose, Supply
from assistant.session.session import Session
from assistant.session.state import Extra, Page, State, Task
from assistant.wizard import html
from assistant.wizard.panels.base import AddonPart
from assistant.wizard.shared_widgets import Drawing, make
