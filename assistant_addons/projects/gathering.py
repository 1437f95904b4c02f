"""What has been gathered of a project's needs: each line that its files hold is judged here, and only here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from assistant.api import BadInput, Message, Text, _, sentences
from assistant.api.planning import index_fault, is_known_index, is_pypi, is_pypi_mirror, load_catalog
from assistant.api.texts import Policy, command_line, redact, visible, without_credentials
from assistant_addons.projects.project import Guess, Project, ProjectKind
from assistant_addons.projects.source import (
    LONGEST_LINE,
    VERSION_CONTROL,
    Source,
    address_of,
    is_file,
    is_file_name,
    is_folder,
    is_path,
    listed,
    marked,
    path_of,
    real,
    shown,
    wheel_of,
)

MOST_LINES = 10_000  # chosen: the longest list seen has 400, and a lock file holds some thousand packages
Into = Literal["requires", "constraints", "overrides"]
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")  # pip fills it in from the environment, such as a password of an index
# What `pip freeze` writes in conda's environments: six @ file:///croot/six_1644875935023/work, the folder and the
# milliseconds of conda-build; some name the wheel: …/numpy_1708638617955/work/dist/numpy-1.26.4-cp310-….whl#sha256=…
_BUILT_BY_CONDA = re.compile(r"_\d{13}/work(?:/|$)")
_WITH_EXTRAS = re.compile(r"(?P<path>.*?)(?:\[(?P<extras>[\w\s.,-]+)\])?", re.DOTALL)


class Gathering:
    """Gathers the needs of a project while its files are read, in which the user wants `extras`.

    `trusted` are sources that the user agreed to. `folders` are folders of code that the files name, with the extras
    asked for, to be read after them; `found` are the wanted extras that a file offers. Of all `lines`, `valid` counts
    those that are requirements, and `invalid` those that are none of any kind. `needed` and `optional` are the modules
    that code imports, each with the first place of it, `own_modules` those of the project itself.
    """

    def __init__(self, extras: Iterable[str] = (), trusted: Iterable[str] = ()) -> None:
        self.extras = frozenset(map(canonicalize_name, extras))
        self.paths: dict[Path, None] = {}
        self.folders: dict[Path, frozenset[str]] = {}
        self.bounds: dict[Into, dict[str, None]] = {"requires": {}, "constraints": {}, "overrides": {}}
        self.lines = self.valid = self.invalid = 0
        self.found: set[str] = set()
        self.needed: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        self.unreadable: dict[str, None] = {}
        self.own_modules: set[str] = set()
        self.guesses: dict[str, Guess] = {}
        self._pythons = SpecifierSet()
        self._indexes: dict[str, None] = {}
        self._builds: dict[str, None] = {}
        self._links: dict[str, None] = {}
        self._notes: dict[Message, None] = {}
        self._offers: dict[str, set[str]] = {}
        self._built_by_conda: dict[str, None] = {}
        self._trusted = {address.rstrip("/") for address in trusted}

    def project(self, kind: ProjectKind) -> Project:
        """Return what was gathered; raise `BadInput` for a wanted extra that the files cannot have."""
        missing = sorted(self.extras - self.found)
        if missing and self._offers:
            offered = ", ".join(map(shown, sorted(set().union(*self._offers.values()))))
            text = _("{file} has no optional part (extra) called '{name}'.")
            raise BadInput(
                text.format(file=", ".join(self._offers), name=shown(missing[0])),
                hint=_("It offers: {names}.", names=offered or "-"),
            )
        self.note_missing(self.extras)
        self.note_names(
            _("Conda built these packages on another computer; they are taken from PyPI: {names}."),
            self._built_by_conda,
        )
        return Project(
            kind=kind,
            paths=tuple(map(str, self.paths)),
            requires=tuple(self.bounds["requires"]),
            constraints=tuple(self.bounds["constraints"]),
            overrides=tuple(self.bounds["overrides"]),
            pythons=str(self._pythons),
            indexes=tuple(self._indexes),
            links=tuple(self._links),
            builds=tuple(self._builds),
            guesses=tuple(self.guesses.values()),
            left_out=tuple(self._notes),
        )

    @property
    def names(self) -> frozenset[str]:
        """The canonical names of what is required so far."""
        return frozenset(canonicalize_name(Requirement(line).name) for line in self.bounds["requires"])

    @property
    def gains(self) -> int:
        """How many requirements were read so far, one that came twice among them, and folders that have some."""
        return self.valid + len(self.folders)

    @contextmanager
    def attempt(self) -> Iterator[list[BadInput]]:
        """Take what the block gathers, or nothing of it where it raises `BadInput`, which is noted and listed."""
        before, failed = deepcopy(vars(self)), list[BadInput]()
        try:
            yield failed
        except BadInput as error:
            vars(self).update(before)
            self.note_fault(error)
            failed.append(error)

    def note(self, sentence: Message) -> None:
        """Keep a sentence about what could not be taken along, once, and without secrets."""
        self._notes[redact(sentence, Policy.USABLE)] = None

    def note_names(self, sentence: Message, names: Iterable[str]) -> None:
        """Note a sentence about {names}, if there are any."""
        if every := listed(names):
            self.note(sentence.format(names=every))

    def note_fault(self, error: BadInput) -> None:
        """Note why a file is not read, and the next step."""
        self.note(sentences((error.message, error.hint)))

    def note_missing(self, extras: Iterable[str]) -> None:
        """Note wanted extras that no file was found to offer."""
        text = _("These optional parts were not found, so they were left out: {names}.")
        self.note_names(text, sorted(set(extras) - self.found))

    def skip(self, line: str, reason: Text) -> None:
        """Leave a line out, and note why."""
        self.note(_("{line} was left out: {reason}.", line=shown(line), reason=reason))

    def skip_source(self, text: str) -> None:
        """Leave out what has to be built from source: that runs its author's code."""
        sentence = _(
            "{line} was left out: it is source code, which runs when it is built. If you trust it, install it "
            "afterwards with `{command}`."
        )
        self.note(sentence.format(line=shown(text), command=command_line(["pip", "install", shown(text)])))

    def take(self, line: str, source: Source, into: Into = "requires") -> None:
        """Take a requirement as pip spells it: a name with versions, an address or a path."""
        self.lines += 1
        if self.lines > MOST_LINES:
            raise BadInput(
                _("The files list more than {count} requirements.", count=MOST_LINES),
                hint=_("Name the file that lists what the project needs."),
            )
        text = line.strip()
        if len(line) > LONGEST_LINE:
            self.skip(line[:LONGEST_LINE], _("it is too long"))
        elif visible(text) != text:
            self.skip(text, _("it contains invisible characters"))
        elif _VARIABLE.search(text):
            self.skip(text, _("it needs an environment variable"))
        elif VERSION_CONTROL.search(text):
            self.skip_source(text)
        elif address := address_of(text):
            self._take_address(text, address, source, into)
        elif is_file_name(text, source):
            self.skip(text, _("it is the name of a file, which -r would read"))
        elif is_path(text):
            self.take_path(text, source, into)
        elif re.search(r"@\s*(?!https?://|file:///)[\w./~\\-]+", text.partition(";")[0]):
            self.skip(text, _("its address is not a plain one"))
        else:
            self._keep(text, into)

    def _keep(self, text: str, into: Into) -> None:
        """Keep a requirement in the words of the standard, which may hold what an escape in its marker stood for."""
        try:
            line = str(Requirement(text))
            Requirement(line)
        except InvalidRequirement:
            self.invalid += 1
            self.skip(text, _("it is not a valid requirement"))
            return
        if visible(line) != line:
            self.skip(line, _("it contains invisible characters"))
        else:
            self.valid += 1
            self.bounds[into][line] = None

    def _take_address(self, text: str, address: re.Match[str], source: Source, into: Into) -> None:
        """Take a wheel by its address; what is no wheel would be built, which runs code.

        What conda built on another computer is taken from PyPI; what else lay there may be nobody's but its owner's.
        """
        url, extras, marker = address["url"], address["extras"] or "", address["marker"] or ""
        place = re.split("[?#]", url, maxsplit=1)[0]
        wheel = wheel_of(place.rpartition("/")[2].replace("%2B", "+").replace("%2b", "+"))
        here = path_of(place)
        if without_credentials(url) != url:
            self.skip(text, _("its address contains a password"))
        elif here is None and url.lower().startswith("file:"):
            self.skip(text, _("its address is not a plain one"))
        elif here and not (is_file(here) or is_folder(here)):
            if not (_BUILT_BY_CONDA.search(text) and address["name"]):
                self.skip(text, _("it lies on another computer"))
                return
            requirement = marked(f"{address['name']}{extras}{f'=={wheel[1]}' if wheel else ''}", marker)
            self._built_by_conda[requirement] = None
            self._keep(requirement, into)
        elif wheel:
            self._keep(marked(f"{wheel[0]}{extras} @ {url}", marker), into)
        elif here:
            self.take_path(marked(f"{here}{extras}", marker), source, into)
        elif place.endswith(".whl"):
            self.skip(text, _("its name is not a valid name of a wheel"))
        else:
            self.skip_source(text)

    def take_path(self, text: str, source: Source, into: Into = "requires") -> None:
        """Take a path: a wheel as it is, a folder of code by what it declares; nothing of it is built."""
        place, _semicolon, marker = text.partition(";")
        found = _WITH_EXTRAS.fullmatch(place.strip().strip("\"'"))
        path = source.beside(found["path"]) if found else None
        if found is None or path is None:
            self.skip(text, _("it cannot be reached from here"))
        elif is_file(path) and (wheel := wheel_of(path.name)):
            extras = f"[{found['extras']}]" if found["extras"] else ""
            self._keep(marked(f"{wheel[0]}{extras} @ {path.absolute().as_uri()}", marker), into)
        elif is_folder(path) and into == "requires" and not marker:
            parts = frozenset(map(canonicalize_name, filter(None, re.split(r"[\s,]+", found["extras"] or ""))))
            self.folders[real(path)] = parts | self.folders.get(real(path), frozenset())
            sentence = _(
                "{path} is the project's own code: what its pyproject.toml declares is included; install the code "
                "afterwards with `{command}`."
            )
            command = command_line(["pip", "install", "--no-deps", "-e", shown(found["path"])])
            self.note(sentence.format(path=shown(text), command=command))
        elif is_file(path) or is_folder(path):
            self.skip_source(text)
        else:
            self.skip(text, _("it does not exist"))

    def take_pythons(self, specifier: str) -> None:
        """Narrow the versions of Python by a specifier such as ">=3.10,<3.13"."""
        try:
            self._pythons &= SpecifierSet(specifier if len(specifier) <= LONGEST_LINE else "too long")
        except InvalidSpecifier:
            self.skip(f"Python {specifier}", _("it is not a valid range of versions"))

    def offer(self, names: Iterable[str], taken: Iterable[str], source: Source, *, whole: bool = True) -> None:
        """Note the optional parts of a file that were not taken; `whole` where these are all that it can have."""
        offered = {canonicalize_name(name): name for name in names}
        self.found.update(source.extras & offered.keys())
        if whole:
            self._offers.setdefault(source.label, set()).update(offered)
        text = _("{file} has optional parts, which were left out: {names}.", file=source.label, option="--extra")
        self.note_names(text, sorted(name for key, name in offered.items() if key not in taken))

    def allows(self, url: str) -> bool:
        """Return whether packages may come from an index that a file names: it is known, or the user trusts it."""
        plain, catalog = without_credentials(url).rstrip("/"), load_catalog()
        known = is_known_index(plain, catalog) or is_pypi(plain) or is_pypi_mirror(plain, catalog)
        return known or plain in self._trusted

    def take_index(self, url: str) -> None:
        """Take a further index where the user trusts it; of torch's own, whose choice is the plan's, the build."""
        plain = without_credentials(url).rstrip("/")
        safe = shown(without_credentials(url))
        if is_pypi(plain):
            return
        if is_known_index(plain, load_catalog()) and plain == url.rstrip("/"):
            self._builds[plain.rpartition("/")[2]] = None
        elif is_pypi_mirror(plain, load_catalog()):
            text = _("The file's mirror {url} is not used: your own settings say which mirror of PyPI is used.")
            self.note(text.format(url=safe))
        elif fault := index_fault(url):
            self.skip(url, fault)
        elif plain != url.rstrip("/"):
            self.skip(url, _("its address contains a password"))
        elif plain in self._trusted:
            self._indexes[url] = None
        else:
            text = _("The index {url} is not known, so nothing is taken from it; name it yourself if you trust it.")
            self.note(text.format(url=safe, option=f"--trust-index {safe}"))

    def take_links(self, place: str, source: Source) -> None:
        """Take a page or folder of wheels where the user trusts it."""
        path = None if "://" in place else source.beside(place)
        where = str(path) if path else place
        plain = without_credentials(where)
        if "://" in place and is_known_index(plain, load_catalog()):
            self.take_index(place)
        elif plain == where and where.rstrip("/") in self._trusted:
            self._links[where] = None
        else:
            text = _(
                "{place} is not a known source of wheels, so none is taken from there; name it yourself if you "
                "trust it."
            )
            self.note(text.format(place=shown(plain), option=f"--find-links {shown(plain)}"))
