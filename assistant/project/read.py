"""A project by the names that the user gives: which reader each file wants, and which file of a folder is the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.specifiers import SpecifierSet

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.project import Project, ProjectKind
from assistant.model.visible import printable
from assistant.parsers.decode import tidied
from assistant.project.code import Code, imports_of, parsed, read_code, take_imports
from assistant.project.conda import take_environment
from assistant.project.gathering import Gathering
from assistant.project.locks import take_poetry_lock, take_pylock, take_uv_lock
from assistant.project.notebook import take_notebook
from assistant.project.pyproject import read_pyproject, take_pyproject
from assistant.project.requirements import read_requirements, take_lines
from assistant.project.setup_script import read_setup_cfg, read_setup_script
from assistant.project.source import (
    FILE_LIMIT,
    Source,
    at_home,
    decoded,
    file_text,
    is_file,
    is_folder,
    refused,
    source_of,
    too_long,
)

_NO_EXTRAS: frozenset[str] = frozenset()
_Taker = Callable[[str, Source, Gathering], object]
# In a folder the first that is there and says something counts. A lock holds one machine's answer, so it comes late.
_BEST_FIRST = (
    "pyproject.toml",
    "requirements.txt",
    "environment.yml",
    "environment.yaml",
    "setup.cfg",
    "setup.py",
    "pylock.toml",
    "uv.lock",
)
_NOTEBOOKS = 20  # of a folder without other code that are read; chosen
_LOCKS: dict[str, _Taker] = {"uv.lock": take_uv_lock, "poetry.lock": take_poetry_lock}


def read_project(name: str, *, extras: Iterable[str] = (), trusted: Iterable[str] = ()) -> Project:
    """Read what a file or a folder of a project needs; nothing of it is run.

    `extras` are optional parts that the project offers, `trusted` the indexes and pages of wheels that the user agreed
    to. Raises `BadInput` for what is not there, cannot be read, or says nothing about packages.
    """
    if "://" in name:
        raise BadInput(
            _("{file} is on the network.", file=printable(name)), hint=_("Download it first, then name the file.")
        )
    path, wanted, gathering = at_home(name), frozenset(extras), Gathering(tuple(trusted))
    if is_folder(path):
        kind = _read_folder(path.absolute(), gathering, wanted)
    elif path.suffix == ".py" and path.name != "setup.py":
        file_text(path)  # says what is wrong with it, if anything
        read_code(path.absolute(), gathering)
        kind = ProjectKind.CODE
    else:
        kind = _read_file(path.absolute(), gathering, wanted)
    _read_named_folders(gathering)
    if wanted and kind is not ProjectKind.PYPROJECT:
        file, names = printable(path.name), ", ".join(sorted(map(printable, wanted)))
        gathering.tell(_("{file} has no optional parts, so these were left out: {names}.", file=file, names=names))
    return _whole(gathering, kind, name)


def read_text(name: str, text: str | bytes, *, extras: Iterable[str] = (), trusted: Iterable[str] = ()) -> Project:
    """Read a file that came alone, such as an upload or standard input; its name tells the kind ("" for requirements).

    What it names beside itself cannot be read and is told. Raises `BadInput` as `read_project` does.
    """
    gathering, source = Gathering(tuple(trusted)), Source(name=name or "requirements.txt")
    if len(text) > FILE_LIMIT:
        raise too_long(source.name)
    if name:
        gathering.paths[Path(name)] = None
    text = decoded(text, source.name) if isinstance(text, bytes) else tidied(text)
    kind = _kind(source.name)
    if kind is ProjectKind.CODE:
        code, tree = Code(), parsed(text)
        if tree is None:
            code.unreadable.append(source.label)
        else:
            code.add(imports_of(tree), source.label)
        take_imports(code, gathering)
    elif kind is ProjectKind.PYPROJECT:
        take_pyproject(text, source, gathering, frozenset(extras))
    else:
        _taker(source.name, kind)(text, source, gathering)
    return _whole(gathering, kind, name)


def _whole(gathering: Gathering, kind: ProjectKind, name: str) -> Project:
    """Return what was gathered; raise `BadInput` for a page or a manual that was taken for a list."""
    if kind is ProjectKind.REQUIREMENTS and gathering.unread > len(gathering.requires):
        raise refused(name, _("most of its lines are no requirements"))
    return gathering.project(kind)


def joined(projects: Iterable[Project]) -> Project | None:
    """Join what several names gave into one project, its kind the first one's; None for no project."""
    every = list(projects)
    if not every:
        return None
    pythons = SpecifierSet()
    for one in every:
        pythons &= SpecifierSet(one.pythons)
    required = {line for one in every for line in one.requires}
    return Project(
        kind=every[0].kind,
        pythons=str(pythons),
        guesses=tuple(
            {
                one.distribution: one for each in every for one in each.guesses if one.distribution not in required
            }.values()
        ),
        left_out=tuple(dict.fromkeys(line for one in every for line in one.left_out)),
        **{
            field: tuple(dict.fromkeys(line for one in every for line in getattr(one, field)))
            for field in ("paths", "requires", "constraints", "overrides", "indexes", "links")
        },
    )


def _kind(name: str) -> ProjectKind:
    """Return what a file is by its name; one of another name is taken for a list of requirements."""
    file = name.replace("\\", "/").rpartition("/")[2].lower()
    if file == "pyproject.toml":
        return ProjectKind.PYPROJECT
    if file in _LOCKS or (file.startswith("pylock.") and file.endswith(".toml")):
        return ProjectKind.LOCK
    kinds = {
        ".yml": ProjectKind.CONDA,
        ".yaml": ProjectKind.CONDA,
        ".ipynb": ProjectKind.NOTEBOOK,
        ".py": ProjectKind.CODE,
    }
    return kinds.get(Path(file).suffix, ProjectKind.REQUIREMENTS)


def _taker(name: str, kind: ProjectKind) -> _Taker:
    takers: dict[ProjectKind, _Taker] = {
        ProjectKind.CONDA: take_environment,
        ProjectKind.LOCK: _LOCKS.get(Path(name).name, take_pylock),
        ProjectKind.NOTEBOOK: take_notebook,
        ProjectKind.REQUIREMENTS: take_lines,
    }
    return takers[kind]


def _read_file(path: Path, gathering: Gathering, extras: frozenset[str]) -> ProjectKind:
    """Read one file by its kind; raise `BadInput` where it declares nothing."""
    kind = _kind(path.name)
    if path.name in {"pyproject.toml", "setup.py", "setup.cfg"}:
        if not _declares(path, gathering, extras):
            raise BadInput(
                _("{file} does not say what the project needs.", file=printable(path)),
                hint=_("Name its folder, or the file that lists the packages."),
            )
        return ProjectKind.PYPROJECT
    if kind is ProjectKind.REQUIREMENTS:
        read_requirements(path, gathering)
    else:
        text = file_text(path)
        gathering.paths[path.resolve()] = None
        _taker(path.name, kind)(text, source_of(path), gathering)
    return kind


def _declares(path: Path, gathering: Gathering, extras: frozenset[str]) -> bool:
    reader = {"setup.py": read_setup_script, "setup.cfg": read_setup_cfg}.get(path.name, read_pyproject)
    return reader(path, gathering, extras)


def _read_folder(folder: Path, gathering: Gathering, extras: frozenset[str]) -> ProjectKind:
    """Read the best file of a folder, else the imports of its code."""
    for path in _candidates(folder):
        if path.name in {"pyproject.toml", "setup.py", "setup.cfg"}:
            if _declares(path, gathering, extras):
                return ProjectKind.PYPROJECT
        else:
            return _read_file(path, gathering, extras)
    has_code = read_code(folder, gathering)
    notebooks = sorted(folder.glob("*.ipynb"))[:_NOTEBOOKS] if not has_code else []
    for path in notebooks:
        _read_file(path, gathering, extras)
    if not (has_code or notebooks):
        raise BadInput(
            _("{folder} holds no file that lists packages, and no code.", folder=printable(folder)),
            hint=_("Name the folder of the project, or the file that lists what it needs."),
        )
    return ProjectKind.NOTEBOOK if notebooks else ProjectKind.CODE


def _candidates(folder: Path) -> list[Path]:
    """List the files of a folder that may list packages, the best first; requirements_versions.txt is one, too."""
    named = [folder / name for name in _BEST_FIRST]
    others = sorted(folder.glob("require*.txt")) + sorted(folder.glob("requirements/*.txt"))
    first = named.index(folder / "requirements.txt") + 1
    return [path for path in (*named[:first], *others[:1], *named[first:]) if is_file(path)]


def _read_named_folders(gathering: Gathering) -> None:
    """Read what the folders of code declare that the files name (`-e .`), and those that they name in turn."""
    done: set[Path] = set()
    while left := [folder for folder in gathering.folders if folder not in done]:
        folder = left[0]
        done.add(folder)
        for name in ("pyproject.toml", "setup.cfg", "setup.py"):
            path = folder / name
            if (
                is_file(path)
                and path.resolve() not in gathering.paths
                and _declares(path, gathering, gathering.folders[folder])
            ):
                break
