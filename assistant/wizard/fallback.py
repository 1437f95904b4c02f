"""What stands where the wizard cannot be drawn: Jupyter's server has its front end in an environment of its own.

The kernel cannot see that environment, so both texts are sent always, and the browser shows them only where they count.
"""

from __future__ import annotations

from assistant.i18n import say
from assistant.wizard import html

COMMAND = "python -m pip install ipywidgets anywidget"
# Comes into sight after some seconds, unless the stepper's style sheet, which hides it, has arrived by then.
LATE = """<style>
.ptsa-late { position: absolute; visibility: hidden; animation: ptsa-late 0s 6s forwards; }
@keyframes ptsa-late { to { position: static; visibility: visible; } }
</style>"""


def instead_of_wizard() -> str:
    """Say, in plain text, why there are no controls where the server knows no widgets at all, and what to do."""
    return "\n".join(
        (
            say("Here the guided setup appears, and this text only where it cannot be drawn."),
            say("Seen after the cell ran, it means that Jupyter's own environment lacks ipywidgets or anywidget."),
            say("Run there: {command}", command=COMMAND),
            say(
                "Then start Jupyter anew and run the cell again; or do it all in a terminal: {command}",
                command="python -m assistant setup",
            ),
        )
    )


def instead_of_steps() -> str:
    """Say, in HTML, what is missing where the server knows widgets but not the stepper's."""
    text = say("The steps cannot be drawn: Jupyter's own environment lacks anywidget, or has one that is too old.")
    then = say("Run this there, start Jupyter anew and open this page again:")
    return f'{LATE}<div class="ptsa-late">{html.esc(text)} {html.esc(then)} <code>{html.esc(COMMAND)}</code></div>'
