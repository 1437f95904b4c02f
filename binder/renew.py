"""Write binder/environment.yml from pyproject.toml: `python3 binder/renew.py`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """\
# For Binder, which reads this file instead of the one above it; `python3 binder/renew.py` writes it from the project's
# pyproject.toml. It names all that the project needs but not the project itself, so that the image's large layer is
# rebuilt only when a requirement changes. pip keeps what the image has if it fits; postBuild adds the project.
channels:
  - conda-forge
dependencies:
  - python=3.12
  - pip
  - pip:
"""


def environment() -> str:
    """Return the text of environment.yml."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    parts = ("uv", "onnx", "projects", "labs", "lab")  # the last brings the others
    lines = dict.fromkeys([*project["dependencies"], *(line for part in parts for line in extras[part])])
    requirements = (line for line in lines if not line.startswith(project["name"]))
    return HEAD + "".join(f"      - {json.dumps(line)}\n" for line in requirements)


if __name__ == "__main__":
    (HERE / "environment.yml").write_text(environment(), encoding="utf-8")
