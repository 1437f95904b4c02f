"""Commands that the assistant shows on Windows, pasted into cmd.

Wine has no PowerShell, so what is written for it, or for either shell, is not run here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from windows.conftest import EXPORTED, TARGET
from windows.wine import PYTHON, Done, Wine

pytestmark = pytest.mark.timeout(1200)

LEVEL = "--lang en"
LOCKED = r"{uv} pip compile --quiet --python {python} --format pylock.toml --output-file pylock.toml C:\wanted.in"


@pytest.fixture(scope="session")
def pasted(windows: Wine, project: str) -> Callable[..., Done]:
    """Give a function that pastes a line into a cmd which stands in the project's folder."""

    def run(line: str) -> Done:
        return windows.run("cmd", "/q", folder=project, typed=f"{line}\r\n")

    return run


def shown(done: Done, *words: str) -> list[str]:
    """Find the lines of an output that are indented as commands are and hold some words."""
    lines = [line.strip() for line in done.out.splitlines() if line.startswith("    ")]
    found = [line for line in lines if all(word in line for word in words)]
    assert found, done
    return found


@pytest.mark.usefixtures("installed")
def test_the_preview_of_an_installation(pasted: Callable[..., Done], windows: Wine) -> None:
    """Its lines, one after the other, make an environment, install into it and put it in its place."""
    target = r"C:\试试 看\torch"
    words = f'install --yes --backend cpu --dry-run --target "{target}"'
    preview = pasted(f"{PYTHON} start.py {LEVEL} {words}")
    (venv,), (install,), (move,) = (
        shown(preview, *part) for part in (["uv.exe", " venv "], ["uv.exe", " pip "], ["move "])
    )
    windows.path(r"C:\wanted.in").write_text("markupsafe==3.0.2\n", encoding="ascii")
    done = [
        pasted(line) for line in (venv, LOCKED.format(uv=venv.partition(" venv ")[0], python=PYTHON), install, move)
    ]
    python = rf"{target}\Scripts\python.exe"
    seen = windows.run(python, "-c", "import markupsafe, sys; print(ascii(sys.prefix), markupsafe.__version__)")
    assert seen.out == f"{target!a} 3.0.2\n", (preview, done, seen)


def test_the_terminal_of_a_finished_setup(pasted: Callable[..., Done], installed: Done) -> None:
    """The line at the end activates the environment, and the one for JupyterLab is a command that there is."""
    assert installed.code == 0
    again = pasted(f'{PYTHON} start.py {LEVEL} setup --yes --backend cpu --target "{TARGET}" --to {EXPORTED}')
    (activate,) = shown(again, "ctivate")
    entered = pasted(f"{activate} & set").out
    assert re.search(r"^VIRTUAL_ENV=C:.*torch cpu\r?$", entered, re.MULTILINE)  # uv's script is UTF-8, for a console
    (lab,) = shown(again, "start.py lab")
    assert "--folder" in pasted(f"{lab} --help").out


@pytest.mark.usefixtures("installed")
def test_a_next_step_with_the_path_of_an_environment(pasted: Callable[..., Done], windows: Wine) -> None:
    """What the report says for verifying again does so, once `assistant` is the command that was typed."""
    report = windows.path(rf"{EXPORTED}\report.md").read_text("utf-8")
    (line,) = re.findall(r"^assistant (verify --target .*)$", report, re.MULTILINE)
    done = pasted(f"{PYTHON} start.py {LEVEL} {line}")
    assert "All checks passed" in done.out, done
