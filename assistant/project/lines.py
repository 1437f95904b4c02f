"""How a line that asks for a package may be written: what is an address, a path, a wheel, a file that has a list."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from assistant.host.index import local_path
from assistant.project.source import Source, is_file

# Characters of a line, chosen: below the 4300 digits that Python reads as a number; the patterns here look back.
LONGEST_LINE = 4000
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz")
# pip wants a space before the semicolon of an address and its authors forget it: https://host/a.whl; sys_platform == …
_MARKER_SIGN = re.compile(r"(?<=whl|zip|\.gz|tgz)\s*;\s*|;\s+")
VERSION_CONTROL = re.compile(r"(?:^|@\s*)(?:(?:git|hg|svn|bzr)\+[a-z]+:|git(?:://|@))", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:(?P<name>[\w.-]+)\s*(?P<extras>\[[^\]]*\])?\s*@\s*)?(?P<url>(?:https?://|ftp://|file:///)\S+?)"
    r"(?:\s+;\s*(?P<marker>.+))?",
    re.IGNORECASE,
)
# What `pip freeze` writes in conda's environments: six @ file:///croot/six_1644875935023/work, the folder and the
# milliseconds of conda-build; some name the wheel: …/numpy_1708638617955/work/dist/numpy-1.26.4-cp310-….whl#sha256=…
BUILT_BY_CONDA = re.compile(r"_\d{13}/work(?:/|$)")
_ON_THIS_DISK = re.compile(r"file:///(?!/)(?:(?!%2f|%5c)[^\\])*", re.IGNORECASE)  # what unquoted is no //server
WITH_EXTRAS = re.compile(r"(?P<path>.*?)(?:\[(?P<extras>[\w\s.,-]+)\])?", re.DOTALL)
VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")  # pip fills it in from the environment, such as a password of an index
# `pip install requirements.txt`, without the -r; discord.py and ruamel.yaml are packages.
_FILE_NAME = re.compile(r"[\w./\\-]+\.(?:txt|toml|yml|ipynb|cfg|lock|(?P<unsure>py|yaml))")


def address_of(text: str) -> re.Match[str] | None:
    """Return the name, extras, url and marker of a requirement that is an address, None for any other."""
    return _ADDRESS.fullmatch(_MARKER_SIGN.sub(" ; ", text, count=1))


def marked(line: str, *markers: str) -> str:
    """Write a requirement with its conditions, all of which must hold; a marker may be ""."""
    whole = " and ".join(f"({marker.strip()})" for marker in markers if marker.strip())
    return f"{line} ; {whole}" if whole else line


def wheel_of(file: str) -> tuple[str, str] | None:
    """Return the name and version of the distribution in a wheel, None for a file that is no wheel."""
    try:
        name, version, _build, _tags = parse_wheel_filename(file)
    except (InvalidWheelFilename, ValueError):
        return None
    return str(name), version.public


def path_of(address: str) -> Path | None:
    """Return the place on this computer that an address names, None for any other; a share is another computer's."""
    return local_path(f"file{address[4:]}") if _ON_THIS_DISK.fullmatch(address) else None


def is_file_name(text: str, source: Source) -> bool:
    """Return whether a requirement is the name of a file that lists requirements; some packages are called like one."""
    found = _FILE_NAME.fullmatch(text)
    if found is None or not found["unsure"]:
        return found is not None
    path = source.beside(text)
    return path is not None and is_file(path)


def is_path(text: str) -> bool:
    """Return whether a requirement is a path: it begins as one does, or is an archive without an address."""
    bare = text.partition(";")[0].strip()
    return (
        bare in {".", ".."}
        or bare.startswith(("./", "../", ".\\", "..\\", "/", "~/", ".["))
        or re.match(r"[A-Za-z]:[\\/]", bare) is not None
        or bare.endswith(_ARCHIVES)
        or ("@" not in bare and ("/" in bare or "\\" in bare))
    )
