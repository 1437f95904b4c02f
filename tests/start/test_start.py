"""`start.py` from outside: a small project with the real start.py, real environments, real uv and pip."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[project]
name = "small-project"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["assistant"]
[dependency-groups]
proof = []
test = ["iniconfig"]
"""
# Tells what it was called with and ends as told; pytest's place is taken by a module of that name.
COMMAND = """\
import os, sys
print(*sys.argv[1:], os.environ["SETUP_ASSISTANT_STARTED_AS"] if "typed" in sys.argv else os.getcwd(), sep='|')
sys.exit(7 if 'fail' in sys.argv else 0)
"""
SWITCHES = "assistant/catalog/data/telemetry.json"  # every child is told to keep quiet, the first ones too
NO_NETWORK = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_FIND_LINKS": "",
    "UV_HTTP_RETRIES": "0",  # uv would wait seconds for a server that is not there
}
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals, locks and scripts")


class Project:
    """A copy of start.py and of what it needs, with a command that is quick to install."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".assistant"
        ignore = shutil.ignore_patterns("__pycache__", "*.json", "rules", "*.svg")
        shutil.copytree(ROOT / "assistant", folder / "assistant", ignore=ignore)
        shutil.copy(ROOT / SWITCHES, folder / SWITCHES)
        shutil.copy(ROOT / "start.py", folder)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "torch_setup_assistant.py").write_text(COMMAND)
        (folder / "pytest.py").write_text("import iniconfig\n" + COMMAND)
        (folder / "tests" / "browser").mkdir(parents=True)
        (folder / "tests" / "browser" / "obtain.py").write_text("print('browser found')\n")

    def begin(self, *arguments: str, python: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
        """Start it; `python` replaces the interpreter and its script."""
        return subprocess.Popen(
            [*(python or (sys.executable, "start.py")), *arguments],
            cwd=self.folder,
            env={**os.environ, "LANGUAGE": "en", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self, *arguments: str, python: tuple[str, ...] = (), **environment: str) -> tuple[int, str, str]:
        """Start it to its end; answer exit code, stdout and stderr."""
        child = self.begin(*arguments, python=python, **environment)
        out, err = child.communicate(timeout=300)
        return child.returncode, out.strip(), err.strip()

    def environments(self) -> list[str]:
        """Name the environments that are there."""
        return sorted(folder.name for folder in self.home.glob("python*"))


@pytest.fixture
def project(tmp_path) -> Project:
    """Give a fresh checkout of the small project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


def without_pip(*, ensurepip: bool) -> tuple[str, ...]:
    """Give a Python that has no pip, as Debian's, nor a way to make one unless `ensurepip`."""
    hidden = "" if ensurepip else "sys.modules['ensurepip'] = None; "
    code = f"import sys, runpy; {hidden}sys.path.insert(0, '.'); runpy.run_path('start.py', run_name='__main__')"
    return (sys.executable, "-S", "-c", code)


def test_first_start_prepares_and_second_does_not(project):
    """One line per stage, once; then the command runs with its arguments, in the caller's folder, ending as it does.

    What is only half there is made anew.
    """
    code, out, err = project.start("detect", "--json", "fail")
    assert (code, out) == (7, f"detect|--json|fail|{project.folder}")
    assert err.splitlines()[0].startswith("Making the assistant's own environment")
    assert err.splitlines()[-1].startswith("Ready after")
    assert len(err.splitlines()) <= 4
    led = {line for file in project.home.glob("python*/**/*.pth") for line in file.read_text("utf-8").splitlines()}
    assert led
    assert str(project.folder) not in led  # a whole path may hold what another encoding than UTF-8 reads otherwise
    assert project.start("plan") == (0, f"plan|{project.folder}", "")
    assert project.start("typed", PATH="/nowhere") == (0, f"typed|{shlex.quote(sys.executable)} start.py", "")
    known = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    name = "py" if sys.platform == "win32" else Path(sys.executable).name
    assert project.start("typed", PATH=known) == (0, f"typed|{name} start.py", "")
    (folder,) = project.home.glob("python*")  # now as a start that was killed leaves it, right name and all
    (folder / "stamp").write_text("")
    shutil.rmtree(folder / ("Lib" if sys.platform == "win32" else "lib"))
    assert project.start("detect")[:2] == (0, f"detect|{project.folder}")


@pytest.mark.full
def test_a_folder_with_a_chinese_name_is_found_in_every_encoding(tmp_path):
    """The private environment finds the project where Python reads its own files in another encoding than UTF-8."""
    folder = tmp_path / "新建 文件夹"
    folder.mkdir()
    project = Project(folder)
    project.start("detect")
    (python,) = project.home.glob("python*")
    program = python / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    other = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([program, "-c", "import assistant"], env=other, cwd=tmp_path, check=True)


@pytest.mark.full
def test_a_script_finds_the_project_afterwards(project, tmp_path):
    """What uv links from its cache into the private environment is not written: the next one would get that, too."""
    project.start("detect")
    script = tmp_path / "script.py"
    source = f'[tool.uv.sources]\nsmall-project = {{ path = "{project.folder.as_posix()}", editable = true }}'
    lines = ["/// script", 'dependencies = ["small-project"]', *source.splitlines(), "///"]
    script.write_text("\n".join([*(f"# {line}" for line in lines), "import assistant.model"]), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "uv", "run", "--python", sys.executable, script], cwd=tmp_path, check=True)


@pytest.mark.full
def test_each_command_gets_what_it_needs(project):
    """The terminal's commands get the core, models and notebooks an extra; what holds more serves what needs less."""

    def kinds() -> set[str]:
        return {name.rpartition("-")[2] for name in project.environments()}

    project.start("--lang", "zh_CN", "plan")
    assert kinds() == {"core"}
    assert project.start("onnx", "check")[0] == 0
    assert kinds() == {"core", "onnx"}
    assert project.start()[:2] == (0, f"lab|{project.folder}")
    assert kinds() == {"core", "onnx", "lab"}
    assert "[lab]" in (project.home / "start.log").read_text()
    assert project.start("labs", "check", "numpy-abi") == (0, f"labs|check|numpy-abi|{project.folder}", "")
    shutil.rmtree(next(project.home.glob("*-core")))
    assert project.start("plan") == (0, f"plan|{project.folder}", "")
    assert kinds() == {"onnx", "lab"}
    assert project.start("mcp", "--skill")[0] == 0  # the server for agents is in none of them
    assert kinds() == {"onnx", "lab", "agents"}


def test_tests_get_their_packages_and_a_browser(project):
    """`start.py test` installs the test group, looks for a browser and hands pytest its arguments and exit code."""
    code, out, err = project.start("test", "-k", "fail")
    assert (code, out) == (7, f"-k|fail|{project.folder}")
    assert err.splitlines()[-1] == "browser found"
    assert project.start("detect") == (0, f"detect|{project.folder}", "")  # the tests' environment serves, too
    assert len(project.environments()) == 1


@pytest.mark.full
def test_failed_install_leaves_nothing_and_can_be_repeated(project, tmp_path):
    """Without a network the end of the log is shown, nothing is kept, and the next start begins anew.

    So it is where uv itself cannot be fetched.
    """
    for programs, missing in ((Path(sys.executable).parent, "hatchling"), (os.devnull, "distribution found for uv")):
        offline = {**NO_NETWORK, "PATH": str(programs), "UV_CACHE_DIR": str(tmp_path / "cache")}
        code, out, err = project.start("detect", **offline)
        assert (code, out) == (1, "")
        assert missing in err
        assert "could not be installed; the whole output is in" in err
        assert "Traceback" not in err
        assert project.environments() == []
    assert project.start("detect")[0] == 0


@pytest.mark.full
@pytest.mark.parametrize("name", ["pyproject.toml", "labextension/static/remoteEntry.js"])
def test_changed_project_gets_a_new_environment(project, name):
    """Another pyproject.toml, or another file of which it holds a copy, means another environment; the old one goes."""
    (project.folder / "labextension" / "static").mkdir(parents=True)
    project.start("detect")
    before = project.environments()
    changed = {"pyproject.toml": PYPROJECT.replace('version = "1"', 'version = "2"')}
    (project.folder / name).write_text(changed.get(name, "// newer"))
    assert project.start("detect")[0] == 0
    assert len(project.environments()) == 1
    assert project.environments() != before


@pytest.mark.full
@posix
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing(request_to_end, project, loopback_index, tmp_path):
    """Ctrl-C or `kill` in the middle of an install ends it with one sentence, exit code 130 and nothing half-made."""
    loopback_index.trouble["hatchling"] = "stall"
    stalled = {**NO_NETWORK, "PIP_INDEX_URL": loopback_index.url, "PATH": str(Path(sys.executable).parent)}
    child = project.begin("detect", **stalled, UV_CACHE_DIR=str(tmp_path / "cache"))
    while not (line := child.stderr.readline()).startswith("Installing"):
        assert line
    time.sleep(0.5)
    child.send_signal(request_to_end)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "")
    assert err.strip() == "Stopped. Nothing half-made is kept; start again whenever you like."
    assert project.environments() == []


@pytest.mark.full
@posix
def test_second_start_waits_for_the_first(project):
    """While another start prepares, this one says that it waits, and goes on afterwards."""
    import fcntl  # noqa: PLC0415 - exists on POSIX only

    project.home.mkdir()
    with (project.home / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = project.begin("detect")
        assert child.stderr.readline().startswith("Another start is at work in this folder")
    out, _err = child.communicate(timeout=300)
    assert (child.returncode, out.strip()) == (0, f"detect|{project.folder}")


@posix
def test_a_uv_that_fails_is_told_with_the_end_of_its_output(project, tmp_path):
    """What uv, the only installer, said at its end is shown, and nothing is kept."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\necho broken\nexit 1\n")
    uv.chmod(0o755)
    code, out, err = project.start("detect", PATH=f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    assert (code, out) == (1, "")
    assert "  broken" in err.splitlines()
    assert "could not be installed; the whole output is in" in err
    assert project.environments() == []


@pytest.mark.full
def test_python_without_pip_and_uv_makes_its_own(project):
    """Where the system's Python has no pip and there is no uv, ensurepip puts pip into the private environment."""
    code, out, err = project.start("detect", python=without_pip(ensurepip=True), PATH=os.devnull)
    assert (code, out) == (0, f"detect|{project.folder}"), err


def test_python_without_any_installer_says_what_to_do(project):
    """No uv, no pip, no ensurepip: one sentence and the next step, nothing left."""
    code, out, err = project.start("detect", python=without_pip(ensurepip=False), PATH=os.devnull)
    assert (code, out) == (1, "")
    assert "Neither uv nor pip can be had with this Python" in err
    assert "apt install python3-pip" in err
    assert project.environments() == []


@posix
def test_uv_alone_is_enough(project, tmp_path):
    """`uv run start.py` with no program on PATH makes the environment by that uv and the Python that it brought."""
    system, libc = ("macos", "none") if sys.platform == "darwin" else ("linux", "gnu")
    arch = platform.machine().replace("arm64", "aarch64")
    brought = tmp_path / "brought" / f"cpython-{platform.python_version()}-{system}-{arch}-{libc}"
    brought.mkdir(parents=True)
    for name in ("bin", "lib"):
        (brought / name).symlink_to(Path(sys.base_prefix) / name)
    only = {"UV_PYTHON_INSTALL_DIR": str(brought.parent), "UV_PYTHON_PREFERENCE": "only-managed"}
    uv = Path(sys.executable).with_name("uv")
    start = (str(uv), "run", "start.py")
    code, out, err = project.start("typed", python=start, PATH=os.devnull, **only)
    assert (code, out) == (0, f"typed|{shlex.join(start)}"), err
    assert [line.split()[0] for line in err.splitlines()] == ["Making", "Installing", "Ready"]
    (made,) = project.home.glob("python*")
    assert f"home = {brought}/bin" in (made / "pyvenv.cfg").read_text().splitlines()
    assert project.start("typed", python=start, PATH=str(uv.parent), **only) == (0, "typed|uv run start.py", "")


def test_folder_that_cannot_be_written_is_told(project):
    """Where the environment cannot be made, one sentence says where and why.

    Of Chinese on a Western console the words are lost, and the exit code is not.
    """
    project.home.write_text("a file in the way")
    code, _out, err = project.start("detect")
    assert code == 1
    assert "cannot be made in" in err
    assert "Traceback" not in err
    code, _out, err = project.start("detect", LANGUAGE="zh_CN", PYTHONIOENCODING="cp1252:strict")
    assert code == 1
    assert "???" in err
    assert "Traceback" not in err


def test_old_python_is_told_what_it_lacks():
    """A Python before 3.11 gets one sentence."""
    code = "import sys, runpy; sys.version_info = (3, 6, 15); runpy.run_path('start.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("The assistant needs Python 3.11 or newer, and this is Python 3.6.")
    assert len(done.stderr.splitlines()) == 1
