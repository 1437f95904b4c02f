"""Settings of the documentation: `python -m sphinx -W docs OUT` builds it, reference pages from the data included.

`python -m sphinx -b linkcheck docs OUT` checks every external address, the sources of causes among them.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "PyTorch setup assistant"
copyright = "the authors of the PyTorch setup assistant"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser", "printed", "generated"]
html_theme = "alabaster"
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_theme_options = {"description": "Which PyTorch fits your machine, and why.", "page_width": "70rem"}
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
nitpicky = True
smartquotes = False  # it would make a dash of the two hyphens of an option
linkcheck_anchors = False  # many pages make them by script
linkcheck_timeout = 15
