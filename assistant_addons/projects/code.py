"""What a project's code and notebooks import, and the distributions that this stands for; nothing of it is run."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.api import BadInput, _
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.imports import OF_PYTHON, Code, Imports, is_namespace, provider
from assistant_addons.projects.project import Guess
from assistant_addons.projects.source import Source, file_bytes, is_file, listed, real, refused, rows, shown, table

# Chosen: what is read in two seconds on a slow machine. A repository with more lists its needs in a file.
MOST_FILES = 3000
MOST_BYTES = 25 * 10**6
MOST_FOLDERS = 5000
_FILE_LIMIT = 2 * 10**6
# Folders that hold no code of the project's own, or code that one does not need in order to run it.
_PASSED_OVER = frozenset(
    {"__pycache__", "build", "dist", "docs", "doc", "env", "node_modules", "site-packages", "test", "tests", "venv"}
)
_GIVEN = frozenset({"torch", "google.colab", "kaggle_secrets", "pip"})  # in every plan, or only on Colab and Kaggle
# All that may be an import, comments and texts included: a file that names nothing new need not be parsed.
_MAYBE = re.compile(rb"\b(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([^\n;#\\]+)(\\?))")
_NAMES = re.compile(rb"[A-Za-z_][\w.]*")


def take_script(text: str, source: Source, gathering: Gathering) -> None:
    """Add the imports of a script, but for the modules beside it."""
    gathering.code.add(text, source.file, modules_beside(source.folder))


def modules_beside(folder: Path | None) -> frozenset[str]:
    """Return the modules that a script or notebook finds in its own folder."""
    try:
        beside = list(folder.iterdir()) if folder else []
    except OSError:
        return frozenset()
    return frozenset(path.stem for path in beside if path.suffix == ".py" or is_file(path / "__init__.py"))


def read_code(root: Path, gathering: Gathering) -> bool:
    """Read the imports of all code below a folder, within bounds; return whether there is any."""
    files, complete = _files(root)
    modules = _modules(root, files)
    read = _read_files(files, root, modules, gathering.code)
    if read < len(files) or not complete:
        gathering.note(
            _(
                "Only the first {count} code files in {folder} were read; name the file that lists what the project "
                "needs.",
                count=read,
                folder=shown(root.name or root),
            )
        )
    gathering.code.own_modules.update(*modules.values())
    if files:
        gathering.paths[real(root)] = None
    return bool(files)


def _read_files(files: list[Path], root: Path, modules: Mapping[Path, frozenset[str]], code: Code) -> int:
    """Add the imports of files until their bytes exceed the bound; return how many files were read."""
    seen, taken = set(OF_PYTHON), 0
    for number, path in enumerate(files):
        label = shown(path.relative_to(root).as_posix())
        try:
            data = file_bytes(path, _FILE_LIMIT)
        except BadInput:
            code.unreadable[label] = None
            continue
        taken += len(data)
        if taken > MOST_BYTES:
            return number
        local = _local(path, root, modules)
        if not _nothing_new(data, seen | local):
            seen |= set(_settled(code.add(data, label, local), local))
    return len(files)


def _settled(found: Imports, local: frozenset[str]) -> Iterator[str]:
    """Yield the names that later files need not be parsed for.

    A folder's own module may be a package elsewhere, and below a namespace another distribution may be meant.
    """
    for name in found.needed:
        top = name.partition(".")[0]
        if top not in local:
            yield from (one for one in {name, top} if not is_namespace(one))


def take_imports(gathering: Gathering) -> None:
    """Guess the distributions of all imports, but for what is required already; what no table knows is noted."""
    code, required = gathering.code, gathering.names
    unknown: dict[str, str] = {}
    absent: dict[str, str] = {}
    for module, where in code.needed.items():
        known = provider(module)
        top = module.partition(".")[0]
        if top in _GIVEN or module in _GIVEN or ".".join(module.split(".")[:2]) in _GIVEN:
            continue
        if known is None:
            if top not in code.own_modules and canonicalize_name(top) not in required:
                unknown.setdefault(top, where)
        elif not known.distribution:
            absent.setdefault(known.module, where)
        elif not required & {known.distribution, *known.others, canonicalize_name(known.module)}:
            guess = Guess(module=known.module, distribution=known.distribution, others=known.others, where=where)
            gathering.guesses.setdefault(known.distribution, guess)
    _note(unknown, absent, gathering)


def _note(unknown: Mapping[str, str], absent: Mapping[str, str], gathering: Gathering) -> None:
    code = gathering.code
    if unknown:
        gathering.note(
            _(
                "No package is known for these imports: {names}. If you know it, name it yourself.",
                names=listed(f"{name} ({where})" for name, where in unknown.items()),
                option="--pin",
            )
        )
    if absent:
        gathering.note(
            _(
                "PyPI has no official package for these imports: {names}. See the project's own instructions.",
                names=listed(f"{name} ({where})" for name, where in absent.items()),
            )
        )
    optional = {name.partition(".")[0] for name in code.optional} - {name.partition(".")[0] for name in code.needed}
    if optional := {name for name in optional if provider(name)} - _GIVEN:
        gathering.note(
            _(
                "These imports were left out, as the code also runs without them: {names}.",
                names=listed(sorted(optional, key=str.lower)),
            )
        )
    if code.unreadable:
        gathering.note(_("These files cannot be read as Python: {names}.", names=listed(code.unreadable)))


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
    return {folder: frozenset(names) for folder, names in found.items()}


def _local(path: Path, root: Path, modules: Mapping[Path, frozenset[str]]) -> frozenset[str]:
    """Return the modules that a file finds beside it, above it, or in `src`."""
    above = [folder for folder in path.parents if folder == root or root in folder.parents]
    return frozenset().union(*(modules.get(folder, frozenset()) for folder in (*above, root / "src", root / "lib")))


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


_PYTHON_CELL = re.compile(r"%%(?:capture|time|timeit|prun)\b")
# !pip install x, %conda install x, and in a cell for a shell: pip install x
_INSTALLS = re.compile(r"(?m)^[ \t]*(?:[!%]|(?:uv|pip3?|conda|mamba)[ \t]).*\binstall\b")


def take_notebook(text: str, source: Source, gathering: Gathering) -> None:
    """Add the imports of a notebook's cells; raise `BadInput` for a broken one."""
    cells, own = list(_code_cells(text, source)), modules_beside(source.folder)
    for number, cell in enumerate(cells, 1):
        gathering.code.add(_python(cell), f"{source.file}[{number}]", own)
    if any(map(_INSTALLS.search, cells)):
        gathering.note(
            _(
                "{file} also installs packages by commands, which are not read; name the packages yourself.",
                file=source.file,
                option="--pin",
            )
        )


# {"cells": [{"cell_type": "code", "source": ["!pip install jiwer\n", "import torch"], …}], "nbformat": 4, …}
def _code_cells(text: str, source: Source) -> Iterator[str]:
    try:
        whole = table(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise refused(source.name, _("it is not a notebook, or it is damaged")) from error
    # Up to version 3 of the format the cells stood in sheets, and a cell's text was its "input".
    sheets = [whole, *map(table, rows(whole.get("worksheets")))]
    cells = [table(cell) for sheet in sheets for cell in rows(sheet.get("cells"))]
    if not cells and "cells" not in whole and "worksheets" not in whole:
        raise refused(source.name, _("it is not a notebook, or it is damaged"))
    for cell in cells:
        if cell.get("cell_type") == "code":
            lines = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _python(text: str) -> str:
    """Return the Python of a cell, each command and magic replaced by `pass`; "" for a cell of another language."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%") and not _PYTHON_CELL.match(first):
        return ""
    lines = text.replace("\\\n", " ").splitlines()
    return "\n".join(_indent(line) + "pass" if _is_magic(line.strip()) else line for line in lines)


def _is_magic(words: str) -> bool:
    """Return whether a line is IPython's own: a command, a magic, or a question such as "torch.nn?"."""
    return words.startswith(("!", "%", "?")) or (words.endswith("?") and not words.startswith("#"))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
