"""What a project needs from an environment, as its own files say it; nothing of the project is run to learn it."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Text
from assistant.model.record import Record


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
    indexes and folders or pages of wheels that the files name. `guesses` are requirements that imports stand for; what
    could not be taken along is told in `left_out`, a sentence each, and `paths` are the files that were read.
    """

    kind: ProjectKind
    paths: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    pythons: str = ""
    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    guesses: tuple[Guess, ...] = ()
    left_out: tuple[Text, ...] = ()

    @property
    def sure(self) -> tuple[Guess, ...]:
        """The guesses of imports that one package alone provides: they are taken where nobody is asked."""
        return tuple(guess for guess in self.guesses if not guess.others)
