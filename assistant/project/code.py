"""What a project's code imports, and the distributions that this stands for; the code is parsed and never run."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.project import Guess
from assistant.model.visible import printable
from assistant.project.distributions import is_namespace, provider
from assistant.project.gathering import Gathering
from assistant.project.source import file_bytes

# Chosen: what is read in two seconds on a slow machine. A repository with more lists its needs in a file.
MOST_FILES = 3000
MOST_BYTES = 25 * 10**6
MOST_FOLDERS = 5000
_FILE_LIMIT = 2 * 10**6
_SHOWN = 20  # names in a sentence
# Folders that hold no code of the project's own, or code that one does not need in order to run it.
_PASSED_OVER = frozenset(
    {"__pycache__", "build", "dist", "docs", "doc", "env", "node_modules", "site-packages", "test", "tests", "venv"}
)
_OF_PYTHON = sys.stdlib_module_names | {"__main__", "_typeshed"}
_GIVEN = frozenset({"torch", "google.colab", "kaggle_secrets", "pip"})  # what every plan has, or a service alone
# All that may be an import, comments and texts included: a file that names nothing new need not be parsed.
_MAYBE = re.compile(rb"\b(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([^\n;#\\]+)(\\?))")
_NAMES = re.compile(rb"[A-Za-z_][\w.]*")


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
    """The imports of several files, each with the first place where it stands."""

    def __init__(self) -> None:
        self.needed: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        self.unreadable: list[str] = []

    def add(self, found: Imports, label: str, local: frozenset[str] = frozenset()) -> None:
        """Add a file's imports, without those that `local` modules and Python itself provide."""
        for own, here in ((self.needed, found.needed), (self.optional, found.optional)):
            for name, line in here.items():
                if name.partition(".")[0] not in _OF_PYTHON | local:
                    own.setdefault(name, f"{label}:{line}")


def read_code(root: Path, gathering: Gathering) -> bool:
    """Read the imports of a script, or of all code below a folder, within bounds; return whether there is any code."""
    whole = root.is_dir()
    files, complete = _files(root) if whole else ([root], True)
    modules, code = _modules(root, files), Code()
    read = _read_files(files, root, modules, code)
    if read < len(files) or not complete:
        gathering.tell(
            _(
                "Only the first {count} files of code in {folder} were looked at; name the file that lists what the "
                "project needs.",
                count=read,
                folder=printable(root.name or root),
            )
        )
    gathering.paths[root.resolve()] = None
    anywhere = frozenset().union(*modules.values()) if whole else frozenset()
    take_imports(code, gathering, anywhere)
    return bool(files)


def _read_files(files: list[Path], root: Path, modules: Mapping[Path, frozenset[str]], code: Code) -> int:
    """Add the imports of files until their bytes exceed the bound; return how many files were read."""
    seen, taken = set(_OF_PYTHON), 0
    for number, path in enumerate(files):
        try:
            data = file_bytes(path, _FILE_LIMIT)
        except BadInput:
            code.unreadable.append(_label(path, root))
            continue
        taken += len(data)
        if taken > MOST_BYTES:
            return number
        local = _local(path, root, modules)
        if _nothing_new(data, seen | local):
            continue
        tree = parsed(data)
        if tree is None:
            code.unreadable.append(_label(path, root))
            continue
        found = imports_of(tree)
        code.add(found, _label(path, root), local)
        seen |= set(_settled(found, local))
    return len(files)


def _settled(found: Imports, local: frozenset[str]) -> Iterator[str]:
    """Yield the names that need no second look: what one folder has for its own may be a package in another."""
    for name in found.needed:
        top = name.partition(".")[0]
        if top not in local:
            yield name
            if not is_namespace(top):
                yield top


def take_imports(code: Code, gathering: Gathering, anywhere: frozenset[str] = frozenset()) -> None:
    """Guess the distributions of imports, but for what is required already; what no table knows is told.

    `anywhere` are modules that lie somewhere in the project: a name that no table has is one of these.
    """
    required = gathering.names
    unknown: dict[str, str] = {}
    absent: dict[str, str] = {}
    for module, where in code.needed.items():
        known = provider(module)
        top = module.partition(".")[0]
        if top in _GIVEN or module in _GIVEN or ".".join(module.split(".")[:2]) in _GIVEN:
            continue
        if known is None:
            if top not in anywhere and canonicalize_name(top) not in required:
                unknown.setdefault(top, where)
        elif not known.distribution:
            absent.setdefault(known.module, where)
        elif not required & {known.distribution, *known.others, canonicalize_name(known.module)}:
            guess = Guess(module=known.module, distribution=known.distribution, others=known.others, where=where)
            gathering.guesses.setdefault(known.distribution, guess)
    _tell(code, unknown, absent, gathering)


def _tell(code: Code, unknown: Mapping[str, str], absent: Mapping[str, str], gathering: Gathering) -> None:
    if unknown:
        gathering.tell(
            _(
                "No package is known for these imports: {names}. Add the one that you know.",
                names=_listed(f"{name} ({where})" for name, where in unknown.items()),
                option="--pin",
            )
        )
    if absent:
        gathering.tell(
            _(
                "PyPI has no package of the authors for these imports: {names}. See the project's own instructions.",
                names=_listed(f"{name} ({where})" for name, where in absent.items()),
            )
        )
    optional = {name.partition(".")[0] for name in code.optional} - {name.partition(".")[0] for name in code.needed}
    if optional := {name for name in optional if provider(name)} - _GIVEN:
        gathering.tell(
            _("What the code can do without was left out: {names}.", names=_listed(sorted(optional, key=str.lower)))
        )
    if code.unreadable:
        gathering.tell(_("These files are no Python that can be read here: {names}.", names=_listed(code.unreadable)))


def _listed(names: Iterable[str]) -> str:
    every = list(map(printable, names))
    return ", ".join(every[:_SHOWN]) + (", …" if len(every) > _SHOWN else "")


def _files(root: Path) -> tuple[list[Path], bool]:
    """List the code below a folder, the upper folders first, and whether that is all of it; links are not followed."""
    found: list[Path] = []
    waiting, folders = [root], 0
    while waiting and folders < MOST_FOLDERS:
        folders += 1
        try:
            entries = sorted(os.scandir(waiting.pop(0)), key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _PASSED_OVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif entry.name.endswith(".py") and entry.name != "setup.py" and entry.is_file(follow_symlinks=False):
                if len(found) == MOST_FILES:
                    return found, False
                found.append(Path(entry.path))
    return found, not waiting


def _modules(root: Path, files: Iterable[Path]) -> dict[Path, frozenset[str]]:
    """Map each folder to the modules that an import finds in it: its files, and folders with code at any depth."""
    found: dict[Path, set[str]] = defaultdict(set)
    for path in files:
        found[path.parent].add(path.stem)
        for folder in path.parents:
            if folder == root or root not in folder.parents:
                break
            if folder.name in found[folder.parent]:
                break
            found[folder.parent].add(folder.name)
    if root.is_file():  # a script: what lies beside it is its own
        with os.scandir(root.parent) as entries:
            found[root.parent] |= {
                entry.name.removesuffix(".py")
                for entry in entries
                if entry.name.endswith(".py") or (entry.is_dir() and Path(entry.path, "__init__.py").is_file())
            }
    return {folder: frozenset(names) for folder, names in found.items()}


def _local(path: Path, root: Path, modules: Mapping[Path, frozenset[str]]) -> frozenset[str]:
    """Return the modules that a file finds beside it, above it, or in `src`."""
    top = root if root.is_dir() else root.parent
    above = [folder for folder in path.parents if folder == top or top in folder.parents]
    return frozenset().union(*(modules.get(folder, frozenset()) for folder in (*above, top / "src", top / "lib")))


def _label(path: Path, root: Path) -> str:
    return printable(path.relative_to(root).as_posix() if root.is_dir() else path.name)


def _nothing_new(data: bytes, seen: set[str]) -> bool:
    """Return whether all that a file may import has been seen, so that parsing it would tell nothing."""
    for found in _MAYBE.finditer(data):
        if found[3]:
            return False  # goes on in the next line
        for clause in [found[1]] if found[1] else found[2].split(b","):
            name = _NAMES.match(clause.strip())  # none in `from .own import it`
            if name and not {name[0].decode(), name[0].partition(b".")[0].decode()} & seen:
                return False
    return True
