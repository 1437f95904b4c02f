"""The page of a bundle: which machine gets what, how to start, and who gets nothing; in every language."""

from __future__ import annotations

from assistant.bundle.manifest import Bundle
from assistant.bundle.platforms import platform_of
from assistant.export import MARKER
from assistant.i18n import LANGUAGES, Message, _, in_language, say
from assistant.markup import Markup, html_language, joined, style, tag
from assistant.views import plan_title

STARTS = {"windows": "start.bat", "linux": "sh start.sh", "macos": "sh start.sh"}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid #8888; text-align: left; vertical-align: top; }
code { overflow-wrap: anywhere; }
"""


def bundle_page(bundle: Bundle) -> str:
    """Write the page as HTML, in every language, English first; it loads nothing and runs nothing."""
    parts = []
    for code in LANGUAGES:
        with in_language(code):
            parts.append(tag("section", _body(bundle), lang=html_language()))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", "PyTorch"),
        style(_STYLE),
    )
    html = tag("html", head, tag("body", tag("main", *parts)), lang="en")
    return f"<!doctype html>\n<!-- {MARKER} -->\n{html}\n"


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
