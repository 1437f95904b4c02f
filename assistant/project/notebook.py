"""What a notebook installs and imports: its commands are read as requirements, and none is run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile, groupby
from typing import NamedTuple

from assistant.i18n import _
from assistant.project.arguments import arguments
from assistant.project.code import modules_beside
from assistant.project.conda import take_conda
from assistant.project.gathering import Gathering
from assistant.project.lines import LONGEST_LINE
from assistant.project.requirements import take_option
from assistant.project.source import Source, refused, rows, shown, table

_SHELL_CELL = re.compile(r"%%(?:bash|sh|cmd|script\s+(?:bash|sh|zsh))\b")
_PYTHON_CELL = re.compile(r"%%(?:capture|time|timeit|prun)\b")
_COMMAND = re.compile(
    r"(?P<indent>\s*)(?:!{1,2}|%(?=(?:pip|uv|conda|mamba|micromamba)\b)|%(?:sx|system)\s)(?P<words>.*)"
)
_OPENS = re.compile(r"\s*(?:if|for|while|until|case)\b")
_CLOSES = re.compile(r"(?:^|;)\s*(?:fi|done|esac)\b")
# Where a command's output goes, and a comment behind it; `torch>=2` outside quotation marks means the version.
_NO_WORDS = re.compile(r"(?:\d|&)?>>?\s*(?:&\d|/\S+|[^\s>]{1,255}\.log\b)|\s#.*$")
_PYTHON = re.compile(r"(?:\S*/)?python[\d.]*(?:\.exe)?|\{sys\.executable\}")
_PIP = re.compile(r"(?:\S*/)?pip[\d.]*")
_CONDA = frozenset({"conda", "mamba", "micromamba"})
_BEFORE = re.compile(r"^(?:sudo|-[EH]|\w+=.*)")  # what may stand before a program's name
_COMPUTED = re.compile(r"[$`{}*?…]|\$\(")
_TAKEN = frozenset(
    {
        "--requirement", "--constraint", "--editable", "--index-url", "--extra-index-url", "--find-links",
        "--pre", "--no-binary", "--override",
    }
)  # fmt: skip


class _Command(NamedTuple):
    """A line for the shell, and whether it runs only under a condition."""

    text: str
    conditional: bool


class _Cell(NamedTuple):
    """A cell of code: its Python, and the commands in it."""

    python: str
    commands: list[_Command]


def take_notebook(text: str, source: Source, gathering: Gathering) -> None:
    """Take what a notebook's cells install, and add what they import; raise `BadInput` for a broken one."""
    cells = [_cell(text) for text in _code_cells(text, source)]
    moved = any(re.search(r"\bgit\s+clone\b", command.text) for cell in cells for command in cell.commands)
    here = Source(name=source.name, folder=None) if moved else source  # what a clone brings does not lie beside it
    for cell in cells:
        for command in cell.commands:
            _take_command(command, here, gathering)
    own = modules_beside(source.folder)
    for number, cell in enumerate(cells, 1):
        gathering.code.add(cell.python, f"{source.file}[{number}]", own)


# {"cells": [{"cell_type": "code", "source": ["!pip install jiwer\n", "import torch"], …}], "nbformat": 4, …}
def _code_cells(text: str, source: Source) -> Iterator[str]:
    try:
        whole = table(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise refused(source.name, _("it is not a notebook, or it is damaged")) from error
    # Up to version 3 of the format the cells stood in sheets, and a cell's text was its "input".
    sheets = [whole, *map(table, rows(whole.get("worksheets")))]
    cells = [table(cell) for sheet in sheets for cell in rows(sheet.get("cells"))]
    if not cells and "cells" not in whole and "worksheets" not in whole:
        raise refused(source.name, _("it is not a notebook, or it is damaged"))
    for cell in cells:
        if cell.get("cell_type") == "code":
            lines = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _cell(text: str) -> _Cell:
    """Divide a cell into Python and commands; one that another program runs (%%html) has neither."""
    first = text.lstrip().partition("\n")[0]
    if _SHELL_CELL.match(first):
        return _Cell("", list(_shell(text.partition("\n")[2])))
    if first.startswith("%%") and not _PYTHON_CELL.match(first):
        return _Cell("", [])
    commands, kept = [], []
    for line in text.replace("\\\n", " ").splitlines():
        if found := _COMMAND.fullmatch(line):
            commands.append(_Command(found["words"], conditional=bool(found["indent"])))
            kept.append(f"{found['indent']}pass")
        else:
            kept.append(_indent(line) + "pass" if _is_magic(line.strip()) else line)
    return _Cell("\n".join(kept), commands)


def _is_magic(words: str) -> bool:
    """Return whether a line is IPython's own: a magic, or a question such as "torch.nn?"."""
    return words.startswith(("%", "?")) or (words.endswith("?") and not words.startswith("#"))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _shell(text: str) -> Iterator[_Command]:
    """Yield a shell script's lines, each with whether it stands in an `if`, a loop or a `case`."""
    depth = 0
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("#"):
            continue
        opened = bool(_OPENS.match(line))
        depth += opened
        yield _Command(line, conditional=depth > 0)
        depth = max(0, depth - len(_CLOSES.findall(line)))


def _take_command(command: _Command, source: Source, gathering: Gathering) -> None:
    """Take what a line installs; a line that cannot be divided into words is one that depends on quotation marks."""
    if len(command.text) > LONGEST_LINE:
        gathering.skip(command.text[:LONGEST_LINE], _("it is too long"))
        return
    split = shlex.shlex(_NO_WORDS.sub(" ", command.text), posix=True, punctuation_chars=";|&")
    split.whitespace_split, split.commenters = True, ""
    try:
        words = list(split)
    except ValueError:
        words = command.text.split() if "install" in command.text else []
        command = command._replace(conditional=True)
    for operator, part in groupby(words, lambda word: not word.strip(";|&")):
        tool, rest = ("", []) if operator else _installer(list(part))
        if tool and command.conditional:
            _skip(command.text, gathering)
        elif tool:
            for option, value in arguments(rest):
                _take_word(option, value, tool, source, gathering)


# pip install -q x, python3 -m pip install x, sudo -H pip3 install x, uv pip install --system x, conda install -y x
def _installer(words: list[str]) -> tuple[str, list[str]]:
    """Return the program that installs and the words after its verb; ("", []) for any other command."""
    rest = list(dropwhile(_BEFORE.fullmatch, words))
    if rest[1:2] == ["-m"] and _PYTHON.fullmatch(rest[0]):
        rest = rest[2:]
    if rest[:2] == ["uv", "add"]:
        return "pip", rest[2:]
    rest = rest[1:] if rest[:1] == ["uv"] else rest
    tool = rest[0] if rest and (_PIP.fullmatch(rest[0]) or rest[0] in _CONDA) else ""
    if not tool or "install" not in rest[1:4]:
        return "", []
    return "conda" if tool in _CONDA else "pip", rest[rest.index("install") + 1 :]


def _take_word(option: str, value: str, tool: str, source: Source, gathering: Gathering) -> None:
    if option and (option not in _TAKEN or tool == "conda"):
        return
    if _COMPUTED.search(value.removesuffix(".*")):
        _skip(f"{option} {value}", gathering)
    elif option:
        take_option(option, value, source, gathering)
    elif tool == "conda":
        if other := take_conda(value, source, gathering):
            gathering.skip(other, _("it is not a Python package"))
    else:
        gathering.take(value, source)


def _skip(text: str, gathering: Gathering) -> None:
    gathering.note(
        _("{line} was left out: it depends on what the notebook does when it runs.", line=shown(text.strip()))
    )
