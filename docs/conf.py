"""Settings of the documentation: `sphinx-build -W docs site` builds it, with reference pages generated from the data.

In Chinese it is built beside that: `sphinx-build -W -D language=zh_CN docs site/zh_CN`, with the sentences in
docs/locale. With `-D html_baseurl=https://…/` pages name their own address, and search engines get a sitemap.
`sphinx-build -b linkcheck docs site` checks every external address, the sources of tables and rules among them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

sys.path.insert(0, str(Path(__file__).parent))

project = "PyTorch setup assistant"
copyright = "the authors of the PyTorch setup assistant"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser", "printed", "written_reference", "written_cards", "sitemap"]
exclude_patterns = ["reference/written/README.md"]
language = "en"
languages = {"en": "English", "zh_CN": "简体中文"}  # the first is at the root of the site, others in a folder each
locale_dirs = ["locale"]
gettext_compact = False  # a file of sentences for each page
gettext_location = False  # lines that move would change files in which nothing else has
gettext_last_translator = gettext_language_team = ""
templates_path = ["templates"]
html_theme = "alabaster"
html_sidebars = {"**": ["about.html", "languages.html", "searchfield.html", "navigation.html"]}
html_context = {"languages": languages}
html_theme_options = {"description": "Which PyTorch fits your machine, and why.", "page_width": "70rem"}
myst_heading_anchors = 3
# Pages of cards are no documents that Markdown could name.
myst_url_schemes = {"http": None, "https": None, "mailto": None, "card": "cards/{{path}}.html"}
nitpicky = True
smartquotes = False  # it would make a dash of the two hyphens of an option
linkcheck_anchors = False  # many pages make them by script
linkcheck_timeout = 15


def setup(app: Sphinx) -> None:
    """Name the site in its language, which is known once the command line has been read."""
    app.connect("config-inited", _name)


def _name(_app: Sphinx, config: Config) -> None:
    if config.language == "zh_CN":
        config.html_baseurl = config.html_baseurl and f"{config.html_baseurl}zh_CN/"
        config.project = "PyTorch 安装助手"
        config.html_theme_options["description"] = "哪个 PyTorch 适合您的机器，以及为什么。"
