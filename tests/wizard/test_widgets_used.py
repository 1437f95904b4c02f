"""What the wizard is built of: no control that the keyboard cannot reach or a screen reader cannot name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assistant.model.finding import Remedy, Severity
from assistant.wizard import html

WIZARD = Path(__file__).parents[2] / "assistant" / "wizard"
# Headers without a role, groups without a name, a choice that only a colour tells, progress without a value,
# and an output area that prints of other threads fall into.
UNFIT = re.compile(r"widgets\.(Accordion|RadioButtons|ToggleButtons?|IntProgress|FloatProgress|Output)\b")
WORDS = {Severity.OK: "Good", Severity.INFO: "Note", Severity.WARNING: "Warning", Severity.ERROR: "Problem"}


def test_no_control_that_some_cannot_use() -> None:
    """Accordion, RadioButtons, ToggleButtons, Progress and Output of ipywidgets appear nowhere."""
    text = {str(path.relative_to(WIZARD)): path.read_text(encoding="utf-8") for path in WIZARD.rglob("*.py")}
    assert {name: UNFIT.findall(source) for name, source in text.items() if UNFIT.search(source)} == {}


@pytest.mark.parametrize("severity", Severity)
def test_severity_is_a_word_a_sign_and_a_border(severity: Severity) -> None:
    """Each severity is told three ways, and colour is only a fourth."""
    note = html.note(severity, "It is so.")
    assert WORDS[severity] in note
    assert f"ptsa-icon-{severity.value}" in note
    assert f"ptsa-note-{severity.value}" in note
    assert f".ptsa-note-{severity.value} {{ border-left-color" in (WIZARD / "static" / "wizard.css").read_text()


def test_each_severity_has_its_own_sign() -> None:
    """No two severities share a sign, so that they differ without colour."""
    assert len({html.ICONS[severity.value] for severity in Severity}) == len(Severity)


def test_nothing_is_kept_in_the_browser() -> None:
    """The wizard's own scripts use no storage of the browser, which some forbid: all that lasts is on disk."""
    scripts = [*(WIZARD / "static").glob("*.js"), *(WIZARD.parents[1] / "labextension").rglob("*.js")]
    storage = re.compile(r"localStorage|sessionStorage|indexedDB|document\.cookie|caches\.")
    assert len(scripts) >= 2
    assert [script.name for script in scripts if storage.search(script.read_text(encoding="utf-8"))] == []


def test_ways_out_name_the_command_as_this_user_types_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a checkout a command to copy begins with `python3 start.py`; prose about the assistant stays as it is."""
    way = Remedy(text="Let the assistant plan it: `assistant plan`.", commands=("assistant doctor",))
    assert ">assistant doctor<" in html.remedies([way])
    monkeypatch.setenv("SETUP_ASSISTANT_STARTED_AS", "python3 start.py")
    told = html.remedies([way])
    assert "Let the assistant plan it: `python3 start.py plan`." in told
    assert ">python3 start.py doctor<" in told
