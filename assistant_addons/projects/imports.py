"""What a project's code and notebooks import, and the distributions that this stands for; nothing of it is run.

Distributions are found by a table of names, never by the import's own name alone: PyPI has other or abandoned projects
under the names of many imports (whisper, docx, TTS), so what the table does not hold is told and not guessed. No
library was taken for it: pipreqs falls back on the name itself, and pyimport2pkg 1.0, whose data the table's larger
part rests on, brings an HTTP client for them and has had no release since.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.api import BadInput, Record, _
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.project import Guess
from assistant_addons.projects.source import Source, file_bytes, is_file, real, refused, rows, shown, table
from assistant_addons.projects.tables import load

# Chosen: what is read in some seconds on a slow machine. A repository with more lists its needs in a file.
MOST_FILES = 3000
MOST_BYTES = 25 * 10**6
MOST_FOLDERS = 5000
_FILE_LIMIT = 2 * 10**6
# Folders that hold no code of the project's own, or code that one does not need in order to run it.
_PASSED_OVER = frozenset(
    {"__pycache__", "build", "dist", "docs", "doc", "env", "node_modules", "site-packages", "test", "tests", "venv"}
)
_LINKS = (os.path.islink, getattr(os.path, "isjunction", os.path.islink))  # junctions of Windows, from Python 3.12 on
_OF_PYTHON = sys.stdlib_module_names | {"__main__", "_typeshed"}
_GIVEN = frozenset({"torch", "google.colab", "kaggle_secrets", "pip"})  # in every plan, or only on Colab and Kaggle


class Provider(Record, frozen=True):
    """A module, dotted below a namespace, and the distribution that provides it; "" where PyPI has none.

    `others` provide it as well, and which of them a project means cannot be seen from its code.
    """

    module: str
    distribution: str
    others: tuple[str, ...] = ()


@cache
def _providers() -> dict[str, Provider]:
    """Map modules to what provides them: those listed by hand go before renamed ones, and these before equal names."""
    pairs = [(name, str(canonicalize_name(name))) for row in load("imports.same", str) for name in row.split()]
    pairs += [(module, name) for module, _space, name in (row.partition(" ") for row in load("imports.renamed", str))]
    found = {module: Provider(module=module, distribution=name) for module, name in pairs}
    return found | {row.module: row for row in load("imports.listed", Provider)}


def provider(module: str) -> Provider | None:
    """Return what provides a module such as "cv2" or "google.protobuf.message"; None where no table says it."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_providers()[name] for name in names if name in _providers()), None)


def _add(data: bytes | str, label: str, local: frozenset[str], gathering: Gathering) -> None:
    """Parse a file and add its imports, without those that `local` modules and Python itself provide."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code's own odd escapes
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        gathering.unreadable[label] = None
        return
    for name, line, needed in _imported(tree):
        if name.partition(".")[0] not in _OF_PYTHON | local:
            (gathering.needed if needed else gathering.optional).setdefault(name, f"{label}:{line}")


def take_imports(gathering: Gathering) -> None:
    """Guess the distributions of all imports, but for what is required already; what no table knows is noted."""
    required = gathering.names
    unknown: dict[str, str] = {}
    absent: dict[str, str] = {}
    for module, where in gathering.needed.items():
        top, known = module.partition(".")[0], provider(module)
        if {top, ".".join(module.split(".")[:2])} & _GIVEN:
            continue
        if known is None:
            if top not in gathering.own_modules and canonicalize_name(top) not in required:
                unknown.setdefault(top, where)
        elif not known.distribution:
            absent.setdefault(known.module, where)
        elif not required & {known.distribution, *known.others, canonicalize_name(known.module)}:
            guess = Guess(module=known.module, distribution=known.distribution, others=known.others, where=where)
            gathering.guesses.setdefault(known.distribution, guess)
    text = _("No package is known for these imports: {names}. If you know it, name it yourself.", option="--pin")
    gathering.note_names(text, (f"{name} ({where})" for name, where in unknown.items()))
    text = _("PyPI has no official package for these imports: {names}. See the project's own instructions.")
    gathering.note_names(text, (f"{name} ({where})" for name, where in absent.items()))
    optional, needed = ({name.partition(".")[0] for name in one} for one in (gathering.optional, gathering.needed))
    left = {name for name in optional - needed - _GIVEN if provider(name)}
    text = _("These imports were left out, as the code also runs without them: {names}.")
    gathering.note_names(text, sorted(left, key=str.lower))
    gathering.note_names(_("These files cannot be read as Python: {names}."), gathering.unreadable)


def _imported(tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """Yield what is imported, the line, and whether it is needed: an import whose failure is caught is optional.

    One for type checkers alone is none.
    """
    waiting: deque[tuple[ast.AST, bool]] = deque([(tree, True)])
    while waiting:
        node, needed = waiting.popleft()
        below = ast.iter_child_nodes(node)
        match node:
            case ast.Import():
                yield from ((alias.name, node.lineno, needed) for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                # `from google.cloud import storage`: below a namespace the distribution goes by the longer name
                for whole in (f"{module}.{alias.name}" for alias in node.names):
                    known = provider(whole)
                    yield whole if known and known.module == whole else module, node.lineno, needed
            case ast.If() if _last_name(node.test) == "TYPE_CHECKING":
                waiting += [(child, needed) for child in node.orelse]
            case ast.Try():
                needed = needed and not any(map(_catches_import, node.handlers))
                waiting += [(child, needed) for child in below]
            case ast.expr():  # no expression holds a statement, and they are most of a file
                pass
            case _:
                waiting += [(child, needed) for child in below]


def _catches_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return bool(set(map(_last_name, caught)) & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def take_script(text: str, source: Source, gathering: Gathering) -> None:
    """Add the imports of a script, but for the modules beside it."""
    _add(text, source.file, _modules_beside(source.folder), gathering)


def _modules_beside(folder: Path | None) -> frozenset[str]:
    """Return the modules that a script or notebook finds in its own folder."""
    try:
        beside = list(folder.iterdir()) if folder else []
    except OSError:
        return frozenset()
    return frozenset(path.stem for path in beside if path.suffix == ".py" or is_file(path / "__init__.py"))


def read_code(root: Path, gathering: Gathering) -> bool:
    """Read the imports of all code below a folder, within bounds; return whether there is any."""
    files, complete = _files(root)
    modules, read, size = _modules(root, files), 0, 0
    for path in files:
        label = shown(path.relative_to(root).as_posix())
        try:
            data = file_bytes(path, _FILE_LIMIT)
        except BadInput:
            gathering.unreadable[label] = None
            data = b""
        size += len(data)
        if size > MOST_BYTES:
            break
        # What a file finds beside it, above it, or in `src`.
        above = [folder for folder in path.parents if folder == root or root in folder.parents]
        local = (modules.get(folder, set()) for folder in (*above, root / "src", root / "lib"))
        _add(data, label, frozenset().union(*local), gathering)
        read += 1
    if read < len(files) or not complete:
        text = _(
            "Only the first {count} code files in {folder} were read; name the file that lists what the project needs."
        )
        gathering.note(text.format(count=read, folder=shown(root.name or root)))
    gathering.own_modules.update(*modules.values())
    if files:
        gathering.paths[real(root)] = None
    return bool(files)


def _files(root: Path) -> tuple[list[Path], bool]:
    """List the code below a folder, the nearest first, and whether that is all of it."""
    files, folders, listed = list[Path](), deque([root]), 0
    while folders and listed < MOST_FOLDERS and len(files) <= MOST_FILES:
        folder, listed = folders.popleft(), listed + 1
        _folder, below, names = next(os.walk(folder), ("", [], []))
        if "pyvenv.cfg" not in names:
            files += _own(folder, (name for name in names if name.endswith(".py") and name != "setup.py"))
            folders += _own(folder, (name for name in below if name not in _PASSED_OVER))
    return files[:MOST_FILES], len(files) <= MOST_FILES and not folders


def _own(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return what a folder has under these names, in order, without what is hidden and links to elsewhere."""
    paths = (folder / name for name in sorted(names) if name[0] != ".")
    return [path for path in paths if not any(is_link(path) for is_link in _LINKS)]


def _modules(root: Path, files: Iterable[Path]) -> Mapping[Path, set[str]]:
    """Map each folder to the modules that an import finds in it: its files, and folders with code at any depth."""
    found: dict[Path, set[str]] = defaultdict(set)
    for path in files:
        found[path.parent].add(path.stem)
        for folder in path.parents:
            if folder == root or root not in folder.parents or folder.name in found[folder.parent]:
                break
            found[folder.parent].add(folder.name)
    return found


_PYTHON_CELL = re.compile(r"%%(?:capture|time|timeit|prun)\b")
# !pip install x, %conda install x, and in a cell for a shell: pip install x
_INSTALLS = re.compile(r"(?m)^[ \t]*(?:[!%]|(?:uv|pip3?|conda|mamba)[ \t]).*\binstall\b")


# {"cells": [{"cell_type": "code", "source": ["!pip install jiwer\n", "import torch"], …}], "nbformat": 4, …}
def take_notebook(text: str, source: Source, gathering: Gathering) -> None:
    """Add the imports of a notebook's cells; raise `BadInput` for a broken one."""
    try:
        whole = table(json.loads(text))
    except (ValueError, RecursionError):
        whole = {}
    # Up to version 3 of the format the cells stood in sheets, and a cell's text was its "input".
    if not {"cells", "worksheets"} & whole.keys():
        raise refused(source.name, _("it is not a notebook, or it is damaged"))
    sheets = [whole, *map(table, rows(whole.get("worksheets")))]
    cells = [
        cell for sheet in sheets for cell in map(table, rows(sheet.get("cells"))) if cell.get("cell_type") == "code"
    ]
    installs, own = False, _modules_beside(source.folder)
    for number, cell in enumerate(cells, 1):
        lines = cell.get("source", cell.get("input", ""))
        code = "".join(map(str, lines)) if isinstance(lines, list) else str(lines)
        installs = installs or bool(_INSTALLS.search(code))
        _add(_python(code), f"{source.file}[{number}]", own, gathering)
    if installs:
        note = _("{file} also installs packages by commands, which are not read; name the packages yourself.")
        gathering.note(note.format(file=source.file, option="--pin"))


def _python(text: str) -> str:
    """Return the Python of a cell, each command and magic replaced by `pass`; "" for a cell of another language."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%") and not _PYTHON_CELL.match(first):
        return ""
    lines = text.replace("\\\n", " ").splitlines()
    return "\n".join(re.sub(r"\S.*", "pass", line) if _is_magic(line.strip()) else line for line in lines)


def _is_magic(words: str) -> bool:
    """Return whether a line is IPython's own: a command, a magic, or a question such as "torch.nn?"."""
    return words.startswith(("!", "%", "?")) or (words.endswith("?") and not words.startswith("#"))
