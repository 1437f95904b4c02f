"""A project by the names that the user gives: who reads each file, which file of a folder is best, what to ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from assistant.api import BadInput, _, replace
from assistant.api.records import Request
from assistant_addons.projects.code import read_code, take_imports, take_notebook, take_script
from assistant_addons.projects.conda import take_environment
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.project import Guess, Project, ProjectKind
from assistant_addons.projects.pyproject import take_pyproject
from assistant_addons.projects.requirements import take_lines
from assistant_addons.projects.source import (
    CONDA_LIST,
    FILE_LIMIT,
    NotRead,
    Source,
    at_home,
    declares_nothing,
    decoded,
    file_text,
    is_file,
    is_folder,
    names_of_unread,
    not_read,
    real,
    refused,
    shown,
    source_of,
    too_long,
)


def with_project(request: Request, project: Project, agreed: Iterable[Guess]) -> Request:
    """Return a request that asks for all that a project requires, too; what the user asks for comes first.

    Of the project's guesses those are required that the user agreed to.
    """
    guessed = (guess.distribution for guess in agreed)
    return replace(
        request,
        pins=tuple(dict.fromkeys((*request.pins, *project.requires, *guessed))),
        constraints=(*request.constraints, *project.constraints),
        overrides=(*request.overrides, *project.overrides),
        pythons=str(SpecifierSet(request.pythons) & SpecifierSet(project.pythons)),
        indexes=(*request.indexes, *project.indexes),
        links=(*request.links, *project.links),
    )


_DECLARING = ("pyproject.toml", "setup.cfg", "setup.py")
# In a folder the first that gives something counts.
_BEST_FIRST = ("pyproject.toml", "requirements.txt", "environment.yml", "environment.yaml")
# What `conda list` writes with --explicit and --export: a line "@EXPLICIT", lines "numpy=1.26.4=py311h64a7726_0".
_BY_CONDA = re.compile(r"(?m)^@EXPLICIT\s*$|^# \$ conda create --name|^[\w.-]{1,99}=[\w.!+]{1,99}=[\w.]{1,99}\s*$")
# Lists for those who work on the project, such as requirements-dev.txt or requirements/test.txt.
_OF_DEVELOPERS = re.compile(r"(?:^|[-_.])(?:dev|tests?|testing|docs?|lint|ci|build)(?:[-_.]|$)", re.IGNORECASE)
_NOTEBOOKS = 20  # of a folder that are read; chosen


class _Reader(NamedTuple):
    """What a file is, and what takes its text; False from `take` says that the text declares nothing."""

    kind: ProjectKind
    take: Callable[[str, Source, Gathering], bool | None]


def read_project(*names: str | bytes, extras: Iterable[str] = (), trusted: Iterable[str] = ()) -> Project:
    """Read what files and folders of a project need; nothing of it is run.

    A name may also be the bytes of a list of requirements that came alone, as from standard input; what it names beside
    itself cannot be read and is noted. `extras` are optional parts that the project offers, `trusted` the indexes and
    pages of wheels that the user agreed to. Raises `BadInput` for what is not there, cannot be read, or says nothing
    about packages.
    """
    gathering = Gathering(extras, trusted)
    kinds = [_read(name, gathering) for name in names]
    _read_named_folders(gathering)
    take_imports(gathering)
    return gathering.project(kinds[0])


def _read(name: str | bytes, gathering: Gathering) -> ProjectKind:
    """Read what one name stands for, and return what it was."""
    if isinstance(name, bytes):
        source = Source(name="stdin")
        if len(name) > FILE_LIMIT:
            raise too_long(source.name)
        _take_list(decoded(name, source.name), source, gathering)
        return ProjectKind.REQUIREMENTS
    if "://" in name:
        raise BadInput(
            _("{file} is on the network.", file=shown(name)), hint=_("Download it first, then name the file.")
        )
    path = at_home(name).absolute()
    if is_folder(path):
        return _read_folder(path, gathering)
    if not _read_file(path, gathering, gathering.extras):
        raise BadInput(
            _("{file} does not say what the project needs.", file=shown(path)),
            hint=_("Name its folder, or the file that lists the packages."),
        )
    return _reader(path.name).kind


def _reader(name: str) -> _Reader:
    """Return the reader of a file by its name; one of another name is taken for a list of requirements."""
    file = name.lower()
    return _READERS.get(file) or _READERS.get(Path(file).suffix) or _Reader(ProjectKind.REQUIREMENTS, _take_list)


def _take_list(text: str, source: Source, gathering: Gathering) -> None:
    """Take a list of requirements; raise `BadInput` for one of conda's, a page or a manual taken for one."""
    if _BY_CONDA.search(text) and (fault := not_read(CONDA_LIST, source.name)):
        raise fault
    kept, unread = gathering.kept, gathering.unread
    take_lines(text, source, gathering)
    if gathering.unread - unread > gathering.kept - kept:
        raise refused(source.name, _("most of its lines are not requirements"))


_READERS = {
    "pyproject.toml": _Reader(ProjectKind.PYPROJECT, take_pyproject),
    ".ipynb": _Reader(ProjectKind.NOTEBOOK, take_notebook),
    ".py": _Reader(ProjectKind.CODE, take_script),
    ".yaml": _Reader(ProjectKind.CONDA, take_environment),
    ".yml": _Reader(ProjectKind.CONDA, take_environment),
}


def _read_file(path: Path, gathering: Gathering, extras: frozenset[str]) -> bool:
    """Read one file by its name, once; return whether it declares anything."""
    if real(path) in gathering.paths:
        return True
    if fault := not_read(path.name, str(path)):
        if declares_nothing(path):
            return False
        raise fault
    text = file_text(path)
    gathering.paths[real(path)] = None
    declares = _reader(path.name).take(text, source_of(path, extras), gathering) is not False
    if not declares:
        del gathering.paths[real(path)]
    return declares


def _read_folder(folder: Path, gathering: Gathering) -> ProjectKind:
    """Read the best file of a folder that gives something, else the imports of its code and notebooks.

    Imports say nothing of versions, so they do not stand in for the list of another tool: `NotRead` is raised then.
    """
    kinds, faults, before = list[ProjectKind](), list[BadInput](), gathering.taken
    for path in _candidates(folder):
        with gathering.attempt() as failed:
            if _read_file(path, gathering, gathering.extras):
                kinds.append(_reader(path.name).kind)
        faults += failed
        if gathering.taken > before:
            return kinds[-1]
    if not kinds and (fault := next((one for one in faults if isinstance(one, NotRead)), None)):
        raise fault
    kinds = [*_read_imports(folder, gathering), *kinds]
    if not kinds:
        raise next(iter(faults), _nothing(folder))
    return kinds[0]


def _nothing(folder: Path) -> BadInput:
    return BadInput(
        _("{folder} contains neither a file that lists packages nor any code.", folder=shown(folder)),
        hint=_("Name the folder of the project, or the file that lists what it needs."),
    )


def _read_imports(folder: Path, gathering: Gathering) -> list[ProjectKind]:
    """Read the code of a folder and the notebooks that lie in it; return which of them there are."""
    code = [ProjectKind.CODE] if read_code(folder, gathering) else []
    notebooks = sorted(folder.glob("*.ipynb"))
    for path in notebooks[:_NOTEBOOKS]:
        with gathering.attempt():
            _read_file(path, gathering, gathering.extras)
    if len(notebooks) > _NOTEBOOKS:
        gathering.note(
            _(
                "Only the first {count} notebooks in {folder} were read; name others with -r.",
                count=_NOTEBOOKS,
                folder=shown(folder.name),
            )
        )
    return [*code, *([ProjectKind.NOTEBOOK] if notebooks else [])]


def _candidates(folder: Path) -> list[Path]:
    """List the files of a folder that may list packages, the best first; requirements_versions.txt is one, too."""
    lists = [*sorted(folder.glob("require*.txt")), *sorted(folder.glob("requirements/*.txt"))]
    wanted = [path for path in lists if not _OF_DEVELOPERS.search(path.stem)]
    first = [folder / name for name in _BEST_FIRST]
    unread = [*(folder / name for name in names_of_unread()), *sorted(folder.glob("pylock.*.toml"))]
    return [path for path in dict.fromkeys((*first[:2], *wanted, *first[2:], *unread)) if is_file(path)]


def _read_named_folders(gathering: Gathering) -> None:
    """Read what the folders of code declare that the files name (`-e .`), and those that they name in turn."""
    done: set[Path] = set()
    while left := [folder for folder in gathering.folders if folder not in done]:
        folder = left[0]
        done.add(folder)
        extras, before = gathering.folders[folder], gathering.taken
        declaring = [folder / name for name in _DECLARING if is_file(folder / name)]
        read_before = [real(path) for path in declaring if real(path) in gathering.paths]
        if read_before and not extras - gathering.found:
            continue
        for path in read_before:  # but not for these parts
            del gathering.paths[path]
        for path in declaring:
            if gathering.taken == before:
                with gathering.attempt():
                    _read_file(path, gathering, extras)
        gathering.note_missing(extras)
