"""What in an environment keeps a later `pip install` or `uv pip install` from silently replacing torch's build.

The environment gets a constraints file, and pip's own configuration inside the environment (`pip.conf` in its prefix)
names it, so every pip that runs there reads it. uv reads no such file: the kernelspec and the scripts that activate the
environment set `UV_CONSTRAINT`, and with it the plan's variables, so that a terminal gets what a kernel gets.

uv and Python's venv write one script a shell (uv's are virtualenv's:
https://github.com/pypa/virtualenv/tree/main/src/virtualenv/activation). Each gets lines that set a variable unless the
user has set it, and drop it again on leaving the environment, or on activating another. All carry `MARK`, by which
`without_variables` finds them.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from assistant.catalog import carried_by_torch_index
from assistant.host.files import write_atomically
from assistant.host.pip_settings import with_coding_line
from assistant.i18n import _
from assistant.model.plan import Plan
from assistant.model.report import Environment
from assistant.model.shell import ALLOW_SCRIPTS, HERE, Shell, quote, quote_for_powershell, setting

CONSTRAINTS = "assistant-constraints.txt"
THIS_SYSTEM = f"sys_platform == '{sys.platform}'"
PIP_FILE = "pip.ini" if os.name == "nt" else "pip.conf"
# The lines between which an addition to pip's configuration stands; the second says that it began with an end of line.
_MARKS = ("# torch-setup-assistant", "# torch-setup-assistant, after a last line without an end")
_BESIDE = ("onnxruntime", "torch-directml", "triton")  # flavours of one package overwrite one another's files


def constraints_file_text(packages: Mapping[str, str]) -> str:
    """Return a constraints file that pins those `packages` (versions by name) that `is_pinned_in_constraints`."""
    # For this system alone: `uv add` takes them over into a project, whose lock is for others, too.
    pins = (
        f"{name}=={version} ; {THIS_SYSTEM}"
        for name, version in sorted(packages.items())
        if is_pinned_in_constraints(name)
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


MARK = "torch-setup-assistant"
FOLDER = "Scripts" if os.name == "nt" else "bin"
# What such a line may hold: no shell then reads anything into it but the "%" of a URI, which batch files double.
_PLAIN = re.compile(r"[\w.:/%+=,~-]+", re.ASCII)


class Script(NamedTuple):
    """How one shell's script is changed: `drop` goes behind the text that `leaving` matches, `keep` to the end.

    In both, {name} is the variable, {value} what it is set to, {ours} its part behind the last slash: by that another
    environment's value is told to be the assistant's, too.
    """

    file: str
    leaving: str
    drop: str
    keep: str


_SCRIPTS = (
    Script(
        "activate",
        r"(?m)^    unset VIRTUAL_ENV\n",
        '    case "${{{name}-}}" in *{ours}) unset {name};; esac # {mark}\n',
        "[ -n \"${{{name}-}}\" ] || export {name}='{value}' # {mark}\n",
    ),
    Script(
        "activate.fish",
        r"(?m)^    set -e VIRTUAL_ENV\n",
        "    string match -q '*{ours}' -- \"${name}\"; and set -e {name} # {mark}\n",
        "test -n \"${name}\"; or set -gx {name} '{value}' # {mark}\n",
    ),
    Script(
        "activate.csh",
        r"unsetenv VIRTUAL_ENV;",
        ' : {mark}; printenv {name} | grep -q "{ours}"\\$ && unsetenv {name}; : {mark};',
        "printenv {name} > /dev/null || setenv {name} '{value}' # {mark}\n",
    ),
    Script(
        "activate.ps1",
        r"(?m)^function global:deactivate ?\(\[switch\] ?\$NonDestructive\) \{\r?\n",
        "    if ($env:{name} -like '*{ours}') {{ Remove-Item env:{name} }} # {mark}\n",
        "if (-not $env:{name}) {{ $env:{name} = '{value}' }} # {mark}\n",
    ),
    Script(
        "activate.xsh",
        r"(?m)^    def deactivate\(self, args=None\):\n",
        '        if str(self.env.get("{name}", "")).endswith("{ours}"): del self.env["{name}"] # {mark}\n',
        'if not __xonsh__.env.get("{name}"): __xonsh__.env["{name}"] = "{value}" # {mark}\n',
    ),
    Script(
        "activate.nu",
        r"(?m)^    load-env \$new_env\n",  # hiding the overlay takes all back
        "    if ($env.{name}? | default '' | str ends-with '{ours}') or ($env.{name}? | is-empty) "
        "{{ $env.{name} = '{value}' }} # {mark}\n",
        "",
    ),
    Script(
        "activate.bat",
        r"\A(?:@REM .*\r?\n)*",
        '@if "%{name}:~-{length}%"=="{ours}" set "{name}=" & rem {mark}\n',
        '@if not defined {name} set "{name}={value}" & rem {mark}\n',
    ),
    Script(
        "deactivate.bat",
        r"\A(?:@REM .*\r?\n)*",
        '@if "%{name}:~-{length}%"=="{ours}" set "{name}=" & rem {mark}\n',
        "",
    ),
)


def write_variables(prefix: Path, variables: Mapping[str, str]) -> None:
    """Set variables in the activation scripts of an environment, in place of those that an earlier call set.

    A script that is missing, signed, or of another form stays as it is. A value that a shell could misread is left out.
    Raises `OSError`.
    """
    plain = {name: value for name, value in variables.items() if _PLAIN.fullmatch(value)}
    for script in _SCRIPTS:
        file = prefix / FOLDER / script.file
        try:
            text = file.read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        changed = with_variables(script, without_variables(text), plain)
        if changed != text and "# SIG #" not in text:
            write_atomically(file, changed.encode("utf-8", "surrogateescape"))


def with_variables(script: Script, text: str, variables: Mapping[str, str]) -> str:
    """Return a script's text with lines that set variables; unchanged if it is not of the form that `script` has."""
    place = re.search(script.leaving, text)
    if place is None:
        return text
    drop, keep = (_lines(template, script, variables) for template in (script.drop, script.keep))
    if "\r\n" in text:
        drop, keep = drop.replace("\n", "\r\n"), keep.replace("\n", "\r\n")
    return f"{text[: place.end()]}{drop}{text[place.end() :]}{keep}"


def _lines(template: str, script: Script, variables: Mapping[str, str]) -> str:
    """Return a template filled in for each variable."""
    double = "%%" if script.file.endswith(".bat") else "%"
    return "".join(
        template.format(
            name=name,
            value=value.replace("%", double),
            ours=(ours := value.rpartition("/")[2]).replace("%", double),
            length=len(ours),
            mark=MARK,
        )
        for name, value in variables.items()
    )


def without_variables(text: str) -> str:
    """Return a script's text without what `with_variables` put there."""
    inline = re.sub(rf" : {MARK};.*?: {MARK};", "", text)
    return re.sub(rf"(?m)^.*(?:#|& rem) {MARK}\r?\n", "", inline)


def terminal_line(environment: Environment, plan: Plan, shell: Shell = HERE) -> str:
    """Return the line that sets the plan's variables in a terminal and activates an environment there.

    For `Shell.WINDOWS`, where either shell may be at hand, it is PowerShell's. Environments of conda, and those without
    a folder of scripts, are activated by conda.
    """
    python = environment.python
    separator = "/" if shell is Shell.SH else "\\"
    shell = Shell.POWERSHELL if shell is Shell.WINDOWS else shell
    folder = python.rpartition(separator)[0]
    script = {
        Shell.SH: f"source {quote(f'{folder}/activate', shell)}",
        Shell.CMD: quote(f"{folder}\\activate.bat", shell),
        Shell.POWERSHELL: f"{ALLOW_SCRIPTS}; & {quote_for_powershell(f'{folder}{separator}Activate.ps1')}",
    }[shell]
    by_conda = (Path(environment.path) / "conda-meta").is_dir()
    if by_conda or folder.rpartition(separator)[2] not in {"bin", "Scripts"}:
        script = f"conda activate {quote(environment.path, shell)}"
    lines = [setting(name, value, shell) for name, value in plan.env.items()]
    return (" && " if shell is Shell.CMD else "; ").join([*lines, script])
