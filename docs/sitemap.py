"""Writes sitemap.xml, by which search engines find every page in every language; https://www.sitemaps.org/protocol.html.

A library for it (sphinx-sitemap) writes one for each language, with each language in a folder; here the first language
stands at the root of the site. The site needs an address for it: `-D html_baseurl=https://…/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from sphinx.application import Sphinx
from written_cards import cards, name_of

MAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"  # https://developers.google.com/search/docs/specialty/international/localized-versions


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the map once the first language's pages are there."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}


def _write(app: Sphinx, error: Exception | None) -> None:
    languages = list(app.config.html_context["languages"])
    root = app.config.html_baseurl
    if error or not root or app.builder.format != "html" or app.config.language != languages[0]:
        return
    ET.register_namespace("", MAPS)
    ET.register_namespace("xhtml", XHTML)
    sites = {language: root + (f"{language}/" if number else "") for number, language in enumerate(languages)}
    pages = ET.Element(f"{{{MAPS}}}urlset")
    for name in (*sorted(app.env.found_docs), *map(name_of, cards())):
        for site in sites.values():
            page = ET.SubElement(pages, f"{{{MAPS}}}url")
            ET.SubElement(page, f"{{{MAPS}}}loc").text = f"{site}{name}.html"
            for language, other in sites.items():
                link = {"rel": "alternate", "hreflang": language.replace("_", "-"), "href": f"{other}{name}.html"}
                ET.SubElement(page, f"{{{XHTML}}}link", link)
    ET.ElementTree(pages).write(Path(app.outdir, "sitemap.xml"), "utf-8", xml_declaration=True)
