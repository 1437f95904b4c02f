"""What Python code imports; it is parsed and never run."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from assistant.project.distributions import provider

OF_PYTHON = sys.stdlib_module_names | {"__main__", "_typeshed"}


class Imports(NamedTuple):
    """The modules that a file imports, by name and line: those that it needs, and those that it can do without."""

    needed: dict[str, int]
    optional: dict[str, int]


def parsed(data: bytes | str) -> ast.Module | None:
    """Parse Python without running it, in the encoding that it names; None for what this version cannot read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code's own odd escapes
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def imports_of(tree: ast.Module) -> Imports:
    """Find the imports; one for type checkers alone is none, one whose failure is caught is optional."""
    found = Imports({}, {})
    waiting: deque[tuple[ast.AST, bool]] = deque([(tree, True)])
    while waiting:
        node, needed = waiting.popleft()
        for name in _named(node):
            (found.needed if needed else found.optional).setdefault(name, getattr(node, "lineno", 1))
        if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
            waiting += [(child, needed) for child in node.orelse]
        elif isinstance(node, ast.Try) and any(map(_catches_import, node.handlers)):
            waiting += [(child, False) for child in ast.iter_child_nodes(node)]
        elif not isinstance(node, ast.expr):  # no expression holds a statement, and they are most of a file
            waiting += [(child, needed) for child in ast.iter_child_nodes(node)]
    return found


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        # `from google.cloud import storage`: below a namespace the distribution goes by the longer name
        whole = (f"{node.module}.{alias.name}" for alias in node.names)
        yield from dict.fromkeys(
            name if (known := provider(name)) and known.module == name else node.module for name in whole
        )


def _catches_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return bool(set(map(_last_name, caught)) & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


class Code:
    """The imports of several files, each with the first place where it stands.

    `own_modules` lie somewhere in the project: a name that no table has is one of these.
    """

    def __init__(self) -> None:
        self.needed: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        self.unreadable: dict[str, None] = {}
        self.own_modules: set[str] = set()

    def add(self, data: bytes | str, label: str, local: frozenset[str] = frozenset()) -> Imports:
        """Parse a file and add its imports, without those that `local` modules and Python itself provide."""
        tree = parsed(data)
        if tree is None:
            self.unreadable[label] = None
            return Imports({}, {})
        found = imports_of(tree)
        for own, here in ((self.needed, found.needed), (self.optional, found.optional)):
            for name, line in here.items():
                if name.partition(".")[0] not in OF_PYTHON | local:
                    own.setdefault(name, f"{label}:{line}")
        return found
