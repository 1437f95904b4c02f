"""What the wizard is built of: no control that the keyboard cannot reach or a screen reader cannot name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tables import each

from assistant.model.finding import Remedy, Severity
from assistant.model.visible import joined, tag
from assistant.wizard import html
from assistant.wizard.shared_widgets import Drawing

WIZARD = Path(__file__).parents[2] / "assistant" / "wizard"
WORDS = {Severity.OK: "Good", Severity.INFO: "Note", Severity.WARNING: "Warning", Severity.ERROR: "Problem"}


@each("severity", Severity)
def test_severity_is_a_word_a_sign_and_a_border(severity: Severity) -> None:
    """Each severity is told three ways, and colour is only a fourth."""
    note = html.note(severity, "It is so.")
    assert WORDS[severity] in note
    assert f"ptsa-icon-{severity.value}" in note
    assert f"ptsa-note-{severity.value}" in note
    assert f".ptsa-note-{severity.value} {{ border-left-color" in (WIZARD / "static" / "wizard.css").read_text()


def test_a_widget_refuses_text_that_was_not_escaped() -> None:
    """Whoever forgets to escape hears of it at once, whatever the text."""
    drawing = Drawing()
    with pytest.raises(TypeError):
        drawing.value = "harmless"
    drawing.value = html.paragraph("<b>")
    assert drawing.value == "<p>&lt;b&gt;</p>"
    drawing.close()


def test_what_is_put_between_markup_is_escaped() -> None:
    """Content, attributes, even markup in an attribute, and what is added; markup itself only once."""
    inner = tag("b", "<i>")
    assert tag("p", inner, "<", title=inner) == (
        '<p title="&lt;b&gt;&amp;lt;i&amp;gt;&lt;/b&gt;"><b>&lt;i&gt;</b>&lt;</p>'
    )
    assert inner + "<" == "<b>&lt;i&gt;</b>&lt;"
    assert joined(["<", inner]) == "&lt;<b>&lt;i&gt;</b>"


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
