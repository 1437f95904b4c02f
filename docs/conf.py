"""Settings of the documentation: `sphinx-build -W docs site` builds it, with reference pages generated from the data.

`sphinx-build -b linkcheck docs site` checks every external address, the sources of tables and rules among them.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "PyTorch setup assistant"
copyright = "the authors of the PyTorch setup assistant"  # noqa: A001 - Sphinx's own name
extensions = ["myst_parser", "written_reference"]
exclude_patterns = ["reference/written/README.md"]
html_theme = "alabaster"
html_theme_options = {"description": "Which PyTorch fits your machine, and why.", "page_width": "70rem"}
myst_heading_anchors = 3
nitpicky = True
linkcheck_anchors = False  # many pages make them by script
linkcheck_timeout = 15
