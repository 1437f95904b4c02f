"""`assistant lab`: what JupyterLab is told, which notebooks it serves, and what is said where a package is missing."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from refused import refused, without

from assistant.cli import lab as notebooks
from assistant.cli.lab import notebooks_folder, put_copies
from assistant.host.extras import missing_extra_error

ROOT = Path(__file__).parents[2]


def started(*words: str, home: Path, code: str = "", config: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command with all of its folders in `home`."""
    env = forked.at_home(home, JUPYTER_CONFIG_DIR=str(config or home), JUPYTER_RUNTIME_DIR=str(home))
    command = [sys.executable, *(("-c", code) if code else ("-m", "assistant")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.mark.process
@pytest.mark.parametrize("options", [(), ("--app",)])
def test_a_missing_extra_is_one_sentence_with_its_command(options, tmp_path) -> None:
    """What is missing and the command for this very environment; exit code 1, no traceback, nothing written."""
    done = started("lab", *options, code=without("jupyterlab"), home=tmp_path)
    refused(done, 1, "This needs the extra [lab], of which jupyterlab is not", f"-m pip install -e '{ROOT}[lab]'\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_a_package_that_is_missed_on_the_way_is_named_too(tmp_path) -> None:
    """A module of an extra that cannot be imported is no fault of the assistant's."""
    missing = "ModuleNotFoundError('no', name='matplotlib.figure')"
    code = f"from assistant.cli.commands import _error_for; print(_error_for({missing}))"
    assert started(code=code, home=tmp_path).stdout.startswith("This needs the extra [lab], of which matplotlib is not")


@pytest.mark.process
@pytest.mark.parametrize(("options", "mode"), [((), "lab"), (("--app",), "doc")])
def test_jupyterlab_opens_the_users_copy_of_the_setup(options, mode, tmp_path: Path) -> None:
    """What opens is the user's copy of the guided notebook, in a workspace of its own; with --app it stands alone.

    Of Jupyter's own log, the terminal shows the address and what is wrong, unless the user asks for more.
    """
    done = started("lab", *options, "--show-config", home=tmp_path)
    assert f".default_url = '/{mode}/workspaces/pytorch/tree/setup.ipynb'" in done.stdout
    assert "Application\n  .log_level = 'WARN'" in done.stdout
    more = started("lab", *options, "--show-config", "--log-level=INFO", home=tmp_path).stdout
    assert "  .log_level = 'INFO'" in more  # of the server itself, which is the narrower one
    folder = tmp_path / "pytorch-setup-assistant" / "notebooks"
    assert str(folder) in done.stdout
    assert str(folder) in done.stderr
    assert (folder / "setup.ipynb").is_file()


@pytest.mark.process
def test_questions_about_news_and_a_build_are_kept_away_in_this_process_only(tmp_path: Path) -> None:
    """JupyterLab reads our configuration first and the user's still, and nothing is written to the user's."""
    page = tmp_path / ".jupyter" / "labconfig" / "page_config.json"
    page.parent.mkdir(parents=True)
    page.write_text(of_the_user := json.dumps({"disabledExtensions": {"@ann/clock": True}}))
    code = "import sys, assistant.cli.lab as lab; lab.sys.executable = {!r}; from assistant.cli import main; main()"
    told = tmp_path / "told.py"
    told.write_text(
        f"#!{sys.executable}\nfrom jupyterlab_server.config import get_page_config\nprint(get_page_config([]))\n"
    )
    told.chmod(0o755)
    done = started("lab", code=code.format(str(told)), home=tmp_path, config=page.parents[1])
    answer = ast.literal_eval(done.stdout)
    assert set(answer["disabledExtensions"]) == {"@ann/clock", "@jupyterlab/apputils-extension:announcements"}
    assert answer["buildCheck"] is False
    assert answer["torchSetupAssistant"] == "serves"
    assert page.read_text() == of_the_user


@pytest.mark.process
def test_a_file_that_hides_the_package_is_named(tmp_path: Path) -> None:
    """Beside the notebooks no file and no folder may bear the package's name."""
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "assistant.py").write_text("x = 1\n")
    (tmp_path / "folder" / "assistant").mkdir(parents=True)
    for hides in (tmp_path / "file" / "assistant.py", tmp_path / "folder" / "assistant"):
        done = started("lab", "--folder", str(hides.parent), home=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"{hides} would hide the assistant's package of the same name")


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Give originals that can be changed, as another version of the assistant would bring them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    copied = tmp_path / "package" / "notebooks"
    shutil.copytree(notebooks_folder(), copied)
    monkeypatch.setattr(notebooks, "PACKAGE", copied.parent)
    return copied


def test_every_notebook_is_handed_out(shipped, tmp_path):
    """The folder holds all of them; a second start changes nothing."""
    folder = tmp_path / "mine"
    names = put_copies(folder)
    assert sorted(names) == sorted(path.relative_to(shipped).as_posix() for path in shipped.rglob("*.ipynb"))
    times = {name: (folder / name).stat().st_mtime_ns for name in names}
    assert put_copies(folder) == names
    assert times == {name: (folder / name).stat().st_mtime_ns for name in names}


def test_what_the_user_changed_is_kept(shipped, tmp_path):
    """A newer original renews an untouched copy; beside a changed one it gets a name of its own, once."""
    folder = tmp_path / "mine"
    put_copies(folder)
    (folder / "setup.ipynb").write_text("mine")
    assert put_copies(folder)["setup.ipynb"] == "setup.ipynb"
    for name in ("setup.ipynb", "gallery.ipynb"):
        (shipped / name).write_text("newer")
    assert put_copies(folder)["setup.ipynb"] == "setup-2.ipynb"
    (folder / "setup-2.ipynb").write_text("mine, too")
    names = put_copies(folder)
    assert (names["setup.ipynb"], names["gallery.ipynb"]) == ("setup-2.ipynb", "gallery.ipynb")
    held = {path.name: path.read_text() for path in folder.iterdir() if path.stem[:5] in {"setup", "galle"}}
    assert held == {"setup.ipynb": "mine", "setup-2.ipynb": "mine, too", "gallery.ipynb": "newer"}


@pytest.mark.usefixtures("shipped")
def test_a_folder_of_the_users_own_is_not_overwritten(tmp_path):
    """A notebook that was there before, or whose note was lost, counts as the user's."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "setup.ipynb").write_text("from long ago")
    assert put_copies(folder)["setup.ipynb"] == "setup-2.ipynb"
    assert (folder / "setup.ipynb").read_text() == "from long ago"


def test_under_uvx_the_command_is_run_anew_with_the_extra(monkeypatch):
    """What uvx runs lies in uv's cache, where nothing may be added: the command names the extra instead."""
    monkeypatch.setattr(sys, "prefix", "/home/ann/.cache/uv/archive-v0/M1qoK1yLzf9Hy1Is")
    monkeypatch.setattr(sys, "argv", ["torch-setup-assistant", "lab"])
    text = str(missing_extra_error("jupyterlab", "lab"))
    assert " type: uvx " in text
    assert text.endswith("[lab]' lab")
