"""Lines that people paste: each runs as meant in the shell that it is for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import tree_sitter
import tree_sitter_powershell
from tables import each

from assistant.model.shell import Shell, command_line, quote, rewrite_for_both_shells, settings, shell_of

WORDS = [
    "torch>=2,<3",
    "a b",
    "it's",
    "torch[x]",
    "2.10",
    "",
    "--index-url=https://x.y/whl",
    "张三",
    "a&b",
    "$HOME",
    "#",
]
PROGRAMS = [r"C:\环境\Scripts\python.exe", r"C:\Users\Ada L\uv.exe", "uv", r"\\server\a b\uv.exe", r".\my env\uv.exe"]
POWERSHELL = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))


@pytest.mark.process
def test_a_shell_hands_on_the_very_words() -> None:
    """What is pasted into sh reaches the program word by word."""
    line = command_line([sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *WORDS], Shell.SH)
    assert json.loads(subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout) == WORDS


@each("program", PROGRAMS)
@each("shell", [Shell.POWERSHELL, Shell.WINDOWS])
def test_powershell_runs_the_program_and_does_not_print_it(program: str, shell: Shell) -> None:
    """By its grammar the line is one command, whether a program's path has blanks in it or not."""
    parsed = POWERSHELL.parse(command_line([program, *WORDS], shell).encode()).root_node
    assert not parsed.has_error
    assert str(parsed).startswith("(program (statement_list (pipeline (pipeline_chain (command ")


def test_each_shell_of_windows_has_its_form_of_a_program_with_blanks() -> None:
    """Where nobody knows which one it is, the line is right in both."""
    words = [r"C:\Users\Ada L\uv.exe", "pip", "install", "torch>=2"]
    assert command_line(words, Shell.CMD) == r'"C:\Users\Ada L\uv.exe" pip install "torch>=2"'
    assert command_line(words, Shell.POWERSHELL) == r"& 'C:\Users\Ada L\uv.exe' pip install 'torch>=2'"
    assert command_line(words, Shell.WINDOWS) == f'powershell -c "{command_line(words, Shell.POWERSHELL)}"'
    plain = [r"C:\环境\uv.exe", *words[1:]]
    assert command_line(plain, Shell.WINDOWS) == r'C:\环境\uv.exe pip install "torch>=2"'


@each("word", ['say "hi"', "C:\\a b\\", 'a back\\"', "a b\\\\"])
def test_an_argument_for_cmd_is_quoted_as_python_does_it(word: str) -> None:
    """Quotation marks, and backslashes in front of them, reach the program as they are."""
    assert quote(word, Shell.CMD) == subprocess.list2cmdline([word])


def test_a_line_that_cmd_alone_runs_becomes_one_for_both() -> None:
    """A line that begins with quotation marks is what PowerShell would print."""
    assert rewrite_for_both_shells('"C:\\a b\\python.exe" -c "print(\'x\')"') == (
        "powershell -c \"& 'C:\\a b\\python.exe' -c 'print(''x'')'\""
    )
    unclosed = '"C:\\a b\\python.exe" -m pip install it\'s'
    for line in ('python -m pip install "torch>=2"', unclosed):
        assert rewrite_for_both_shells(line) == line


def test_a_variable_is_set_as_the_shell_wants_it() -> None:
    """One line for sh; on Windows one for each shell, where it may be either."""
    assert dict(settings({"A": "b c"}, Shell.SH)) == {Shell.SH: ["export A='b c'"]}
    both = dict(settings({"A": "b c"}, Shell.WINDOWS))
    assert both == {Shell.CMD: ['set "A=b c"'], Shell.POWERSHELL: ["$env:A = 'b c'"]}
    assert [shell_of(system) for system in ("linux", "macos", "windows")] == [Shell.SH, Shell.SH, Shell.WINDOWS]
