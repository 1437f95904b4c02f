"""What all tests share."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cpu_seconds import CpuSeconds
from filelock import FileLock
from loopback import LoopbackIndex

from assistant.i18n import _Current, use_language
from assistant.model.record import from_plain
from assistant.model.report import Environment


def pytest_configure(config: pytest.Config) -> None:
    """Keep what this user has refreshed or set up out of the tests, and measure what each file costs."""
    folder = tempfile.mkdtemp(prefix="assistant-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same modules again
    os.environ.update(XDG_DATA_HOME=folder, XDG_STATE_HOME=folder, LANGUAGE="en")
    use_language("en")
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # execnet ignores it, and so would all children
    whole = is_whole(config) and not config.option.full and not config.option.quick
    config.pluginmanager.register(CpuSeconds(config, lambda item: cost(item) < len(COSTS), whole=whole))


def is_whole(config: pytest.Config) -> bool:
    """Tell whether a run goes over all files, because neither files nor marks were named."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # whose files are always named
        return bool(config.workerinput["whole"])
    return config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.markexpr


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist what was typed."""
    node.workerinput["whole"] = is_whole(node.config)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our own options."""
    parser.addoption("--screenshots", action="store_true", help="Renew the pictures in notebooks/images.")
    parser.addoption("--quick", action="store_true", help="Run the tests that start no process.")
    parser.addoption("--full", action="store_true", help="Run all tests, as before a release.")


LINT = Path(__file__).parent / "lint"  # has a command of its own
# What a test costs beyond its own Python code, dearest first. Fixtures tell for most; the others are marked by hand.
COSTS = ("windows", "heavy", "browser", "torch", "process")
COST_OF_FIXTURE = {
    "windows": "windows",
    "browser": "browser",
    "jupyter_server": "browser",
    "cpu_setup": "torch",
    "loopback_index": "process",
    "fake_python": "process",
    "ground": "process",
}


def cost(item: pytest.Item) -> int:
    """Return the place in COSTS of the dearest mark; one more than the last for a pure test."""
    return next((place for place, name in enumerate(COSTS) if item.get_closest_marker(name)), len(COSTS))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they cost, run the dearest files first, and leave out those that are not of the chosen tier.

    Tests marked `full` run with `--full`, or where their file is named; `heavy` and `windows` where `-m` asks for them.
    Files stay whole, since notebooks' cells and the fixtures of a module belong together.
    """
    dearest: dict[Path, int] = {}
    for item in items:
        used = getattr(item, "fixturenames", ())
        marks = [mark for fixture, mark in COST_OF_FIXTURE.items() if fixture in used]
        marks = ["windows"] if "windows" in marks else marks  # it costs more than a browser, and is chosen apart
        for mark in marks or ["process"] * (item.path.suffix == ".ipynb"):  # a kernel runs the cells
            item.add_marker(mark)
        dearest[item.path] = min(cost(item), dearest.get(item.path, len(COSTS)))
    items.sort(key=lambda item: dearest[item.path])
    left_out = () if config.option.markexpr else ("heavy", "windows")
    if config.option.quick:
        left_out = COSTS
    if is_whole(config) and not config.option.full:
        left_out += ("full",)
    removed = {item for item in items if any(item.get_closest_marker(mark) for mark in left_out)}
    if is_whole(config):
        removed |= {item for item in items if LINT in item.path.parents}
    config.hook.pytest_deselected(items=list(removed))
    items[:] = [item for item in items if item not in removed]


STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec"}
started: list[str] = []
sys.addaudithook(lambda event, _arguments: started.append(event) if event in STARTS else None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin to watch for processes; those that a fixture starts count, too.

    A command that a test before has run in this process showed the options of sentences: that is over.
    """
    started.clear()
    _Current.options = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that starts a process and is not marked so: `--quick` would run it."""
    yield
    if started and cost(item) == len(COSTS):
        pytest.fail(f"The test starts a process ({started[0]}): mark it with pytest.mark.process.", pytrace=False)


@pytest.fixture
def loopback_index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve a package index of small wheels on 127.0.0.1."""
    folder = tmp_path / "loopback-index"
    folder.mkdir()
    index = LoopbackIndex(folder)
    yield index
    index.close()


@pytest.fixture(scope="session")
def cpu_setup(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Let the assistant itself set up a CPU environment, once for all tests; give the session that it printed."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cpu environment"  # one for all workers
    session = folder / "session.json"
    with FileLock(folder.with_suffix(".lock")):
        if not session.exists():
            folder.mkdir()
            session.write_text(_set_up(folder), encoding="utf-8")
    return json.loads(session.read_text(encoding="utf-8"))


def _set_up(folder: Path) -> str:
    command = [sys.executable, "-m", "assistant", "setup", "--yes", "--json", "--backend", "cpu"]
    places = {name: str(folder / name) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "JUPYTER_DATA_DIR")}
    done = subprocess.run(
        [*command, "--target", str(folder / "env"), "--to", str(folder / "exported")],
        env={**os.environ, **places, "LANGUAGE": "en"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"the CPU environment could not be set up:\n{done.stderr}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Give a function that makes a folder for something large; it is deleted when the module's tests are done."""
    made: list[Path] = []

    def make(name: str) -> Path:
        made.append(tmp_path_factory.mktemp(name))
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cpu_environment(cpu_setup: dict[str, object]) -> Environment:
    """Give the environment with torch, NumPy, onnx and ONNX Runtime that `cpu_setup` made."""
    return from_plain(cpu_setup["environment"], Environment, "the environment")
