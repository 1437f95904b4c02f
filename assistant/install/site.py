"""What an environment holds: by running its own Python, or by reading its files alone, as it may be a stranger's.

One that the assistant made also has a marker: a file with the plan that it was made for, and what it held then.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from email.parser import HeaderParser
from pathlib import Path
from typing import Literal, Self

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.catalog import carried_by_torch_index
from assistant.host.base import Host
from assistant.host.files import read_regular, write_atomically
from assistant.i18n import _
from assistant.install.guards import is_pinned_in_constraints
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment
from assistant.privacy import Policy, redact

MARKER = "assistant-environment.json"  # in every environment that the assistant made and finished

PACKAGES = ("lib/python*/site-packages", "lib64/python*/site-packages", "Lib/site-packages")
_FOLDER = re.compile(r"(?:python|pypy)(\d+\.\d+)(t?)")
_CONDA_PYTHON = re.compile(r"python-(\d+\.\d+\.\d+)-[^-]+\.json")
_TORCH_BUILD = re.compile(r"^(cuda|hip|xpu)\s*(?::[^=\n]*)?=\s*(None|'[^'\n]*'|\"[^\"\n]*\")", re.MULTILINE)
_INFO = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}


class Distribution(Record, frozen=True):
    """One installed distribution; `record` is the path of its RECORD, "" without one; `place` the folder of packages.

    `origin` is where it came from if not from an index: "dir_info", "vcs_info" or "archive_info", as PEP 610 has it.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    installer: str = ""
    record: str = ""
    place: str = ""
    origin: str = ""

    @property
    def canonical_name(self) -> str:
        """The name as indexes compare it, such as "typing-extensions"."""
        return canonicalize_name(self.name)

    @property
    def is_private(self) -> bool:
        """Whether it was installed from a folder, a repository or a file, so that an index need not have it.

        An index may have another package of that name. What conda installed is not private, nor is a file of torch's
        family, which is the same on torch's index.
        """
        is_torchs = self.origin == "archive_info" and carried_by_torch_index(self.canonical_name)
        return self.origin != "" and not self.is_condas and not is_torchs

    @property
    def is_condas(self) -> bool:
        """Whether conda installed it, which would not know of a change by other installers."""
        return self.installer == "conda"

    def share_in_place(self) -> float:
        """Return the share of its RECORD's files that exist with the listed size: 0.0 to 1.0, 0.0 without RECORD."""
        sized = [(Path(self.place, name), int(size)) for name, size in read_record(Path(self.record)) if size]
        in_place = sum(path.is_file() and path.stat().st_size == size for path, size in sized)
        return in_place / len(sized) if sized else 0.0


class Site(Record, frozen=True):
    """An interpreter with what is installed for it; `path` is its `sys.path`, `managed` means externally managed.

    `pip` is the Python that the `pip` on PATH starts, "" if unknown, as for a shell script of pyenv; `pip_script` is
    the path of that `pip` if it is a script. `stamp` are the times (ns) at which its Python and packages last changed.
    """

    prefix: str
    base_prefix: str
    python: str
    version: str
    purelib: str
    user_site: str = ""
    managed: bool = False
    path: tuple[str, ...] = ()
    pythonpath: str = ""
    pip: str = ""
    pip_script: str = ""
    distributions: tuple[Distribution, ...] = ()
    stamp: tuple[int, ...] = ()

    @classmethod
    def ask(cls, target: Path, host: Host) -> Self:
        """Run the Python of an environment and return what it reports to hold; raise `BadInput` if that fails.

        `target` is the environment's folder, or its Python.
        """
        python = find_python(target)
        stamp = read_timestamps(python)
        answer = host.run(str(python), "-B", "-c", PROBE)  # -B: looking leaves no trace
        if not answer:
            reason = (answer.text.strip().splitlines() or [answer.status])[-1]
            raise BadInput(
                _("The Python of {path} does not answer: {reason}.", path=target, reason=reason),
                hint=_("Choose another environment, or a new one.", option="--target"),
            )
        lines = answer.text.strip().splitlines() or [""]  # a program that is no Python may print nothing
        line = lines[0 if answer.text.startswith("{") else -1]
        return replace(from_json(line, cls, str(python)), stamp=stamp)

    def ask_again(self, host: Host) -> Site:
        """Return what the environment holds now: this object if its stamp shows no change since, else as `ask` does.

        Raises `BadInput` if its Python no longer answers.
        """
        python = Path(self.python)
        return self if self.stamp and self.stamp == read_timestamps(python) else Site.ask(python, host)

    @classmethod
    def read(cls, prefix: Path, host: Host, *, with_packages: bool = True) -> Self:
        """Return what an environment holds by its files, without running its Python.

        Filled are prefix, base prefix, Python, version, folder of packages and, `with_packages`, the distributions with
        their requirements; all else is empty, and so is what cannot be read. Raises nothing.
        """
        # home = /usr/bin
        # version = 3.11.2                  (venv)
        # version_info = 3.12.4             (uv), 3.12.4.final.0 (virtualenv)
        pairs = (line.partition("=") for line in host.read(str(prefix / "pyvenv.cfg")).text.splitlines())
        settings = {name.strip().lower(): value.strip() for name, sign, value in pairs if sign}
        folders = _candidate_folders(prefix, host).items()
        packages, python = next((pair for pair in folders if host.facts("folder", str(pair[0]))), (None, ""))
        version = settings.get("version_info") or settings.get("version", "")
        if not version:  # conda has a record of it: conda-meta/python-3.12.4-h99e….json
            names = host.names(str(prefix / "conda-meta")).text.splitlines()
            version = next((match[1] for name in names if (match := _CONDA_PYTHON.fullmatch(name))), "")
        numbers = re.match(r"\d+(?:\.\d+){0,2}", version)
        return cls(
            prefix=str(prefix),
            base_prefix=settings.get("home", str(prefix)),
            python=str(interpreter(prefix)),
            version=(numbers[0] if numbers else python.rstrip("t")) + "t" * python.endswith("t"),
            purelib=str(packages or ""),
            distributions=tuple(_read_distributions(packages, host)) if packages and with_packages else (),
        )

    @property
    def minor(self) -> str:
        """The Python version as plans give it, such as "3.12", or "3.13t" for a free-threaded one."""
        return ".".join(self.version.split(".")[:2]) + ("t" if self.version.endswith("t") else "")

    @property
    def versions(self) -> dict[str, str]:
        """The versions in the environment itself, by canonical name; of several, the first on its `sys.path`."""
        return {distribution.canonical_name: distribution.version for distribution in reversed(self.own)}

    @property
    def pinned(self) -> dict[str, str]:
        """The versions, by canonical name, of the packages that constraints pin: an accelerator needs them."""
        return {name: version for name, version in self.versions.items() if is_pinned_in_constraints(name)}

    @property
    def own(self) -> tuple[Distribution, ...]:
        """The distributions below the prefix, without those of the user site, of PYTHONPATH and of the base Python."""
        return tuple(
            distribution for distribution in self.distributions if Path(distribution.place).is_relative_to(self.prefix)
        )

    def installed_files(self, names: Iterable[str]) -> list[str]:
        """Return the files that the named distributions (canonical names) list, relative to the environment.

        Raises `BadInput` for a distribution that lists no files, or a file outside the environment.
        """
        selected, files = set(names), []
        for distribution in self.own:
            if distribution.canonical_name not in selected:
                continue
            listed = [name for name, _size in read_record(Path(distribution.record)) if name]
            # `os.path` is ten times faster than `Path` for 20,000 files.
            paths = [os.path.normpath(os.path.join(distribution.place, name)) for name in listed]  # noqa: PTH118
            outside = next((path for path in paths if not path.startswith(self.prefix + os.sep)), None)
            if outside or not paths:
                name, version = distribution.name, distribution.version
                text = _("{name} has a file outside its environment: {path}.")
                if not paths:
                    text = _("{name} {version} does not list its files, so it cannot be replaced safely.")
                raise BadInput(
                    text.format(name=name, version=version, path=outside),
                    hint=_("Remove it with the tool that installed it, or choose a new environment."),
                )
            files += [path[len(self.prefix) + 1 :].replace(os.sep, "/") for path in paths]
        return files

    def version_with_most_files(self, name: str) -> str:
        """Return which of the versions of a package installed over one another has the largest share of its files.

        Of equal ones it is the newest. `name` is canonical, and installed.
        """
        several = [distribution for distribution in self.own if distribution.canonical_name == name]
        return max(several, key=lambda one: (one.share_in_place(), parse_version(one.version) or Version("0"))).version

    def read_torch_build(self, host: Host) -> str:
        """Return what torch was built for, by its own `version.py`: "cuda 13.0", "hip 7.2", "xpu 2025.2", "cpu".

        "" without torch, or if that file does not say. The version number is not enough: PyPI's build for CUDA is
        "2.13.0".
        """
        if "torch" not in self.versions:
            return ""
        text = host.read(str(Path(self.purelib) / "torch" / "version.py")).text
        # cuda: Optional[str] = '13.0'     hip: Optional[str] = None     xpu: Optional[str] = None
        found = dict(_TORCH_BUILD.findall(text))
        builds = (f"{kind} {value[1:-1]}" for kind, value in found.items() if value not in {"None", "''", '""'})
        return next(builds, "cpu" if found else "")

    def missing_python_finding(self, host: Host) -> Finding | None:
        """Return an error if its Python is missing, as after an update of the Python that it was made with.

        None if the file exists, even if it does not work, and if that is unknown.
        """
        if host.link(self.python).status != "missing":
            return None
        return Finding(
            key="environment-without-python",
            severity=Severity.ERROR,
            text=_("The Python that this environment was made with is gone: {path}.", path=self.base_prefix),
            remedies=(Remedy(text=_("Set up a new environment; nothing in this one can run any more.")),),
        )


# Runs in the environment's own Python, whichever version that is; prints one JSON object.
PROBE = r"""
import json, os, shlex, shutil, site, sys, sysconfig
from importlib import metadata
def origin(one):
    try:
        told = json.loads(one.read_text("direct_url.json") or "{}")
        return next((kind for kind in ("dir_info", "vcs_info", "archive_info") if kind in told), "")
    except (ValueError, TypeError):
        return ""
places, seen, found = {}, set(), []
for one in metadata.distributions():
    try:
        name, info = one.metadata["Name"], str(getattr(one, "_path", ""))
    except FileNotFoundError:  # from Python 3.15 on, where an uninstallation left a folder without METADATA
        continue
    # The first folder that has a name shadows the others; one folder may hold it twice, which is a fault of its own.
    if not name or info in seen or places.setdefault(name.lower(), os.path.dirname(info)) != os.path.dirname(info):
        continue
    seen.add(info)
    record = os.path.join(info, "RECORD")
    found.append({"name": name, "version": one.version, "requires": list(one.requires or ()),
        "installer": (one.read_text("INSTALLER") or "").strip(), "place": os.path.dirname(info),
        "origin": origin(one), "record": record if os.path.isfile(record) else ""})
pip, first, serves = shutil.which("pip"), "", ""
if pip:
    try:
        with open(pip, encoding="utf-8") as script:
            first, second = script.readline(), script.readline()
        # #!/home/ada/env/bin/python3, or, where that path is long or has a gap:
        # #!/bin/sh    and then    '''exec' "/home/ada/my env/bin/python3" "$0" "$@"
        # An environment that can be moved: '''exec' "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@"
        words = shlex.split(second)[1:] if second.startswith("'''exec' ") else first[2:].split()
        if second.startswith("'''exec' \"$(dirname"):
            words = [os.path.join(os.path.dirname(os.path.realpath(pip)), "python")]
        serves = words[0] if os.path.basename(words[0]).startswith(("python", "pypy")) else ""
    except (OSError, ValueError, IndexError):
        pass
print(json.dumps({"prefix": sys.prefix, "base_prefix": sys.base_prefix, "python": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "purelib": sysconfig.get_path("purelib"),
    "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else "",
    "managed": sys.prefix == sys.base_prefix and os.path.exists(
        os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")),
    "path": [p for p in sys.path if p],
    "pythonpath": os.environ.get("PYTHONPATH", ""), "pip": serves,
    "pip_script": pip if first.startswith("#!") else "",
    "distributions": found}))
"""


def interpreter(target: Path) -> Path:
    """Return the path at which an environment's Python is or would be, by the layout of this system."""
    if os.name == "nt":
        script = target / "Scripts" / "python.exe"
        return script if script.exists() or not (target / "python.exe").exists() else target / "python.exe"  # conda
    return target / "bin" / "python"


def find_python(target: Path) -> Path:
    """Return the interpreter of a target: an environment's Python, or the target itself if it is a file."""
    return target if target.is_file() else interpreter(target)


def package_folders(prefix: Path) -> list[Path]:
    """Return the existing folders of packages of an environment, each once (`lib64` may be a link)."""
    folders = [path for pattern in PACKAGES for path in prefix.glob(pattern) if path.is_dir()]
    return list({path.resolve(): path for path in folders}.values())


def is_environment(target: Path) -> bool:
    """Return whether a target is an environment of venv, virtualenv, uv or conda, or a file that can be executed."""
    if target.is_file():
        return os.access(target, os.X_OK)
    return find_python(target).is_file() and ((target / "pyvenv.cfg").is_file() or (target / "conda-meta").is_dir())


def read_timestamps(python: Path) -> tuple[int, ...]:
    """Return the modification times (ns) of a Python and its folders of packages; () without any, or if unreadable."""
    folders = [folder for place in (python.parent.parent, python.parent) for folder in package_folders(place)]
    with suppress(OSError):
        return tuple(path.stat().st_mtime_ns for path in (python, *folders)) if folders else ()
    return ()


# torch/version.py,sha256=pYk0m2qGqv…,270     torch-2.13.0.dist-info/RECORD,,
def read_record(record: Path) -> Iterator[tuple[str, str]]:
    """Yield path and size ("" if not given) of each file that a RECORD lists (PEP 376); nothing more at an error."""
    with suppress(OSError, UnicodeDecodeError, csv.Error):
        for row in csv.reader(record.read_text(encoding="utf-8").splitlines()):
            if len(row) == 3:  # noqa: PLR2004 - path, hash, size
                yield row[0], row[2] if row[2].isdecimal() else ""


def parse_version(text: str | None) -> Version | None:
    """Return a version; None for "", None and text that is no version (PEP 440)."""
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def has_unreadable_packages(prefix: Path, host: Host) -> bool:
    """Return whether `lib` or a folder of packages of an environment exists and cannot be listed."""
    places = [prefix / "lib", *_candidate_folders(prefix, host)]
    return any(host.ask("folder", str(place)).status not in {"ok", "missing"} for place in places)


def _candidate_folders(prefix: Path, host: Host) -> dict[Path, str]:
    """Return the possible folders of packages, each with the Python version in its path, such as "3.13t", or ""."""
    names = host.facts("folder", str(prefix / "lib")).get("folders", [])
    matches = filter(None, map(_FOLDER.fullmatch, names)) if isinstance(names, list) else ()
    folders = {prefix / "lib" / match[0] / "site-packages": match[1] + match[2] for match in matches}
    return folders | {prefix / "Lib" / "site-packages": ""}


def _read_distributions(packages: Path, host: Host) -> Iterator[Distribution]:
    """Yield the distributions whose metadata are in a folder of packages; those without name or version are skipped."""
    names = host.facts("folder", str(packages)).get("folders", [])
    for name in names if isinstance(names, list) else ():
        stem, dot, kind = name.rpartition(".")
        file = _INFO.get(dot + kind)
        # Lines such as "Name: torch", "Version: 2.13.0+cpu", "Requires-Dist: typing-extensions>=4.10.0".
        fields = HeaderParser().parsestr(host.read(str(packages / name / file)).text if file and stem else "")
        if fields["Name"] and fields["Version"]:
            yield Distribution(
                name=str(fields["Name"]).strip(),
                version=str(fields["Version"]).strip(),
                requires=tuple(map(str, fields.get_all("Requires-Dist", ()))),
                place=str(packages),
            )


class Marker(Record, frozen=True, kw_only=True):
    """The content of an environment's marker file: the plan that it was made for, and what it held then."""

    schema: Literal[1] = 1
    plan: Plan
    environment: Environment


def write_marker(folder: Path, plan: Plan, environment: Environment) -> None:
    """Write the marker of an environment into a folder, without secrets; raises `OSError`."""
    marker = redact(Marker(plan=plan, environment=environment), Policy.USABLE)
    write_atomically(folder / MARKER, to_json(marker, indent=1))


def read_marker(folder: Path, target: Path | None = None) -> Marker | None:
    """Return the marker in a folder if it was written for the path `target`, by default for the folder itself.

    None without a marker, for one that cannot be read or was written for another path, and without a Python there.
    """
    try:
        marker = from_json(read_regular(folder / MARKER), Marker, MARKER)
    except (OSError, BadInput):
        return None
    return marker if interpreter(folder).exists() and marker.environment.path == str(target or folder) else None


def is_ours(target: Path) -> bool:
    """Return whether a folder holds a marker file, as finished environments of the assistant do; it is not read."""
    return (target / MARKER).is_file()
