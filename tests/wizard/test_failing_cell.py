"""A cell that failed: whose environment is meant, what can be pressed there, and what the magic takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from runners import InlineRunner

import torch_setup_assistant
from assistant import wizard
from assistant.host.live import LiveHost
from assistant.install import EnvironmentFolder
from assistant.model.finding import Diagnosis, Interpreter, Remedy
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.actions import Choose
from assistant.session.remediation import all_fixes, best_fix_name, fix_folder
from assistant.session.session import Session
from assistant.session.state import Detected, Diagnosed, Mended, Outcome, Page, Source, State, Task
from assistant.session.store import Store, state_for_cell
from assistant.wizard import html
from assistant.wizard.panels.answer import draw_causes, draw_title
from assistant.wizard.panels.diagnose import apply_actions, make_footer

pytestmark = pytest.mark.process

MACHINE = Machine(os="linux", wsl=False, arch="x86_64", glibc="2.39", python="3.12")
FIX = Remedy(text="Remove six.", commands=("python -m pip uninstall -y six",))
PLANNED = Remedy(text="Plan.", plan=Plan(backend=Backend.CPU, variant="cpu", torch="2.14.1", python="3.12"))
NOWHERE = Source()


def make_environment(folder: Path) -> Path:
    """Make something that looks like an environment; give its Python."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    python.parent.mkdir(parents=True)
    python.write_text("")
    (folder / "pyvenv.cfg").write_text("version = 3.12.4\n")
    return python


def answered(python: Path, source: Source = NOWHERE) -> State:
    """Give a cell's state whose printed text has one cause, with two fixes."""
    cause = Diagnosis(key="cause", title="A cause", cause="It is so.", remedies=(FIX, PLANNED))
    begins = state_for_cell("a log", str(python))
    return replace(
        begins,
        detected=Detected(detection=Detection(machine=Machine(os="linux"))),
        diagnosed=Diagnosed(diagnoses=(cause,), explained=begins.pasted, source=source),
    )


def test_the_setup_begins_at_what_is_wrong_in_the_kernels_environment(tmp_path: Path) -> None:
    """By whichever name its Python is called; colours are gone from the text."""
    python = make_environment(tmp_path / "env")
    other = python.with_name("python3")
    other.write_text("")
    begins = state_for_cell("\x1b[31mValueError\x1b[39m: odd", str(other))
    assert begins.page is Page.WRONG
    assert begins.pasted.text == "ValueError: odd"
    assert begins.environment == Environment(path=str(tmp_path / "env"), python=str(python))


def test_a_kernel_on_another_machine_has_no_environment_here() -> None:
    """Nor has one whose Python nobody knows."""
    assert state_for_cell("a log", "/nowhere/bin/python").environment is None
    assert state_for_cell("a log", "python").environment is None


def test_the_cause_is_looked_for_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Detection is followed by the answer, with the packages of that kernel; no plan is made, and nothing is saved."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    begins = state_for_cell("ImportError: libd3d12.so: cannot open shared object file", sys.executable)
    session = Session(LiveHost(), InlineRunner(), Store(tmp_path / "state"), begins, guided=True)
    session.begin(Task.DETECT)
    assert session.state.running is None
    assert [cause.key for cause in session.state.diagnosed.diagnoses] == ["directml-on-native-linux"]
    assert "pytest" in session.state.detection.machine.packages
    assert session.state.planning is None
    assert Store(tmp_path / "state").read() is None


def test_a_kernel_without_torch_is_offered_the_build_that_fits(tmp_path: Path) -> None:
    """It goes into that kernel's environment, once Install is pressed; other modules ask for no torch."""
    python = make_environment(tmp_path / "env")
    for module, offers in (("torch", True), ("numpy", False)):
        log = f"Cell In[1], line 1\n----> 1 import {module}\nModuleNotFoundError: No module named '{module}'"
        begins = replace(state_for_cell(log, str(python)), detected=Detected(detection=Detection(machine=MACHINE)))
        session = Session(LiveHost(), InlineRunner(), None, begins)
        session.begin(Task.DIAGNOSE)
        assert session.state.diagnosed.diagnoses[0].key == "kernel-env-mismatch"
        way = best_fix_name(session.state)
        assert bool(way) is offers
        if way:
            assert apply_actions(way, session.state)[0] == Choose(target=str(tmp_path / "env"))
            assert make_footer(session.state).label == "Mend it"


def test_a_kernel_that_answers_without_torch_is_no_guess(tmp_path: Path) -> None:
    """What is said is what was seen; where its environment cannot take the build, no words promise that."""
    log = "Cell In[1], line 1\n----> 1 import torch\nModuleNotFoundError: No module named 'torch'"
    asked = replace(MACHINE, packages={"numpy": "2.1.0"})
    for folder, text in (("env", "into the environment of this kernel"), (".assistant/env", "Make an environment")):
        python = make_environment(tmp_path / folder)
        begins = replace(state_for_cell(log, str(python)), detected=Detected(detection=Detection(machine=asked)))
        session = Session(LiveHost(), InlineRunner(), None, begins)
        session.begin(Task.DIAGNOSE)
        cause = session.state.diagnosed.diagnoses[0]
        assert cause.sure
        assert "The environment of this notebook has no PyTorch" in draw_title(session.state)
        assert text in str(cause.remedies[-1].text)


CELL = """---------
{kind}   Traceback (most recent call last)
Cell In[3], line 2
      1 a = 1
----> 2 {code}
{frame}
{kind}: {why}
"""
FRAME = '  File "/usr/lib/python3/dist-packages/pandas/core/indexes/base.py", line 3812, in get_loc'
OTHER_FRAME = '  File "C:\\env\\Lib\\site-packages\\pandas\\core\\indexes\\base.py", line 3812, in get_loc'

MISTAKES = {
    "zero": ("1 / 0", "ZeroDivisionError", "division by zero", ""),
    "shape": ("np.zeros(3).reshape(2, 2)", "ValueError", "cannot reshape array of size 3 into shape (2,2)", ""),
    "torch's shape": ("a @ b", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", ""),
    "a line of the data": ("load()", "ValueError", "bad value in line 17 of data.csv", ""),
    "a library's line": ("table['price']", "KeyError", "'price'", FRAME),
    "a library's line on Windows": ("table['price']", "KeyError", "'price'", OTHER_FRAME),
}


def asked_about(printed: str) -> Session:
    """Give a session that has looked for the cause of what a cell of this Python's kernel printed."""
    begins = state_for_cell(printed, sys.executable)
    session = Session(
        LiveHost(), InlineRunner(), None, replace(begins, detected=Detected(detection=Detection(machine=MACHINE)))
    )
    session.begin(Task.DIAGNOSE)
    return session


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_cell_is_told_as_such(name: str) -> None:
    """With its line; nobody is sent to open an issue for it, and no environment is talked about."""
    code, kind, why, frame = MISTAKES[name]
    session = asked_about(CELL.format(code=code, kind=kind, why=why, frame=frame))
    shown = str(draw_causes(session.state))
    assert "The code itself fails, in line 2" in draw_title(session.state)
    assert html.code(f"----> 2 {code}\n{kind}: {why}") in shown
    assert "issue" not in shown
    assert "own environment" not in shown


def test_the_line_that_is_shown_is_the_cells_own_and_not_the_librarys() -> None:
    """As IPython prints it: the last frame, and its arrow, stand in the module that was called."""
    printed = """---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[1], line 3
      1 import collections
----> 3 collections.ChainMap()['price']

File ~/.pyenv/versions/3.11.7/lib/python3.11/collections/__init__.py:998, in ChainMap.__missing__(self, key)
    997 def __missing__(self, key):
--> 998     raise KeyError(key)

KeyError: 'price'
"""
    session = asked_about(printed)
    assert "The code itself fails, in line 3" in draw_title(session.state)
    assert html.code("----> 3 collections.ChainMap()['price']\nKeyError: 'price'") in draw_causes(session.state)


def test_the_line_of_a_program_is_its_own_too() -> None:
    """Of the frames that Python names, the innermost one of no library."""
    frames = [("train.py", 40), ("model.py", 12), ("/usr/lib64/python3.12/json/decoder.py", 355)]
    lines = [f'  File "{file}", line {line}, in run\n    go()' for file, line in frames]
    session = asked_about("\n".join(("Traceback (most recent call last):", *lines, "KeyError: 'price'")))
    assert "The code itself fails, in line 12" in draw_title(session.state)


def test_an_error_of_the_gpu_is_no_mistake_of_the_cell() -> None:
    """Though the last frame of its traceback is the cell's own."""
    printed = CELL.format(code="x.cuda()", kind="RuntimeError", why="an odd thing of the driver", frame="")
    session = asked_about(printed)
    assert session.state.diagnosed.explained == session.state.pasted
    assert "The code itself fails" not in draw_title(session.state)


def test_a_kernel_that_does_not_answer_is_said(tmp_path: Path) -> None:
    """Its cause is looked for all the same."""
    python = make_environment(tmp_path / "env")
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    session = Session(LiveHost(), InlineRunner(), None, state_for_cell("nobody knows", str(python)), guided=True)
    session.begin(Task.DETECT)
    assert "python-does-not-answer" in {finding.key for finding in session.state.findings}
    assert session.state.diagnosed.explained == session.state.pasted


def test_what_a_cell_printed_does_not_say_which_environment_is_changed(tmp_path: Path) -> None:
    """Its text may be a stranger's: a path in it, though an environment stands there, is only read."""
    python, other = make_environment(tmp_path / "env"), make_environment(tmp_path / "other")
    state = answered(python, source=Source(interpreter=Interpreter(path=str(other))))
    assert all_fixes(state)["cause#1"].environment.path == str(tmp_path / "env")
    assert fix_folder(all_fixes(state)["cause#2"], state) == str(tmp_path / "env")
    assert all_fixes(replace(state, installed=None))["cause#1"].environment is None


def test_condas_python_may_lie_in_the_environments_own_folder(tmp_path: Path) -> None:
    """It does so on Windows: the environment that a log's Python names is that folder, not the one above."""
    own, folder = make_environment(tmp_path / "own"), tmp_path / "envs" / "course"
    make_environment(folder)
    (folder / "conda-meta").mkdir()
    python = folder / "python.exe"
    python.write_text("")
    state = answered(own, source=Source(interpreter=Interpreter(path=str(python))))
    fixes = all_fixes(replace(state, failed_cell=False))
    assert fixes["cause#1"].environment == Environment(path=str(folder), python=str(python))
    assert EnvironmentFolder.at(str(python)).path == folder


@pytest.mark.parametrize("file", ["pyvenv.cfg", "conda-meta/python-3.12.4-h99e199e_1.json"])
def test_the_python_of_an_environment_is_what_its_own_files_say(tmp_path: Path, file: str) -> None:
    """Folders named after it are there on Linux and macOS only."""
    state = answered(make_environment(tmp_path / "env"))
    fix = all_fixes(state)["cause#2"]
    (tmp_path / "env" / "pyvenv.cfg").write_text("version = 3.11.2\n")
    assert fix_folder(fix, state) == ""
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "env" / "conda-meta").mkdir()
    (tmp_path / "env" / file).write_text("version = 3.12.4\n")
    assert fix_folder(fix, state) == str(tmp_path / "env")


def test_the_assistants_own_environment_is_not_changed(tmp_path: Path) -> None:
    """A plan becomes a new environment, and what cannot be done there is said."""
    state = answered(make_environment(tmp_path / ".assistant" / "env"))
    assert [name for name, fix in all_fixes(state).items() if fix.offered] == ["cause#2"]
    assert fix_folder(all_fixes(state)["cause#2"], state) == ""
    assert "This notebook runs in the assistant" in draw_causes(state)


def test_what_is_mended_asks_for_a_restart_and_for_no_other_fix(tmp_path: Path) -> None:
    """Another fix for the same cause is offered only where the first has not helped."""
    state = answered(make_environment(tmp_path / "env"))
    assert best_fix_name(state) == "cause#1"
    assert "Restart the kernel" not in draw_causes(state)
    fixed, failed = (Mended(way="cause#1", outcome=how) for how in (Outcome.FIXED, Outcome.NOT_FIXED))
    assert best_fix_name(replace(state, mended={"cause#1": fixed})) == ""
    assert best_fix_name(replace(state, mended={"cause#1": failed})) == "cause#2"
    assert "Restart the kernel of the notebook" in draw_causes(replace(state, mended={"cause#1": fixed}))


def test_the_magic_takes_the_last_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, with the causes behind it; before any cell has failed it is empty."""
    monkeypatch.delattr(sys, "last_value", raising=False)
    asked = []
    monkeypatch.setattr(wizard, "open_doctor", lambda printed, language: asked.append((printed, language)))
    shell = InteractiveShell()
    torch_setup_assistant.load_ipython_extension(shell)
    shell.run_line_magic("torch_doctor", "")
    shell.run_cell("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('odd')")
    shell.run_line_magic("torch_doctor", "zh_CN")
    (before, none), (printed, language) = asked
    assert (before, none, language) == ("", None, "zh_CN")
    assert "ZeroDivisionError: division by zero" in printed
    assert printed.endswith("KeyError: 'odd'\n")


def test_the_magic_says_what_to_install_where_there_are_no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with the command; a traceback would be the last one from then on."""

    def lacks(_printed: str, language: str | None) -> None:
        raise ModuleNotFoundError(language, name="ipywidgets")

    monkeypatch.setattr(wizard, "open_doctor", lacks)
    assert repr(wizard.torch_doctor()).startswith(
        "This needs the extra [lab], of which ipywidgets is not installed here; type: "
    )
