"""What a project needs from an environment, as its own files say it; nothing of the project is run to learn it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from enum import Enum
from pathlib import Path

from assistant.api import Message, Record, Text, _, ngettext
from assistant.api.texts import printable

_FILES = 5  # of a project that are named in a line
_LONGEST_NAME = 40  # chosen: a path on Windows has 260 characters in all


class ProjectKind(Enum):
    """What the needs of a project were read from."""

    REQUIREMENTS = "requirements"
    PYPROJECT = "pyproject"
    CONDA = "conda"
    NOTEBOOK = "notebook"
    CODE = "code"


class Guess(Record, frozen=True):
    """A distribution taken for an import that the code has: `module` as it is imported, "cv2" or "google.protobuf".

    `others` are further distributions that provide it; `where` is the first place of the import, "train.py:12".
    """

    module: str
    distribution: str
    others: tuple[str, ...] = ()
    where: str = ""


class Project(Record, frozen=True):
    """The needs of a project: `requires` are PEP 508 lines, markers and extras included, to be installed.

    `constraints` bound packages that something else brings, `overrides` stand in for what packages say themselves,
    `pythons` is a specifier of Python versions (">=3.10,<3.13", "" for any), `indexes` and `links` are further package
    indexes and folders or pages of wheels that the files name, and `builds` those of torch by its own indexes (cu128).
    `guesses` are requirements that imports stand for; what could not be taken along is told in `left_out`, a sentence
    each, and `paths` are the files that were read.
    """

    kind: ProjectKind
    paths: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    pythons: str = ""
    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    guesses: tuple[Guess, ...] = ()
    left_out: tuple[Text, ...] = ()

    @property
    def sure(self) -> tuple[Guess, ...]:
        """The guesses of imports that one package alone provides: they are taken where nobody is asked."""
        return tuple(guess for guess in self.guesses if not guess.others)

    @property
    def name(self) -> str:
        """What its environment is called: by its folder, notebook or script, and its place, since many are "app"."""
        first = Path(self.paths[0]) if self.paths else Path("project")
        named = first if self.kind in (ProjectKind.NOTEBOOK, ProjectKind.CODE) or not self.paths else first.parent
        place = str(named) if self.paths else "".join(self.requires)
        plain = re.sub(r"[^a-z0-9.]+", "-", named.stem.lower()).strip("-.")[:_LONGEST_NAME] or "project"
        return f"{plain}-{hashlib.sha256(place.encode()).hexdigest()[:4]}"


def project_summary(project: Project) -> Message:
    """Say in one line how much was read of a project, and from which files."""
    files = ", ".join(printable(Path(path).name) for path in project.paths[:_FILES]) or "-"
    return ngettext(
        "{count} requirement was read from {files}.",
        "{count} requirements were read from {files}.",
        len(project.requires),
        files=files + (", …" if len(project.paths) > _FILES else ""),
    )


def guessed(guesses: Iterable[Guess]) -> tuple[Text, ...]:
    """Return the packages that imports stand for, each with its import and what else it may be."""
    text = _("{package} ({module}; or {others})")
    return tuple(
        text.format(package=one.distribution, module=one.module, others=", ".join(one.others))
        if one.others
        else f"{one.distribution} ({one.module})"
        for one in guesses
    )


def project_lines(project: Project, agreed: Collection[Guess]) -> list[tuple[bool, Text]]:
    """Say what was taken for a project's imports, and what was left out; each with whether it was taken."""
    left = [guess for guess in project.guesses if guess not in agreed]
    taken = _("Packages chosen for the code's imports: {packages}.", packages=guessed(agreed))
    told = _("Left out, though the code seems to import them: {packages}.", packages=guessed(left), option="--pin")
    both = [*([(True, taken)] if agreed else []), *([(False, told)] if left else [])]
    return [*both, *((False, line) for line in project.left_out)]
