"""What an environment holds, read off its files: nothing in it is started, so it may be a stranger's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.host.base import Host
from assistant.i18n import _
from assistant.install.inspect_env import Distribution, Site, interpreter
from assistant.model.finding import Finding, Remedy, Severity

_FOLDER = re.compile(r"(?:python|pypy)(\d+\.\d+)(t?)")
_CONDA_PYTHON = re.compile(r"python-(\d+\.\d+\.\d+)-[^-]+\.json")
_INFO = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}


def read_site(prefix: Path, host: Host) -> Site:
    """Return what an environment's files say that it holds; what only its Python could tell stays empty.

    Raises nothing: an environment of which nothing can be read holds nothing.
    """
    settings = _settings(host.read(str(prefix / "pyvenv.cfg")).text)
    packages, found = _packages(prefix, host)
    version = settings.get("version_info") or settings.get("version") or _conda_python(prefix, host)
    numbers = re.match(r"\d+(?:\.\d+){0,2}", version)
    python = numbers[0] if numbers else found.rstrip("t")
    return Site(
        prefix=str(prefix),
        base_prefix=settings.get("home", str(prefix)),
        python=str(interpreter(prefix)),
        version=python + "t" * found.endswith("t"),
        purelib=str(packages or ""),
        distributions=tuple(_distributions(packages, host)) if packages else (),
    )


def dead(site: Site, host: Host) -> Finding | None:
    """Return the finding that an environment's Python is gone, as after an update of the Python that it was made with.

    None where it is there, which says nothing yet of whether it works.
    """
    if host.link(site.python).status != "missing":
        return None
    return Finding(
        key="environment-without-python",
        severity=Severity.ERROR,
        text=_("The Python that this environment was made with is gone: {path}.", path=site.base_prefix),
        remedies=(Remedy(text=_("Set up a new environment; nothing in this one can run any more.")),),
    )


# home = /usr/bin
# version = 3.11.2                  (venv)
# version_info = 3.12.4             (uv), 3.12.4.final.0 (virtualenv)
def _settings(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, sign, value in pairs if sign}


def _packages(prefix: Path, host: Host) -> tuple[Path | None, str]:
    """Return the folder of an environment's packages, and the Python in its name, such as "3.13t" ("" on Windows)."""
    below = host.facts("folder", str(prefix / "lib")).get("folders", [])
    for name in below if isinstance(below, list) else ():
        if (match := _FOLDER.fullmatch(name)) and host.facts("folder", str(prefix / "lib" / name / "site-packages")):
            return prefix / "lib" / name / "site-packages", match[1] + match[2]
    windows = prefix / "Lib" / "site-packages"
    return (windows, "") if host.facts("folder", str(windows)) else (None, "")


def is_closed(prefix: Path, host: Host) -> bool:
    """Return whether a folder in which packages lie is there and cannot be listed, so that nothing is known of them."""
    below = host.facts("folder", str(prefix / "lib")).get("folders", [])
    names = [name for name in below if _FOLDER.fullmatch(name)] if isinstance(below, list) else []
    places = [
        prefix / "lib",
        prefix / "Lib" / "site-packages",
        *(prefix / "lib" / one / "site-packages" for one in names),
    ]
    return any(host.ask("folder", str(place)).status not in {"ok", "missing"} for place in places)


def _conda_python(prefix: Path, host: Host) -> str:
    """Return the version of an environment's Python by conda's own records: `conda-meta/python-3.12.4-h99e….json`."""
    names = host.names(str(prefix / "conda-meta")).text.splitlines()
    return next((found[1] for name in names if (found := _CONDA_PYTHON.fullmatch(name))), "")


def _distributions(packages: Path, host: Host) -> Iterator[Distribution]:
    names = host.facts("folder", str(packages)).get("folders", [])
    for name in names if isinstance(names, list) else ():
        stem, dot, kind = name.rpartition(".")
        file = _INFO.get(dot + kind)
        text = host.read(str(packages / name / file)).text if file and stem else ""
        fields = _fields(text)
        if fields["Name"] and fields["Version"]:
            yield Distribution(
                name=fields["Name"][0],
                version=fields["Version"][0],
                requires=tuple(fields["Requires-Dist"]),
                place=str(packages),
            )


# Lines such as "Name: torch", "Version: 2.13.0+cpu", "Requires-Dist: typing-extensions>=4.10.0", then an empty line and
# the description, which may hold anything.
def _fields(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"Name": [], "Version": [], "Requires-Dist": []}
    for line in text.splitlines():
        if not line:
            break
        name, _colon, value = line.partition(":")
        if name in found:
            found[name].append(value.strip())
    return found


def torch_build(site: Site, host: Host) -> str:
    """Return what torch was built for, as its own `version.py` says: "cuda 13.0", "hip 7.2", "xpu 2025.2", "cpu".

    "" where there is no torch, or it does not say. The version alone may not tell: PyPI's build for CUDA is "2.13.0".
    """
    if "torch" not in {canonicalize_name(one.name) for one in site.own}:
        return ""
    text = host.read(str(Path(site.purelib) / "torch" / "version.py")).text
    # cuda: Optional[str] = '13.0'     hip: Optional[str] = None     xpu: Optional[str] = None
    said = dict(re.findall(r"^(cuda|hip|xpu)\s*(?::[^=\n]*)?=\s*(None|'[^'\n]*'|\"[^\"\n]*\")", text, re.MULTILINE))
    built = next((f"{kind} {value[1:-1]}" for kind, value in said.items() if value not in {"None", "''", '""'}), "")
    return built or ("cpu" if said else "")
