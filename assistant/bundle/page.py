"""The page of a bundle: which machine gets what, how to start, and who gets nothing; in every language."""

from __future__ import annotations

from assistant.bundle.manifest import Bundle
from assistant.bundle.platforms import platform_of
from assistant.export import page
from assistant.i18n import Message, _, say
from assistant.markup import Markup, joined, tag
from assistant.views import plan_title

STARTS = {"windows": "start.bat", "linux": "sh start.sh", "macos": "sh start.sh"}


def bundle_page(bundle: Bundle) -> str:
    """Write the page as HTML."""
    return page(lambda: _body(bundle))


def _body(bundle: Bundle) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", plan_title(kind.plan)),
            tag("td", tag("a", kind.key, href=kind.lock)),
            tag("td", tag("code", STARTS[kind.machine.os or "linux"])),
        )
        for kind in bundle.kinds
        for name in kind.machines
    ]
    named = (say("Machine"), say("What it gets"), say("Lock"), say("Start it with"))
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in named)))
    size = say("{count} files, {size} MB", count=len(bundle.files), size=bundle.size // 10**6)
    parts = [
        tag("h1", say("Which machine gets what")),
        tag("p", say("Open this folder on the machine, and start the script beside its name; no network is needed.")),
        tag("p", size),
        tag("table", head, tag("tbody", "", *rows)),
    ]
    if bundle.without:
        items = (part for one in bundle.without for part in (tag("dt", one.machine), tag("dd", one.why)))
        parts += [tag("h2", say("Without a plan")), tag("dl", *items)]
    if lacking := lacking_pythons(bundle):
        parts += [tag("h2", say("Python that is not in this folder")), tag("ul", *(tag("li", one) for one in lacking))]
    return joined(parts)


def lacking_pythons(bundle: Bundle) -> list[Message]:
    """Say for which platforms the bundle lacks a Python that is needed there."""
    needed = dict.fromkeys((platform_of(kind.machine), kind.python) for kind in bundle.kinds)
    return [
        _("Machines of the platform {platform} need a Python {python} of their own.", platform=platform, python=python)
        for platform, python in needed
        if python not in bundle.pythons.get(platform, ())
    ]
