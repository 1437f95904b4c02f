"""Variables in the scripts that activate an environment, so that a terminal gets what its kernel gets.

uv and Python's venv write one script a shell (uv's are virtualenv's:
https://github.com/pypa/virtualenv/tree/main/src/virtualenv/activation). Each gets lines that set a variable unless the
user has set it, and drop it again on leaving the environment, or on activating another. All carry `MARK`, by which
`without_variables` finds them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from assistant.host.files import write_atomically

MARK = "torch-setup-assistant"
FOLDER = "Scripts" if os.name == "nt" else "bin"
# What such a line may hold: no shell then reads anything into it but the "%" of a URI, which batch files double.
_PLAIN = re.compile(r"[\w.:/%+=,~-]+", re.ASCII)


class Shell(NamedTuple):
    """How one shell's script is changed: `drop` goes behind the text that `leaving` matches, `keep` to the end.

    In both, {name} is the variable, {value} what it is set to, {ours} its part behind the last slash: by that another
    environment's value is told to be the assistant's, too.
    """

    file: str
    leaving: str
    drop: str
    keep: str


_SHELLS = (
    Shell(
        "activate",
        r"(?m)^    unset VIRTUAL_ENV\n",
        '    case "${{{name}-}}" in *{ours}) unset {name};; esac # {mark}\n',
        "[ -n \"${{{name}-}}\" ] || export {name}='{value}' # {mark}\n",
    ),
    Shell(
        "activate.fish",
        r"(?m)^    set -e VIRTUAL_ENV\n",
        "    string match -q '*{ours}' -- \"${name}\"; and set -e {name} # {mark}\n",
        "test -n \"${name}\"; or set -gx {name} '{value}' # {mark}\n",
    ),
    Shell(
        "activate.csh",
        r"unsetenv VIRTUAL_ENV;",
        ' : {mark}; printenv {name} | grep -q "{ours}"\\$ && unsetenv {name}; : {mark};',
        "printenv {name} > /dev/null || setenv {name} '{value}' # {mark}\n",
    ),
    Shell(
        "activate.ps1",
        r"(?m)^function global:deactivate ?\(\[switch\] ?\$NonDestructive\) \{\r?\n",
        "    if ($env:{name} -like '*{ours}') {{ Remove-Item env:{name} }} # {mark}\n",
        "if (-not $env:{name}) {{ $env:{name} = '{value}' }} # {mark}\n",
    ),
    Shell(
        "activate.xsh",
        r"(?m)^    def deactivate\(self, args=None\):\n",
        '        if str(self.env.get("{name}", "")).endswith("{ours}"): del self.env["{name}"] # {mark}\n',
        'if not __xonsh__.env.get("{name}"): __xonsh__.env["{name}"] = "{value}" # {mark}\n',
    ),
    Shell(
        "activate.nu",
        r"(?m)^    load-env \$new_env\n",  # hiding the overlay takes all back
        "    if ($env.{name}? | default '' | str ends-with '{ours}') or ($env.{name}? | is-empty) "
        "{{ $env.{name} = '{value}' }} # {mark}\n",
        "",
    ),
    Shell(
        "activate.bat",
        r"\A(?:@REM .*\r?\n)*",
        '@if "%{name}:~-{length}%"=="{ours}" set "{name}=" & rem {mark}\n',
        '@if not defined {name} set "{name}={value}" & rem {mark}\n',
    ),
    Shell(
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
    for shell in _SHELLS:
        file = prefix / FOLDER / shell.file
        try:
            text = file.read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        changed = with_variables(shell, without_variables(text), plain)
        if changed != text and "# SIG #" not in text:
            write_atomically(file, changed.encode("utf-8", "surrogateescape"))


def with_variables(shell: Shell, text: str, variables: Mapping[str, str]) -> str:
    """Return a script's text with lines that set variables; unchanged if it is not of the form that `shell` has."""
    place = re.search(shell.leaving, text)
    if place is None:
        return text
    drop, keep = (_lines(template, shell, variables) for template in (shell.drop, shell.keep))
    if "\r\n" in text:
        drop, keep = drop.replace("\n", "\r\n"), keep.replace("\n", "\r\n")
    return f"{text[: place.end()]}{drop}{text[place.end() :]}{keep}"


def _lines(template: str, shell: Shell, variables: Mapping[str, str]) -> str:
    """Return a template filled in for each variable."""
    double = "%%" if shell.file.endswith(".bat") else "%"
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
