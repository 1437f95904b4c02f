"""The answer to a log as one page of HTML, to be sent to somebody: it runs no script and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from assistant import __version__
from assistant.diagnose import Log
from assistant.host.live import known_here
from assistant.i18n import Text, as_typed, say
from assistant.markup import Markup, joined, tag, web_page
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine
from assistant.model.shell import shell_of
from assistant.model.visible import visible
from assistant.privacy import redact
from assistant.session.causes import log_report
from assistant.session.diagnosis import places, unexplained
from assistant.session.state import Place
from assistant.views import machine_rows, remedy_blocks

CAUSES = 3  # chosen, as in the terminal
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
SHEET = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 1.5rem; overflow-wrap: anywhere; } main { max-width: 52rem; margin: auto; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2rem; }
pre { overflow-x: auto; padding: 0.7rem; border: 1px solid #8886; border-radius: 4px; font-size: 0.85rem; }
th { text-align: left; vertical-align: top; padding-right: 1.5rem; font-weight: 600; }
mark { background: #f5c8c8; color: #5c0000; } li { margin-bottom: 0.5rem; } footer { margin-top: 2rem; opacity: 0.8; }
"""


def share_page(log: Log, machine: Machine, causes: Iterable[tuple[Diagnosis, int | None]]) -> str:
    """Write what a log shows, its causes with what helps, the machine and the report, without private things."""
    found = tuple(islice(causes, CAUSES))
    known = known_here()
    shown: tuple[Diagnosis, ...] = redact(tuple(cause for cause, _line in found), known=known)
    where: tuple[Place | None, ...] = redact(places(log, (line for _cause, line in found)), known=known)
    here: Machine = redact(machine, known=known)
    title = as_typed(shown[0].title) if shown else say("No known problem matches this log.")
    parts = [
        *(_cause(*each, here, first=not number) for number, each in enumerate(zip(shown, where, strict=True))),
        _unknown(log, here) if not shown else "",
        tag("h2", say("The computer")),
        tag("table", *(tag("tr", tag("th", label, scope="row"), tag("td", value)) for label, value in _rows(here))),
        tag("h2", say("As Markdown")),
        tag("details", tag("summary", say("Show the report")), tag("pre", log_report(log, machine, shown))),
        tag(
            "footer", say("Written by torch-setup-assistant {version}; private data was removed.", version=__version__)
        ),
    ]
    return web_page(title, POLICY, SHEET, joined(parts))


def _rows(machine: Machine) -> list[tuple[Text, Text]]:
    looked = {"gpu"} if not machine.gpus else set()  # that none was found is not said where nobody looked
    return machine_rows(machine, hide=looked)


def _cause(cause: Diagnosis, place: Place | None, machine: Machine, *, first: bool) -> Markup:
    """Write one cause: where it shows, why it is so, what helps, who says so; the page is headed by the first."""
    sure = (
        say("Lines like these are typical of this cause.")
        if cause.sure
        else say("This is a likely cause, but lines like these can have other causes, too.")
    )
    return tag(
        "section",
        "" if first else tag("h2", cause.title),
        _place(place) if place else "",
        tag("p", cause.cause),
        tag("p", f"{sure} ({cause.confidence:.0%})"),
        tag("h3", say("What helps")),
        tag("ol", *(_remedy(remedy, machine) for remedy in cause.remedies)),
        tag("h3", say("Sources")),
        tag("ul", *(tag("li", tag("a", source, href=source, rel="noreferrer")) for source in cause.sources)),
    )


def _place(place: Place) -> Markup:
    width = len(str(place.lines[-1][0])) if place.lines else 1
    lines = (
        tag("mark" if number == place.line else "span", f"{number:>{width}}  {visible(text)}") + "\n"
        for number, text in place.lines
    )
    return tag("pre", *lines)


def _remedy(remedy: Remedy, machine: Machine) -> Markup:
    """Write a fix: its sentence, what to type, and how to see that it worked."""
    parts: list[Markup] = []
    for _kind, lead, lines in remedy_blocks(remedy, shell_of(machine.os)):
        parts += [tag("p", lead)] if lead else []
        parts.append(tag("pre", "\n".join(map(as_typed, lines))))
    return tag("li", as_typed(remedy.text), *parts)


def _unknown(log: Log, machine: Machine) -> Markup:
    """Write what can be said of a log whose cause is not known."""
    answer = redact(unexplained(log, machine), known=known_here())
    told = [finding.text for finding in (*answer.symptoms, *answer.findings)]
    asked = _remedy(answer.question, machine) if answer.question else ""
    return tag("ul", *(tag("li", text) for text in told), asked) if told or asked else Markup()
