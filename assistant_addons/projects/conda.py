"""Conda's environment files: their packages by the names that PyPI has for them, and the part for pip."""

from __future__ import annotations

import re
from functools import cache

from packaging.utils import canonicalize_name

from assistant.api import Record, _
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.imports import provider
from assistant_addons.projects.requirements import take_lines
from assistant_addons.projects.source import LONGEST_LINE, TOO_DEEP, Source, refused, rows, shown, table, too_long
from assistant_addons.projects.tables import load

_OWN = frozenset({"pip", "setuptools", "wheel"})  # every environment has them, or none needs them
# pytorch::pytorch=1.11.0=py3.8_cuda11.3_cudnn8.2.0_0, numpy >=1.20,<2, pytorch[version='>=2.1', build='*cuda*']
_SPEC = re.compile(
    r"(?:[\w./:-]+::)?(?P<name>[\w.-]+)\s*(?:\[(?P<terms>[^\]]*)\]|(?P<version>[=<>!~][^\s]*|(?<=\s)[\d.*]+)(?:\s+\S+)?)?"
)
_VERSION_TERM = re.compile(r"version\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,\s]+))")
_LIMIT = 10**6  # characters, chosen: PyYAML reads some 200 kB a second, and an exported environment has 30
_EXACT = 3  # parts of a version: with fewer, conda's single "=" means any that begins so


class CondaName(Record, frozen=True):
    """A package of conda's by its name on PyPI, "" where nothing is needed there."""

    conda: str
    pypi: str


@cache
def _names() -> dict[str, str]:
    return {row.conda: row.pypi for row in load("conda.names", CondaName)}


# name: ldm
# dependencies:
#   - python=3.8.5
#   - pytorch=1.11.0
#   - pip:
#     - albumentations==0.4.3
def take_environment(text: str, source: Source, gathering: Gathering) -> None:
    """Take the dependencies of an environment file; raise `BadInput` where the text is no YAML with such a list."""
    import yaml  # noqa: PLC0415 - 60 ms that no other file costs

    if len(text) > _LIMIT:
        raise too_long(source.name, _LIMIT)
    try:
        whole = table(yaml.load(text, yaml.BaseLoader))  # noqa: S506 - it makes texts alone: 3.10 is no number here
    except RecursionError as error:
        raise refused(source.name, TOO_DEEP) from error
    except (yaml.YAMLError, ValueError) as error:
        raise refused(source.name, shown(str(error).partition("\n")[0])) from error
    if not isinstance(whole.get("dependencies"), list):
        raise refused(source.name, _("it has no list of dependencies"))
    others = []
    for row in {id(row): row for row in whole["dependencies"]}.values():  # an alias may stand there a thousand times
        if isinstance(row, dict):
            take_lines("\n".join(line for line in rows(row.get("pip")) if isinstance(line, str)), source, gathering)
        elif isinstance(row, str) and row.strip():
            others.append(_take(row, source, gathering))
    note = _(
        "These are not Python packages: {names}. If the project needs them, install them with your system's tools."
    )
    gathering.note_names(note, filter(None, others))


def _take(spec: str, source: Source, gathering: Gathering) -> str:
    """Take one package as conda spells it, by its name on PyPI; return the name of one that is no Python package."""
    found = _SPEC.fullmatch(spec.strip()) if len(spec) <= LONGEST_LINE else None
    if found is None:
        gathering.take(spec, source)  # which says what is wrong with it
        return ""
    name, version = found["name"].lower(), _version(found)
    if name == "python":
        gathering.take_pythons(_python(version))
    elif name in load("conda.chosen_by_the_plan", str):
        gathering.note(_("{name} was left out: the plan chooses what this machine's card needs.", name=name))
    elif _of_the_system(name, found["version"] or ""):
        return name
    elif name not in _OWN and (pypi := _names().get(name, canonicalize_name(name))):
        gathering.take(f"{pypi}{_specifier(version)}", source)
    return ""


def _of_the_system(name: str, version: str) -> bool:
    """Return whether a package is no Python package, by its name or by the build that an exported environment states.

    "=1.26.4=py311h64a7726_0" and "=3.1.4=pyhd8ed1ab_0" are for Python, "=8.2=h5eee18b_0" is not.
    """
    built = re.fullmatch(r"=[^=]+=([^=]+)", version)
    if name in _names():
        return False
    if name in load("conda.of_the_system", str) or name.startswith("_") or (built and "py" not in built[1]):
        return True
    return name.startswith("lib") and provider(name.replace("-", "_")) is None


def _version(found: re.Match[str]) -> str:
    if terms := found["terms"]:
        inner = _VERSION_TERM.search(terms)
        return next(filter(None, inner.groups()), "") if inner else ""
    version = (found["version"] or "").strip()
    bare = version.lstrip("=")
    # name=version=build: the build is conda's own
    return version[: len(version) - len(bare)] + bare.partition("=")[0] if version.startswith("=") else version


def _specifier(version: str) -> str:
    """Write conda's versions as PyPI does: "=1.11" is "==1.11.*", "=1.11.0" is "==1.11.0"."""
    if version in {"", "*", "=*"}:
        return ""
    if version[0] in "<>!~" or version.startswith("=="):
        return version
    bare = version.lstrip("=").rstrip("*").rstrip(".")
    return f"=={bare}" if bare.count(".") >= _EXACT - 1 and not version.endswith("*") else f"=={bare}.*"


def _python(version: str) -> str:
    """Take a Python by its minor version: a later patch of it runs whatever an earlier one did."""
    exact = re.fullmatch(r"={0,2}(\d+\.\d+)(?:\.\d+)?(?:\.?\*)?", version)
    return f"=={exact[1]}.*" if exact else _specifier(version)
