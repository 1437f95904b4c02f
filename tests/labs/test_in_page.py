"""Labs that install nothing are played in a browser: their commands run in the page's own Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from assistant.detect import detect
from assistant.labs import Lab, lab_at, labs, scene
from assistant.labs import play as playing
from assistant.labs.in_page import run_in_page
from assistant.labs.play import Play
from assistant.model.errors import BadInput

IN_BROWSER = [key for key, one in labs().items() if "browser" in one.english.systems]


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let labs run as they do in a browser, where nothing can be started."""
    for module in (scene, playing):
        monkeypatch.setattr(module, "IN_BROWSER", True)


def typed(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run a line for Python as the page does."""
    return run_in_page([sys.executable, *arguments], variables, folder)


def test_a_program_runs_as_if_it_were_started(tmp_path: Path) -> None:
    """It has its arguments, variables, folder and the modules beside it, and afterwards nothing of that is left."""
    (tmp_path / "beside.py").write_text("NAME = 'one'")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, beside\nprint(sys.argv[1:], os.environ['ASKED'], os.getcwd() == sys.path[0], beside.NAME)\n"
        "print('to the other stream', file=sys.stderr)\nassert __name__ == '__main__'\n"
    )
    before = os.getcwd(), dict(os.environ), sys.argv[:], sys.path[:]  # noqa: PTH109 - as a program sees it
    assert typed(tmp_path, str(program), "a", ASKED="yes") == (0, "['a'] yes True one\nto the other stream")
    (tmp_path / "beside.py").write_text("NAME = 'two'  # changed by the learner")
    assert "two" in typed(tmp_path, str(program), ASKED="yes")[1]
    assert before == (os.getcwd(), dict(os.environ), sys.argv, sys.path)  # noqa: PTH109 - likewise


@pytest.mark.parametrize(
    ("code", "status", "last"),
    [
        ("print(6 * 7)", 0, "42"),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('one sentence')", 1, "one sentence"),
        ("import sys; sys.exit()", 0, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("1 +", 1, "SyntaxError: invalid syntax"),
    ],
)
def test_it_ends_as_python_does(code: str, status: int, last: str, tmp_path: Path) -> None:
    """With the exit status and the last line that Python would have, and a traceback of the program alone."""
    ended, printed = typed(tmp_path, "-c", code)
    assert (ended, printed.rpartition("\n")[2]) == (status, last)
    assert "in_page" not in printed


def test_the_assistant_answers_there(tmp_path: Path) -> None:
    """Its commands are typed as anywhere; a wrong one ends with its own sentence."""
    status, printed = typed(tmp_path, "-m", "assistant", "plan", "--replay", "linux-ubuntu2404-rtx4090")
    assert (status, "cu130" in printed) == (0, True)
    status, printed = typed(tmp_path, "-m", "assistant", "plan", "--backend", "abacus")
    assert (status, "abacus" in printed) == (2, True)


def test_a_program_reads_what_it_is_given(tmp_path: Path) -> None:
    """As through a pipe; where nothing is given, its input is at its end."""
    read = [sys.executable, "-c", "import sys; print(repr(sys.stdin.buffer.read().decode()))"]
    assert run_in_page(read, {}, tmp_path, given="日志\n") == (0, "'日志\\n'")
    assert run_in_page(read, {}, tmp_path) == (0, "''")


@pytest.mark.parametrize("line", ["uv pip", "pip install", "venv env", "assistant setup", "assistant verify"])
def test_nothing_is_installed_there(line: str, tmp_path: Path) -> None:
    """What would install something, or look at what is installed, says where it can be done."""
    with pytest.raises(BadInput, match=r"`(uv|pip|venv|assistant \w+)` cannot run in a browser"):
        typed(tmp_path, "-m", *line.split())


@pytest.mark.parametrize("command", ["detect", "plan", "doctor"])
def test_a_browser_is_not_taken_for_a_machine(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks about this machine there is told to name a recorded one; that one is answered."""
    monkeypatch.setattr(sys.modules[detect.__module__], "IN_BROWSER", True)
    status, printed = typed(tmp_path, "-m", "assistant", command)
    assert (status, printed.count("\n")) == (2, 0)
    assert "A browser shows nothing of the machine" in printed
    assert "--replay" in printed
    assert typed(tmp_path, "-m", "assistant", command, "--replay", "linux-ubuntu2404-rtx4090")[0] == 0


@pytest.mark.usefixtures("browser")
def test_other_labs_are_refused_there(tmp_path: Path) -> None:
    """A lab that makes environments says so before it does anything."""
    with pytest.raises(BadInput, match="cannot be played in a browser"):
        Lab("wrong-kernel", tmp_path / "lab").start()


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("key", IN_BROWSER)
def test_a_lab_is_played_there_to_its_end(key: str, tmp_path: Path) -> None:
    """It is broken, its cause is diagnosed, its wrong ways mend nothing and its right ones do."""
    definition = lab_at(key)
    for kind, ways in (("right", definition.ways.right), ("wrong", definition.ways.wrong)):
        for way in ways:
            play = Play(definition, tmp_path / "lab")
            play.start()
            assert play.symptom().status
            assert play.causes()[0].key == play.text.diagnosis
            for line in definition.filled_way(way).lines:
                play.scene.do(line)
            assert (play.fault() == "") == (kind == "right"), way.name
