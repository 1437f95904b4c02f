"""The product's own source, for tests that read it."""

from __future__ import annotations

import ast
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "assistant"
MODULES = sorted(PACKAGE.rglob("*.py"))
ADDON_MODULES = sorted((ROOT / "assistant_addons").rglob("*.py"))
ADDONS = sorted(path.parent.name for path in (ROOT / "assistant_addons").glob("*/__init__.py"))
OWN_NAME = "torch-setup-assistant"
# Packages whose modules are named otherwise.
MODULES_OF = {
    "nvidia-ml-py": "pynvml",
    "protobuf": "google",
    "pyyaml": "yaml",
}


def text_of(path: Path) -> str:
    """Read a file of the project."""
    return path.read_text(encoding="utf-8")


def modules_of(requirements: list[str]) -> set[str]:
    """Name the modules that requirements bring, our own extras aside."""
    names = {Requirement(line).name for line in requirements} - {OWN_NAME}
    return {MODULES_OF.get(name, name.replace("-", "_")) for name in names}


def imported_by(path: Path) -> set[str]:
    """Name the top-level modules that a file imports, anywhere in it."""
    nodes = [*ast.walk(ast.parse(text_of(path)))]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in plain | named}
