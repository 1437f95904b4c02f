"""What Python code imports, and which distribution an import stands for.

Code is parsed and never run. Distributions are found by a table of names, never by the import's own name alone: PyPI
has other or abandoned projects under the names of many imports (whisper, docx, TTS), so what the table does not hold
is told and not guessed. No library was taken for it: pipreqs falls back on the name itself, and pyimport2pkg 1.0,
whose data the table's larger part rests on, brings an HTTP client for them and has had no release since.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.api import Record
from assistant.api.planning import Table
from assistant.api.records import from_json


class Provider(Record, frozen=True):
    """A module, dotted below a namespace, and the distribution that provides it; "" where PyPI has none.

    `others` provide it as well, and which of them a project means cannot be seen from its code.
    """

    module: str
    distribution: str
    others: tuple[str, ...] = ()


class ImportTables(Record, frozen=True):
    """The map: `listed` by hand, `renamed` as "module distribution", `same` as modules called as their distribution."""

    listed: Table[Provider]
    renamed: Table[str]
    same: Table[str]


@cache
def _providers() -> dict[str, Provider]:
    file = Path(__file__).parent / "data" / "imports.json"
    tables = from_json(file.read_bytes(), ImportTables, "projects/data/imports.json")
    found = {
        name: Provider(module=name, distribution=canonicalize_name(name))
        for row in tables.same.rows
        for name in row.split()
    }
    for row in tables.renamed.rows:
        module, _space, distribution = row.partition(" ")
        found[module] = Provider(module=module, distribution=distribution)
    return found | {row.module: row for row in tables.listed.rows}


def provider(module: str) -> Provider | None:
    """Return what provides a module such as "cv2" or "google.protobuf.message"; None where no table says it."""
    known, parts = _providers(), module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((known[name] for name in names if name in known), None)


def is_namespace(module: str) -> bool:
    """Return whether distributions share a module, each with a name below it, as "google" and "google.cloud"."""
    return module in _namespaces()


@cache
def _namespaces() -> frozenset[str]:
    dotted = (name.split(".") for name in _providers())
    return frozenset(".".join(parts[:length]) for parts in dotted for length in range(1, len(parts)))


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
