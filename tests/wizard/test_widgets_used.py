"""What the wizard is built of: no control that the keyboard cannot reach or a screen reader cannot name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from tables import each

from assistant.markup import joined, tag
from assistant.model.finding import Remedy, Severity
from assistant.wizard import html
from assistant.wizard.shared_widgets import Chips, Choices, Drawing, EnvironmentRows, Fold, Foot, Head, LogBox

WIZARD = Path(__file__).parents[2] / "assistant" / "wizard"
# Headers without a role, groups without a name, a choice that only a colour tells, progress without a value,
# and an output area that prints of other threads fall into.
UNFIT = re.compile(r"widgets\.(Accordion|RadioButtons|ToggleButtons?|IntProgress|FloatProgress|Output)\b")
WORDS = {Severity.OK: "Good", Severity.INFO: "Note", Severity.WARNING: "Warning", Severity.ERROR: "Problem"}


def test_no_control_that_some_cannot_use() -> None:
    """Accordion, RadioButtons, ToggleButtons, Progress and Output of ipywidgets appear nowhere."""
    text = {str(path.relative_to(WIZARD)): path.read_text(encoding="utf-8") for path in WIZARD.rglob("*.py")}
    assert {name: UNFIT.findall(source) for name, source in text.items() if UNFIT.search(source)} == {}


@each("severity", Severity)
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


RAW = {"wizard/html.py:NOTHING"}  # what is not escaped


def test_markup_is_written_and_escaped_in_one_place() -> None:
    """No module of the wizard writes a tag itself or calls a text markup: `markup.tag` does, and it escapes."""
    calls, texts = set(), set()
    for path in WIZARD.rglob("*.py"):
        place = path.relative_to(WIZARD.parent).as_posix()
        for top in ast.parse(path.read_text(encoding="utf-8")).body:
            name = getattr(top, "name", "") or ast.unparse(getattr(top, "targets", [top])[0])
            for node in ast.walk(top):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "Markup":
                    calls.add(f"{place}:{name}")
                if isinstance(node, ast.Constant) and re.search(r"<[a-z/!]", str(node.value)):
                    texts.add(f"{place}:{name}")
    assert calls == RAW
    assert texts <= RAW


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


def test_what_widgets_share_is_written_once() -> None:
    """No function stands in two scripts; a widget's module has each that it calls, and each once."""
    functions = re.compile(r"^function .*?^}\n", re.MULTILINE | re.DOTALL)
    scripts = [path.read_text(encoding="utf-8") for path in (WIZARD / "static").glob("*.js")]
    written = Counter(found for script in scripts for found in functions.findall(script))
    assert [text.splitlines()[0] for text, count in written.items() if count > 1] == []
    for widget in (Chips, Choices, EnvironmentRows, Fold, Foot, Head, LogBox):
        text = str(widget._esm)
        declared = Counter(re.findall(r"^function (\w+)", text, re.MULTILINE))
        assert set(declared.values()) == {1}, widget
        assert {name for name in ("element", "hand_on") if f"{name}(" in text} <= set(declared), widget


def test_ways_out_name_the_command_as_this_user_types_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a checkout a command to copy begins with `python3 start.py`; prose about the assistant stays as it is."""
    way = Remedy(text="Let the assistant plan it: `assistant plan`.", commands=("assistant doctor",))
    assert ">assistant doctor<" in html.remedies([way])
    monkeypatch.setenv("SETUP_ASSISTANT_STARTED_AS", "python3 start.py")
    told = html.remedies([way])
    assert "Let the assistant plan it: `python3 start.py plan`." in told
    assert ">python3 start.py doctor<" in told
