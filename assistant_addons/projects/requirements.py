"""Requirement files as pip reads them, options, includes and continued lines among them.

The parsers on PyPI do not serve: requirements-parser 0.13 drops the options, pip-requirements-parser has had no release
since 2022, and pip has no interface for it. `packaging` reads the requirements; the rest is the little that is here:
https://pip.pypa.io/en/stable/reference/requirements-file-format/.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from assistant.api import BadInput, _
from assistant_addons.projects.gathering import Gathering, Into
from assistant_addons.projects.source import Source, file_text, is_file, real, shown, source_of

# Options whose value may be a word of its own, by their long names.
_VALUED = frozenset(
    {
        "--config-settings", "--constraint", "--editable", "--extra-index-url", "--find-links", "--global-option",
        "--hash", "--index-url", "--no-binary", "--only-binary", "--requirement", "--trusted-host", "--use-feature",
    }
)  # fmt: skip
_LONG = {
    "-C": "--config-settings",
    "-c": "--constraint",
    "-e": "--editable",
    "-f": "--find-links",
    "-i": "--index-url",
    "-r": "--requirement",
    "--pypi-url": "--index-url",
}
# What an installation does anyhow, or what concerns pip alone.
_OF_NO_MATTER = frozenset({"--only-binary", "--prefer-binary", "--require-hashes", "--use-pep517", "--use-feature"})
MOST_FILES = 100  # chosen: nobody includes as many, and one that does would be read for ever
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def read_requirements(path: Path, gathering: Gathering, into: Into = "requires") -> None:
    """Read a requirement file and those that it includes, each once; raise `BadInput` for one that is not there."""
    if real(path) in gathering.paths:
        return
    if len(gathering.paths) >= MOST_FILES:
        raise BadInput(
            _("{file} and the files that it includes are more than {count}.", file=shown(path), count=MOST_FILES),
            hint=_("Name the one that lists what the project needs."),
        )
    gathering.paths[real(path)] = None
    take_lines(file_text(path), source_of(path), gathering, into)


# numpy==1.26.4 ; python_version < "3.13"  # the last before 2
# torch==2.9.1 \
#     --hash=sha256:…
# --extra-index-url https://download.pytorch.org/whl/cu121
# -r base.txt
def take_lines(text: str, source: Source, gathering: Gathering, into: Into = "requires") -> None:
    """Take each line of a requirement file."""
    for line in _logical_lines(text):
        words = line.split(" ")
        cut = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
        if requirement := " ".join(words[:cut]).strip():
            gathering.take(requirement, source, into)
        try:
            options = shlex.split(" ".join(words[cut:])) if cut < len(words) else []
        except ValueError:  # a quotation mark without its partner
            options = words[cut:]
        for name, value in _options(options):
            _take_option(name, value, source, gathering, into)


def _logical_lines(text: str) -> Iterator[str]:
    r"""Join lines that end in a backslash, and drop comments, in pip's own order; indented lines count as any other."""
    held = ""
    for line in [*text.splitlines(), ""]:
        comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not comment:
            held += line[:-1]
            continue
        if whole := _COMMENT.sub("", f"{held} {line}" if comment else held + line).strip():
            yield whole
        held = ""


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of an option, by its long name, and its value ("" without one); a word that is none has option ""."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            yield "", word
        elif word[:2] in _LONG:  # -rbase.txt, -r=base.txt, -r base.txt
            yield _LONG[word[:2]], word[2:].removeprefix("=") or next(rest, "")
        else:
            name, equals, value = word.partition("=")
            name = _LONG.get(name, name)
            yield name, value if equals or name not in _VALUED else next(rest, "")


def _take_option(name: str, value: str, source: Source, gathering: Gathering, into: Into) -> None:
    """Do what an option of a requirement file says, or tell why not."""
    match name:
        case "--requirement":
            _include(value, source, gathering, into)
        case "--constraint":
            _include(value, source, gathering, "constraints")
        case "--editable":
            is_address = "://" in value or value.startswith(("git@", "git+"))
            take = gathering.take if is_address else gathering.take_path
            take(value.partition("#egg=")[0], source)
        case "--index-url" | "--extra-index-url":
            gathering.take_index(value.rpartition("=")[2] if "=" in value.partition("://")[0] else value)
        case "--find-links":
            gathering.take_links(value, source)
        case "--hash":
            gathering.note(_("Hashes are not used: each file is checked against the hash that its index states."))
        case "--no-binary" if value != ":none:":
            line = f"--no-binary {shown(value)}"
            gathering.note(_("{line} was ignored: packages are installed from wheels alone.", line=line))
        case "--pre":
            gathering.note(_("--pre was ignored: if you want a pre-release, write its version."))
        case _ if name not in _OF_NO_MATTER:
            gathering.note(_("{name} in {file} was ignored.", name=shown(name or value), file=source.label))


def _include(value: str, source: Source, gathering: Gathering, into: Into) -> None:
    """Read the file that another one names, relative to its own folder."""
    names = {"file": shown(value), "source": source.label}
    path = source.beside(value)
    if "://" in value:
        gathering.note(_("{file} is on the network and was not read; download it and name it with -r.", **names))
    elif path is None:
        gathering.note(_("{file}, which {source} names, cannot be reached from here.", **names))
    elif is_file(path):
        read_requirements(path, gathering, into)
    else:
        raise BadInput(
            _("{file}, which {source} includes, is not there or is not a file.", **names),
            hint=_("Put it there, or take out the line that names it."),
        )
