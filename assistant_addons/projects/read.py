"""A project by the names that the user gives: who reads each file, which file of a folder is best, what to ask for.

The core finds `read_project`, `agreed` and `with_project_of` here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.specifiers import SpecifierSet

from assistant.api import BadInput, _, replace
from assistant.api.planning import ProjectSummary
from assistant.api.records import Request
from assistant.api.texts import as_typed
from assistant_addons.projects.conda import take_environment
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.imports import read_code, take_imports, take_notebook, take_script
from assistant_addons.projects.project import Guess, Project, ProjectKind, guessed, project_lines, project_summary
from assistant_addons.projects.pyproject import take_pyproject
from assistant_addons.projects.requirements import take_lines
from assistant_addons.projects.source import (
    FILE_LIMIT,
    NotRead,
    Source,
    at_home,
    decoded,
    file_text,
    is_file,
    is_folder,
    not_read,
    real,
    refused,
    shown,
    source_of,
    too_long,
    unread_names,
)

# In a folder the first that gives something counts; of other lists those that are not for developers' tools alone.
_BEST_FIRST = ("pyproject.toml", "requirements.txt", "environment.yml", "environment.yaml")
_OF_DEVELOPERS = re.compile(r"(?:^|[-_.])(?:dev|tests?|testing|docs?|lint|ci|build)(?:[-_.]|$)", re.IGNORECASE)
_OF_SETUPTOOLS = ("setup.cfg", "setup.py")
_NOTEBOOKS = 20  # of a folder that are read; chosen
# What `conda list` writes with --explicit and --export: a line "@EXPLICIT", lines "numpy=1.26.4=py311h64a7726_0".
_BY_CONDA = re.compile(r"(?m)^@EXPLICIT\s*$|^# \$ conda create --name|^[\w.-]{1,99}=[\w.!+]{1,99}=[\w.]{1,99}\s*$")


def read_project(*names: str | bytes, extras: Iterable[str] = (), trusted: Iterable[str] = ()) -> Project:
    """Read what files and folders of a project need; nothing of it is run.

    A name may also be the bytes of a list of requirements that came alone, as from standard input; what it names beside
    itself cannot be read and is noted. `extras` are optional parts that the project offers, `trusted` the indexes and
    pages of wheels that the user agreed to. Raises `BadInput` for what is not there, cannot be read, or says nothing
    about packages.
    """
    gathering = Gathering(extras, trusted)
    kinds = [_read(name, gathering) for name in names]
    done = set[tuple[Path, frozenset[str]]]()
    while left := set(gathering.folders.items()) - done:  # folders of code that the files name (`-e .`), and so on
        done |= left
        for folder, parts in sorted(left):
            _read_named_folder(folder, parts, gathering)
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
        hint = _("Download it first, then name the file.")
        raise BadInput(_("{file} is on the network.", file=shown(name)), hint=hint)
    path = at_home(name).absolute()
    if is_folder(path):
        return _read_folder(path, gathering)
    if kind := _read_file(path, gathering, gathering.extras):
        return kind
    raise BadInput(
        _("{file} does not say what the project needs.", file=shown(path)),
        hint=_("Name its folder, or the file that lists the packages."),
    )


def _take_list(text: str, source: Source, gathering: Gathering) -> None:
    """Take a list of requirements; raise `BadInput` for one of conda's, a page or a manual taken for one."""
    if _BY_CONDA.search(text) and (fault := not_read("conda list", source.name)):
        raise fault
    valid, invalid = gathering.valid, gathering.invalid
    take_lines(text, source, gathering)
    if gathering.invalid - invalid > gathering.valid - valid:
        raise refused(source.name, _("most of its lines are not requirements"))


# By name or suffix what a file is, and what takes its text; False from that says that the text declares nothing.
_READERS: dict[str, tuple[ProjectKind, Callable[[str, Source, Gathering], bool | None]]] = {
    "pyproject.toml": (ProjectKind.PYPROJECT, take_pyproject),
    ".ipynb": (ProjectKind.NOTEBOOK, take_notebook),
    ".py": (ProjectKind.CODE, take_script),
    ".yaml": (ProjectKind.CONDA, take_environment),
    ".yml": (ProjectKind.CONDA, take_environment),
}
_LIST = (ProjectKind.REQUIREMENTS, _take_list)  # what a file of another name is taken for


def _read_file(path: Path, gathering: Gathering, extras: frozenset[str]) -> ProjectKind | None:
    """Read one file by its name, once; return what it is, or None if it declares nothing."""
    name = path.name.lower()
    kind, take = _READERS.get(name) or _READERS.get(Path(name).suffix) or _LIST
    if real(path) in gathering.paths:
        return kind
    if fault := not_read(name, str(path)):
        if name in _OF_SETUPTOOLS and "install_requires" not in file_text(path):
            return None  # it is for building alone, or for other tools
        raise fault
    text = file_text(path)
    gathering.paths[real(path)] = None
    if take(text, source_of(path, extras), gathering) is False:
        del gathering.paths[real(path)]
        return None
    return kind


def _read_folder(folder: Path, gathering: Gathering) -> ProjectKind:
    """Read the best file of a folder that gives something, else the imports of its code and notebooks.

    Imports say nothing of versions, so they do not stand in for the list of another tool: `NotRead` is raised then.
    """
    kinds, faults, before = list[ProjectKind](), list[BadInput](), gathering.gains
    for path in _candidates(folder):
        with gathering.attempt() as failed:
            if kind := _read_file(path, gathering, gathering.extras):
                kinds.append(kind)
        faults += failed
        if gathering.gains > before:
            return kinds[-1]
    if not kinds and (fault := next((one for one in faults if isinstance(one, NotRead)), None)):
        raise fault
    code = [ProjectKind.CODE] if read_code(folder, gathering) else []
    notebooks = [ProjectKind.NOTEBOOK] if _read_notebooks(folder, gathering) else []
    for kind in (*code, *notebooks, *kinds):
        return kind
    nothing = BadInput(
        _("{folder} contains neither a file that lists packages nor any code.", folder=shown(folder)),
        hint=_("Name the folder of the project, or the file that lists what it needs."),
    )
    raise next(iter(faults), nothing)


def _candidates(folder: Path) -> list[Path]:
    """List the files of a folder that may list packages, the best first; requirements_versions.txt is one, too."""
    lists = [*sorted(folder.glob("require*.txt")), *sorted(folder.glob("requirements/*.txt"))]
    wanted = [path for path in lists if not _OF_DEVELOPERS.search(path.stem)]
    first = [folder / name for name in _BEST_FIRST]
    unread = [*(folder / name for name in unread_names()), *sorted(folder.glob("pylock.*.toml"))]
    return [path for path in dict.fromkeys((*first[:2], *wanted, *first[2:], *unread)) if is_file(path)]


def _read_notebooks(folder: Path, gathering: Gathering) -> bool:
    """Read the notebooks that lie in a folder; return whether there are any."""
    notebooks = sorted(folder.glob("*.ipynb"))
    for path in notebooks[:_NOTEBOOKS]:
        with gathering.attempt():
            _read_file(path, gathering, gathering.extras)
    if len(notebooks) > _NOTEBOOKS:
        text = _("Only the first {count} notebooks in {folder} were read; name others with -r.")
        gathering.note(text.format(count=_NOTEBOOKS, folder=shown(folder.name)))
    return bool(notebooks)


def _read_named_folder(folder: Path, extras: frozenset[str], gathering: Gathering) -> None:
    """Read what a folder of code declares, anew where it was read without these parts; note what cannot be read."""
    before = gathering.gains
    for path in (folder / name for name in ("pyproject.toml", *_OF_SETUPTOOLS)):
        if real(path) in gathering.paths and not extras - gathering.found:
            return
        gathering.paths.pop(real(path), None)
        if is_file(path) and gathering.gains == before:
            with gathering.attempt():
                _read_file(path, gathering, extras)
    gathering.note_missing(extras)


def with_project(request: Request, project: Project, agreed: Iterable[Guess]) -> Request:
    """Return a request that asks for all that a project requires, too; what the user asks for comes first.

    Of the project's guesses those are required that the user agreed to.
    """
    names = (guess.distribution for guess in agreed)
    return replace(
        request,
        pins=tuple(dict.fromkeys((*request.pins, *project.requires, *names))),
        constraints=(*request.constraints, *project.constraints),
        overrides=(*request.overrides, *project.overrides),
        pythons=str(SpecifierSet(request.pythons) & SpecifierSet(project.pythons)),
        indexes=(*request.indexes, *project.indexes),
        links=(*request.links, *project.links),
        builds=(*request.builds, *project.builds),
        name=request.name or project.name,
    )


def with_project_of(request: Request, trusted: Iterable[str]) -> tuple[Request, ProjectSummary]:
    """Read the project that a request names; return the request for all that is sure, and what was read, in words.

    Raises `BadInput` for a project that cannot be read.
    """
    project = read_project(request.project, trusted=trusted)
    lines = tuple(line for _taken, line in project_lines(project, project.sure))
    return with_project(request, project, project.sure), ProjectSummary(text=project_summary(project), lines=lines)


def agreed(
    request: Request, project: Project, *, asks: bool = False, all_taken: bool = False, quiet: bool = False
) -> Request:
    """Show on the terminal what was read, and return the request with it; the user agrees to packages for imports.

    Where nobody can be asked, only imports that a single package provides are taken; with `all_taken` every guess, as
    a plan changes nothing.
    """
    from assistant.api.terminal import ask, echo  # noqa: PLC0415 - the wizard needs none of it

    taken = project.guesses
    if not quiet:
        echo(project_summary(project))
    if taken and not all_taken:
        if asks and not quiet and sys.stdin.isatty():
            text = _("Install these packages, which the code seems to import: {packages}?", packages=guessed(taken))
            taken = taken if ask(text, default=True) else ()
        else:
            taken = project.sure
    for included, line in () if quiet else project_lines(project, taken):
        echo(f"    {'·' if included else '!'} {as_typed(line)}")
    return with_project(request, project, taken)
