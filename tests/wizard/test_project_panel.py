"""What the wizard shows of a project, and where it has no field for what was left out."""

from __future__ import annotations

from html import unescape

from assistant.i18n import _
from assistant.model.plan import ProjectSummary
from assistant.wizard.panels.choice import draw_project


def test_what_was_left_out_is_told_with_the_terminals_command() -> None:
    """The wizard has no field for these options, so it names the command that has."""
    left = _("The index {url} is not known.", url="https://h.example/s", option="--trust-index https://h.example/s")
    guess = _("Left out, though the code seems to import them: {packages}.", packages="cv2", option="--pin")
    project = ProjectSummary(text="1 file", lines=(guess, left, left))
    drawn = unescape(str(draw_project(project, "my code")))
    assert "`assistant setup -r 'my code'`" in drawn
    assert "with --pin, --trust-index https://h.example/s." in drawn
    assert "in the terminal" not in str(draw_project(ProjectSummary(text="1 file"), "x"))
