"""Constraints that keep a later `pip install` or `uv pip install` from silently replacing torch's build.

The environment gets a constraints file, and pip's own configuration inside the environment (`pip.conf` in its prefix)
names it, so every pip that runs there reads it. uv reads no such file: the kernelspec and the scripts that activate the
environment set `UV_CONSTRAINT`.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from assistant.catalog import carried_by_torch_index
from assistant.host.files import write_atomically
from assistant.host.pip_settings import with_coding_line
from assistant.i18n import _

CONSTRAINTS = "assistant-constraints.txt"
HERE = f"sys_platform == '{sys.platform}'"
PIP_FILE = "pip.ini" if os.name == "nt" else "pip.conf"
# The lines between which an addition to pip's configuration stands; the second says that it began with an end of line.
_MARKS = ("# torch-setup-assistant", "# torch-setup-assistant, after a last line without an end")
_BESIDE = ("onnxruntime", "torch-directml", "triton")  # flavours of one package overwrite one another's files


def constraints_file_text(packages: Mapping[str, str]) -> str:
    """Return a constraints file that pins those `packages` (versions by name) that `is_pinned_in_constraints`."""
    # For this system alone: `uv add` takes them over into a project, whose lock is for others, too.
    pins = (
        f"{name}=={version} ; {HERE}" for name, version in sorted(packages.items()) if is_pinned_in_constraints(name)
    )
    note = _("Versions that the accelerator needs. To remove the limits, delete this file and its line in {file}.")
    return with_coding_line("\n".join([f"# {note.format(file=PIP_FILE)}", *pins, ""]))


def read_pins(text: str) -> dict[str, str]:
    """Return the versions by name that a constraints file pins; lines of another form are left out."""
    return dict(re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", text))


def add_to_pip_configuration(configuration: bytes, file: Path) -> bytes:
    """Return the text of a pip configuration with `file`, a full path, added to its constraints for installing.

    Those of all commands ([global]) are repeated, as pip reads one list alone. The rest stays to the byte: pip reads it
    in the locale's encoding (`_construct_parser` in pip/_internal/configuration.py), where a path may hold letters of a
    Chinese code page. Raises `configparser.Error` if pip could not read it either.
    """
    text = configuration.decode("ascii", "surrogateescape")
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    present = parser.get("install", "constraint", fallback="").split()
    if file.as_uri() in present:
        return configuration
    shared = [] if present else parser.get("global", "constraint", fallback="").split()
    values = [f"    {value}\n" for value in (*shared, file.as_uri())]
    place, before = _place_in_pip_configuration(text)
    ending = "" if text[:place].endswith(("\n", "\r")) or not place else "\n"
    block = f"{ending}{_MARKS[bool(ending)]}\n{before}{''.join(values)}{_MARKS[0]}\n"
    return f"{text[:place]}{block}{text[place:]}".encode("ascii", "surrogateescape")


def _place_in_pip_configuration(text: str) -> tuple[int, str]:
    """Return where in a pip configuration another constraint goes, and the lines that must stand before it there."""
    section = re.search(r"(?m)^\[install\][^\n]*\n?", text)
    if section is None:
        return len(text), "[install]\nconstraint =\n"
    # Values may go on in lines that begin with blanks, as "constraint = a.txt" with "    b.txt" below it.
    option = re.compile(r"(?mi)^constraint[ \t]*[=:][^\n]*(?:\n[ \t]+\S[^\n]*)*\n?")
    end = re.compile(r"(?m)^\[").search(text, section.end())
    found = option.search(text, section.end(), end.start() if end else len(text))
    return (found.end(), "") if found else (section.end(), "constraint =\n")


def remove_from_pip_configuration(text: bytes) -> bytes:
    """Return a pip configuration without what `add_to_pip_configuration` put there."""
    plain, with_line = (re.escape(mark.encode()) for mark in _MARKS)
    return re.sub(rb"(?s)(?:\n" + with_line + rb"|" + plain + rb")\n.*?" + plain + rb"\n", b"", text)


def constraints_uri(prefix: Path) -> str:
    """Return the address of an environment's constraints file as `UV_CONSTRAINT` takes it: a space would end a path."""
    return (prefix / CONSTRAINTS).as_uri()


def guard_files(prefix: Path) -> tuple[Path, Path]:
    """Return the paths in an environment of the constraints file and of the pip configuration that uses it."""
    return prefix / CONSTRAINTS, prefix / PIP_FILE


def write_guards(prefix: Path, packages: Mapping[str, str], folder: Path) -> None:
    """Write constraints, and the pip configuration that uses them, to `folder`: `prefix`, or one that will replace it.

    `packages` are versions by name. A pip configuration at `prefix` is extended; if it cannot be parsed none is
    written. Raises `OSError`.
    """
    write_atomically(folder / CONSTRAINTS, constraints_file_text(packages))
    settings = guard_files(prefix)[1]
    already = settings.read_bytes() if settings.is_file() else b""
    try:
        text = add_to_pip_configuration(already, prefix / CONSTRAINTS)
    except configparser.Error:
        return  # pip cannot read it either; it is not ours to fix
    write_atomically(folder / PIP_FILE, text)


def remove_guards(prefix: Path) -> None:
    """Delete an environment's constraints, and what pip's configuration says of them; raise `OSError`."""
    constraints, settings = guard_files(prefix)
    constraints.unlink(missing_ok=True)
    if settings.is_file():
        already = settings.read_bytes()
        text = remove_from_pip_configuration(already)
        if text:
            write_atomically(settings, text)
        elif already:
            settings.unlink()


def is_pinned_in_constraints(name: str) -> bool:
    """Return whether constraints pin a package: torch, its family, all of ONNX Runtime, DirectML and Triton."""
    return carried_by_torch_index(name) or name.startswith(_BESIDE)
