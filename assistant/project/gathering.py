"""What has been gathered of a project's needs: each line that its files hold is judged here, and only here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from assistant.catalog import load_catalog
from assistant.catalog.companions import carried_by_torch_index
from assistant.catalog.indexes import known_index, mirrors_pypi
from assistant.i18n import Message, Text, _, ngettext
from assistant.model.address import index_fault
from assistant.model.errors import BadInput
from assistant.model.project import Guess, Project, ProjectKind
from assistant.model.visible import printable, visible
from assistant.privacy import Policy, redact, without_credentials
from assistant.project.source import Source, is_file, is_folder

MOST_LINES = 10_000  # chosen: the longest list seen has 400, and a lock file holds some thousand packages
Into = Literal["requires", "constraints", "overrides"]
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz")
# pip wants a space before the semicolon of an address and its authors forget it: https://host/a.whl; sys_platform == …
_CLOSE_MARKER = re.compile(r"(\.(?:whl|zip|tar\.gz|tgz)(?:#\S*?)?)\s*;\s*")
_VERSION_CONTROL = re.compile(r"(?:^|@\s*)(?:(?:git|hg|svn|bzr)\+[a-z]+:|git(?:://|@))", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:[\w.-]+\s*(?P<extras>\[[^\]]*\])?\s*@\s*)?(?P<url>(?:https?://|ftp://|file:///)\S+?)(?:\s+;\s*(?P<marker>.+))?",
    re.IGNORECASE,
)
_WITH_EXTRAS = re.compile(r"(?P<path>.*?)(?:\[(?P<extras>[\w\s.,-]+)\])?")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")  # pip fills it in from the environment, such as a password of an index
_PYPI = re.compile(r"https?://pypi\.[a-z]{3}/simple/?")


class Gathering:
    """Gathers the needs of a project while its files are read; `trusted` are sources that the user agreed to.

    `folders` are folders of code that the files name, with the extras asked for, to be read after them; `unread` counts
    lines that are no requirement of any kind.
    """

    def __init__(self, trusted: tuple[str, ...] = ()) -> None:
        self.paths: dict[Path, None] = {}
        self.folders: dict[Path, frozenset[str]] = {}
        self.requires: dict[str, None] = {}
        self.guesses: dict[str, Guess] = {}
        self.hashed: set[str] = set()
        self.unread = 0
        self._lines = 0
        self._bounds: dict[Into, dict[str, None]] = {"requires": self.requires, "constraints": {}, "overrides": {}}
        self._pythons = SpecifierSet()
        self._indexes: dict[str, None] = {}
        self._links: dict[str, None] = {}
        self._told: dict[Message, None] = {}
        self._trusted = {address.rstrip("/") for address in trusted}

    def project(self, kind: ProjectKind) -> Project:
        """Return what was gathered."""
        return Project(
            kind=kind,
            paths=tuple(map(str, self.paths)),
            requires=tuple(self.requires),
            constraints=tuple(self._bounds["constraints"]),
            overrides=tuple(self._bounds["overrides"]),
            pythons=str(self._pythons),
            indexes=tuple(self._indexes),
            links=tuple(self._links),
            guesses=tuple(self.guesses.values()),
            left_out=(*self._told, *self._hashes()),
        )

    @property
    def names(self) -> frozenset[str]:
        """The canonical names of what is required so far."""
        return frozenset(canonicalize_name(Requirement(line).name) for line in self.requires)

    def tell(self, sentence: Message) -> None:
        """Keep a sentence about what could not be taken along, once."""
        self._told[sentence] = None

    def take(self, line: str, source: Source, into: Into = "requires") -> None:
        """Take a requirement as pip spells it: a name with versions, an address or a path."""
        self._lines += 1
        if self._lines > MOST_LINES:
            raise BadInput(
                _("The files list more than {count} requirements.", count=MOST_LINES),
                hint=_("Name the file that lists what the project needs."),
            )
        text = _CLOSE_MARKER.sub(r"\1 ; ", line.strip())
        if visible(text) != text:
            self.leave(text, _("it holds characters that cannot be seen"))
        elif _VARIABLE.search(text):
            self.leave(text, _("it needs a variable of your environment"))
        elif _VERSION_CONTROL.search(text):
            self.leave_source(text)
        elif address := _ADDRESS.fullmatch(text):
            self._take_address(text, address, into)
        elif _is_path(text):
            self.take_path(text, source)
        elif re.search(r"@\s*(?!https?://|file:///)[\w./~\\-]+", text.partition(";")[0]):
            self.leave(text, _("it names a place that is no plain address"))
        else:
            self._keep(text, into)

    def _keep(self, text: str, into: Into) -> None:
        """Keep a requirement in the words of the standard, which may hold what an escape in its marker stood for."""
        try:
            line = str(Requirement(text))
            Requirement(line)
        except InvalidRequirement:
            self.unread += 1
            self.leave(text, _("it is not a requirement that can be read"))
            return
        if visible(line) != line:
            self.leave(line, _("it holds characters that cannot be seen"))
        else:
            self._bounds[into][line] = None

    def _take_address(self, text: str, address: re.Match[str], into: Into) -> None:
        """Take a wheel by its address; what is no wheel would be built, which runs code."""
        url, marker = address["url"], address["marker"]
        file = re.split("[?#]", url, maxsplit=1)[0].rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
        if without_credentials(url) != url:
            self.leave(text, _("its address holds a password"))
        elif not file.endswith(".whl"):
            self.leave_source(text)
        elif name := _wheel_name(file):
            whole = f"{name}{address['extras'] or ''} @ {url}" + (f" ; {marker}" if marker else "")
            self._keep(whole, into)
        else:
            self.leave(text, _("its name is not that of a wheel"))

    def take_path(self, text: str, source: Source) -> None:
        """Take a path: a wheel as it is, a folder of code by what it declares; nothing of it is built."""
        found = _WITH_EXTRAS.fullmatch(text.strip("\"'"))
        path = source.beside(found["path"]) if found else None
        if found is None or path is None:
            self.leave(text, _("it cannot be reached from here"))
        elif is_file(path) and (name := _wheel_name(path.name)):
            self.requires[f"{name} @ {path.absolute().as_uri()}"] = None
        elif is_folder(path):
            extras = frozenset(filter(None, re.split(r"[\s,]+", found["extras"] or "")))
            self.folders[path.resolve()] = extras | self.folders.get(path.resolve(), frozenset())
            command = shlex.join(["pip", "install", "--no-deps", "-e", printable(found["path"])])
            self.tell(
                _(
                    "{path} is code of the project itself: what it declares is taken along; install it afterwards with "
                    "`{command}`.",
                    path=printable(text),
                    command=command,
                )
            )
        elif is_file(path):
            self.leave_source(text)
        else:
            self.leave(text, _("it is not there"))

    def leave_source(self, text: str) -> None:
        """Leave out what has to be built from source: that runs its author's code."""
        self.tell(
            _(
                "{line} is source code, which runs when it is built: it was left out. If you trust it, install it "
                "afterwards with `{command}`.",
                line=_shown(text),
                command=shlex.join(["pip", "install", _shown(text)]),
            )
        )

    def take_pythons(self, specifier: str) -> None:
        """Narrow the versions of Python by a specifier such as ">=3.10,<3.13"."""
        try:
            self._pythons &= SpecifierSet(specifier)
        except InvalidSpecifier:
            self.leave(f"Python {specifier}", _("it is not a range of versions that can be read"))

    def allows(self, url: str) -> bool:
        """Return whether packages may come from an index that a file names: it is known, or the user trusts it."""
        plain = without_credentials(url).rstrip("/")
        known = known_index(plain, load_catalog()) or mirrors_pypi(plain, load_catalog())
        return known or _PYPI.fullmatch(plain) is not None or plain in self._trusted

    def leave(self, line: str, reason: Text) -> None:
        """Leave a line out, and say why."""
        self.tell(_("{line} was left out: {reason}.", line=_shown(line), reason=reason))

    def take_index(self, url: str) -> None:
        """Take a further index where the user trusts it; torch's own is the plan's to choose."""
        shown, plain = _shown(without_credentials(url)), without_credentials(url).rstrip("/")
        if _PYPI.fullmatch(plain):
            return
        if known_index(plain, load_catalog()):
            self.tell(_("The index {url} was not taken from the file: the plan chooses the build of torch.", url=shown))
        elif mirrors_pypi(plain, load_catalog()):
            self.tell(
                _("The mirror {url} was not taken from the file: your own settings say where PyPI is.", url=shown)
            )
        elif fault := index_fault(url):
            self.leave(url, fault)
        elif plain != url.rstrip("/"):
            self.leave(url, _("its address holds a password"))
        elif plain in self._trusted:
            self._indexes[url] = None
        else:
            self.tell(
                _(
                    "The index {url} is not known, so nothing is taken from it; name it yourself if you trust it.",
                    url=shown,
                    option=f"--trust-index {shown}",
                )
            )

    def take_links(self, place: str, source: Source) -> None:
        """Take a page or folder of wheels where the user trusts it."""
        path = None if "://" in place else source.beside(place)
        where = str(path) if path else place
        if "://" in place and known_index(without_credentials(place), load_catalog()):
            self.take_index(place)
        elif where.rstrip("/") in self._trusted and without_credentials(where) == where:
            self._links[where] = None
        else:
            shown = _shown(without_credentials(where))
            self.tell(
                _(
                    "The wheels at {place} are not known, so none is taken; name the place yourself if you trust it.",
                    place=shown,
                    option=f"--find-links {shown}",
                )
            )

    def _hashes(self) -> tuple[Message, ...]:
        """Say what becomes of hashes: an installation holds files to the hashes that their index states."""
        if not self.hashed:
            return ()
        general = ngettext(
            "The hashes of {count} package were not taken along: each file is held to the hash that its index states.",
            "The hashes of {count} packages were not taken along: each file is held to the hash that its index states.",
            len(self.hashed),
        )
        family = sorted(name for name in self.hashed if carried_by_torch_index(name))
        bound = _(
            "The hashes of {names} name the builds of one index; the plan may take another build of the same version.",
            names=", ".join(family),
        )
        return (general, bound) if family else (general,)


def _wheel_name(file: str) -> str | None:
    """Return the name of the distribution in a wheel, None for a file that is no wheel."""
    try:
        return str(parse_wheel_filename(file)[0])
    except (InvalidWheelFilename, ValueError):
        return None


def _is_path(text: str) -> bool:
    """Return whether a requirement is a path: it begins as one does, or is an archive without an address."""
    bare = text.partition(";")[0].strip()
    return (
        bare in {".", ".."}
        or bare.startswith(("./", "../", ".\\", "..\\", "/", "~/", ".["))
        or re.match(r"[A-Za-z]:[\\/]", bare) is not None
        or bare.endswith(_ARCHIVES)
        or ("@" not in bare and ("/" in bare or "\\" in bare))
    )


def _shown(text: str) -> str:
    """Make a line fit to stand in a sentence: short, visible, and without what must stay secret."""
    return printable(redact(text, Policy.USABLE))
