"""Command lines and variables in the syntax of the shells that people paste into: sh, cmd and PowerShell."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path


class Shell(StrEnum):
    """A kind of shell: sh and similar ones, cmd, PowerShell, or `WINDOWS`: one of the latter two, unknown which."""

    SH = "sh"
    CMD = "cmd"
    POWERSHELL = "PowerShell"
    WINDOWS = "cmd, PowerShell"


HERE = Shell.WINDOWS if sys.platform == "win32" else Shell.SH

# What cmd and PowerShell take as it stands. PowerShell splits a bare -x.y in two, and reads commas, brackets and more:
# https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_parsing
_BARE = r"(?!-[^:.]*[:.])[\w\\/:.=+~-]+"
# PowerShell takes curly quotation marks for straight ones:
# https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
_POWERSHELL_QUOTES = r"(['\u2018-\u201b])"
# Windows refuses every script of PowerShell, one that was made here too, unless that is changed; here until the window
# is closed: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_execution_policies
ALLOW_SCRIPTS = "Set-ExecutionPolicy -Scope Process RemoteSigned -Force"


def shell_of(system: str | None) -> Shell:
    """Return the kind of shell of a system ("windows" or another), of this system for None."""
    return HERE if system is None else Shell.WINDOWS if system == "windows" else Shell.SH


def command_line(words: Iterable[str | Path], shell: Shell = HERE) -> str:
    """Return the command line, quoted for a shell, that runs a program with arguments.

    No quoted program runs in both cmd and PowerShell, so for `Shell.WINDOWS` a line with one starts `powershell -c`.
    """
    program, *rest = map(str, words)
    if shell is Shell.SH:
        return shlex.join([program, *rest])
    if re.fullmatch(_BARE, program):
        return " ".join([program, *(quote(word, shell) for word in rest)])
    if shell is Shell.CMD:
        return " ".join(quote(word, shell) for word in (program, *rest))
    line = " ".join(["&", *(quote(word, Shell.POWERSHELL) for word in (program, *rest))])
    return line if shell is Shell.POWERSHELL else f'powershell -c "{line}"'


def quote(word: str, shell: Shell = HERE) -> str:
    """Return an argument, in quotation marks if the shell needs them; `Shell.WINDOWS` is quoted as cmd is."""
    if shell is Shell.SH:
        return shlex.quote(word)
    if re.fullmatch(_BARE, word):
        return word
    if shell is Shell.POWERSHELL:
        return quote_for_powershell(word)
    # https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments
    return '"{}"'.format(re.sub(r'(?<!\\)(\\*+)("|$)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), word))


def quote_for_powershell(text: str) -> str:
    """Quote a text for PowerShell so that nothing in it is expanded."""
    return "'{}'".format(re.sub(_POWERSHELL_QUOTES, r"\1\1", text))


def rewrite_for_both_shells(line: str) -> str:
    """Return a command line of cmd in a form that PowerShell runs, too.

    Only one with a quoted program changes, and none with a quotation mark that is never closed.
    """
    if not line.startswith('"'):
        return line
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        return command_line([*lexer], Shell.WINDOWS)
    except ValueError:  # no closing quotation mark
        return line


def settings(variables: Mapping[str, str], shell: Shell = HERE) -> Iterator[tuple[Shell, list[str]]]:
    """Yield the shell, for `Shell.WINDOWS` cmd and PowerShell, with the lines that set environment variables in it."""
    for each in (Shell.CMD, Shell.POWERSHELL) if shell is Shell.WINDOWS else (shell,):
        yield each, [setting(name, value, each) for name, value in variables.items()]


def setting(name: str, value: str, shell: Shell) -> str:
    """Return the line that sets a variable for the programs that this shell starts."""
    if shell is Shell.SH:
        return f"export {name}={shlex.quote(value)}"
    if shell is Shell.CMD:
        return f'set "{name}={value}"'  # without them, a blank before what follows would belong to the value
    return f"$env:{name} = {quote_for_powershell(value)}"
