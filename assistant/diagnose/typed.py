"""Reads the installation that a person typed and that failed, so that it can be repeated as it was."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

from assistant.catalog import load_catalog
from assistant.diagnose.index_addresses import judge
from assistant.diagnose.surroundings import Surroundings

# (venv) $ pip install -r requirements.txt      > python -m pip install "xformers==0.0.28" torch
_PIP = re.compile(r"(?:^|[\s!%&>$'\"\[])(?:python[\w.]{0,5}(?:\.exe)? -m )?pip3?(?:\.exe)? install ([^\n]{2,300})")
# Downloading torch-2.4.0-cp310-cp310-manylinux1_x86_64.whl (797.2 MB)
_FETCHED = re.compile(
    r"downloading (?:\S{1,200}/)?(\w[\w.]{0,60})-(\d[\w.]{0,20})(?:(?:\+|%2b)([\w.]{1,20}))?-[\w.-]{5,90}\.whl"
)
# The same as a list of Python's, as an application prints the command that it ran.
_LISTED = re.compile(r"'pip', 'install', ([^\]\n]{3,400})")
_PLAIN = re.compile(r"[A-Za-z0-9_.,/:@=+\[\]<>~!#-]{1,200}")
_WITH_VALUE = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable"}
_INDEXES = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"}


def typed_names(case: Surroundings) -> dict[str, str]:
    """Return what pip was told to install, as words that a shell takes; {} where the log does not tell it."""
    for _number, line in reversed(case.log.lines):
        found = _PIP.search(line)
        listed = _LISTED.search(line)
        words = (
            _words(found[1]) if found else _words(" ".join(re.findall(r"'([^']{1,200})'", listed[1]))) if listed else []
        )
        if words:
            packages = [word for before, word in pairwise(("", *words)) if not {before, word} & _INDEXES]
            files = any(word in _WITH_VALUE or set(word) & {"/", "\\"} for word in packages)
            return {"typed": _joined(words), **({} if files or not packages else {"typed_packages": _joined(packages)})}
    fetched = list(_FETCHED.finditer(case.text))
    if not fetched:
        return {}
    name, version, build = fetched[-1].groups()
    index = load_catalog().index_url(build) if build and build.startswith(("cu", "rocm", "xpu", "cpu")) else None
    return {"typed": f'"{name.replace("_", "-")}=={version}"' + (f" --index-url {index}" if index else "")}


def _joined(words: list[str]) -> str:
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#") else word for word in words)


def _words(text: str) -> list[str]:
    """Return the packages, files and indexes of an installation; [] where a word is not understood.

    Only what names packages is kept, in characters that no shell reads; of the indexes those that are known.
    """
    try:
        words = shlex.split(text.split("  ", maxsplit=1)[0], posix="\\" not in text)
    except ValueError:
        return []
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE or word in _INDEXES:
            value = next(rest, "")
            known = word in _WITH_VALUE or judge(value.rstrip("/").lower()).kind in {"pypi", "torch"}
            kept += [word, value] if known and value else []
        elif not word.startswith("-"):
            kept.append(word)
    return kept if all(_PLAIN.fullmatch(word) for word in kept) else []
