"""Finds who writes files, so that a test can ask each of them what goes out with them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

WRITERS = {
    "write_atomically",
    "write_temporary",
    "write_to_path",
    "append_private",
    "write_draft",
    "write_file",
    "write_text",
    "write",
}


def writers_in(root: Path) -> set[str]:
    """Name the functions below a folder that write a file, as in "export/write.py:write_all"."""
    return {
        f"{path.relative_to(root).as_posix()}:{function}"
        for path, function, call in calls_in(root)
        if "programs" not in path.parts
        and name_of(call) in WRITERS
        and (name_of(call) != "write" or ast.unparse(call.func) == "nbformat.write")
    }


@cache
def calls_in(root: Path) -> list[tuple[Path, str, ast.Call]]:
    """Give every call of the Python below a folder with the file and the function that it stands in."""
    paths = sorted(root.rglob("*.py"))
    return [(path, *found) for path in paths for found in _calls(ast.parse(path.read_text("utf-8")))]


def _calls(tree: ast.AST, function: str = "") -> list[tuple[str, ast.Call]]:
    found = []
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        found += [(inside, node)] if isinstance(node, ast.Call) else []
        found += _calls(node, inside)
    return found


def name_of(call: ast.Call) -> str:
    """Return the last part of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]
