"""Installations through a session, by the real uv and the real pip: each ends verified, or nothing of it stays."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from install.faults import picture
from loopback import LoopbackIndex, with_code
from runners import InlineRunner, asked, watch

from assistant.catalog import catalog
from assistant.catalog.catalog import Bundle
from assistant.catalog.tables import Trial
from assistant.host.live import LiveHost
from assistant.install import Sources
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.report import Progress, Step
from assistant.session.actions import Resume
from assistant.session.session import Session, ThreadRunner
from assistant.session.state import Choices, Detected, Phase, Planned, State, Task

pytestmark = pytest.mark.process

FAKE = Path(__file__).parents[1] / "verify" / "faketorch" / "torch" / "__init__.py"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
Make = Callable[..., Session]


@pytest.fixture
def make(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Give a function that makes a session whose only packages are a torch of NumPy and a NumPy that is borrowed."""
    return maker(loopback_index, tmp_path, monkeypatch)


def maker(index: LoopbackIndex, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Put the packages on an index, keep all that is written in a folder, and return what makes sessions there."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(folder / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    index.add("ipykernel", "7.0")
    with zipfile.ZipFile(index.add("borrowed", "1.0"), "a") as wheel:
        wheel.writestr("borrowed.pth", str(Path(np.__file__).parents[1]))
    add_torch(index, "9.0")

    def made(runner: InlineRunner | ThreadRunner | None = None, **answers: object) -> Session:
        plan = Plan(
            backend=Backend.CPU,
            variant="cpu",
            torch="9.0",
            python=PYTHON,
            index_url=index.url,
            requirements=("torch==9.0", "borrowed"),
        )
        found = Detection(machine=Machine(os="linux"))
        asks = bool(answers.pop("asks", False))
        choices = Choices(**{"target": str(folder / "it's made" / "环境"), **answers})
        state = State(
            choices=choices,
            detected=Detected(detection=found),
            planned=Planned(planning=Planning(choice=plan, plans=(plan,))),
        )
        host = LiveHost()
        return Session(host, runner or InlineRunner(), None, state, sources=Sources(host), asks=asks)

    return made


def add_torch(index: LoopbackIndex, version: str) -> None:
    """Put the torch that is made of NumPy on the index, in place of the one that is there."""
    with_code(index.add("torch", version), "torch", FAKE.read_text("utf-8"))


def run(session: Session, *tasks: Task) -> State:
    """Run tasks in order."""
    for task in tasks:
        session.begin(task)
    return session.state


def test_an_installation_ends_verified(make: Make) -> None:
    """The verification of the installation is the one that is reported."""
    session = make()
    seen: list[Progress] = []
    watch(session, lambda _old, new: seen.append(new.progress) if new.progress else None)
    state = run(session, Task.PREPARE, Task.INSTALL)
    assert state.status(Step.INSTALL).phase is Phase.DONE, state.status(Step.INSTALL)
    assert {Path(command[0]).stem for command in state.preview.commands[:2]} == {"uv"}
    units = [progress.unit for progress in seen]
    assert list(dict.fromkeys(unit for unit in units if unit)) == ["packages", "checks"]
    assert state.report.usable
    assert state.report.facts["torch"] == "2.9.9+fake"
    assert state.status(Step.VERIFY).phase is Phase.DONE


def test_what_was_asked_for_and_cannot_be_imported_is_not_kept(make: Make, loopback_index: LoopbackIndex) -> None:
    """The sentence says why and what next. What a marker keeps away is no matter."""
    with_code(loopback_index.add("codec", "1.0"), "codec", "import ctypes; ctypes.CDLL('libnvrtc.so.13')")
    session = make()
    plan = session.state.plan
    elsewhere = 'elsewhere; sys_platform == "nowhere"'
    lines = (*plan.requirements, "codec", elsewhere)
    plan = replace(plan, requirements=lines, asked=("codec", "borrowed", "elsewhere"))
    session.state = replace(session.state, planned=Planned(planning=Planning(choice=plan, plans=(plan,))))
    state = run(session, Task.PREPARE, Task.INSTALL)
    status = state.status(Step.INSTALL)
    assert status.phase is Phase.FAILED, status
    assert [one.key for one in state.findings if one.key.startswith("verify.")] == ["verify.package.codec"]
    assert str(status.message) == (
        "codec cannot be used, so the installation was rolled back: "
        "codec cannot be imported: OSError: libnvrtc.so.13: cannot open shared object file: No such file or directory"
    )
    assert "another version or build" in str(status.hint)
    assert not Path(state.choices.target).exists()


def test_a_recipes_verification_call_decides(
    make: Make, loopback_index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What imports and yet does not do what the recipe is for is not kept, and the sentence quotes the call."""
    trial = Trial(call="import invokeai.app.run_app, torch; print(torch.__version__)", on_cpu=True)
    recipe = Bundle(key="invokeai", title="InvokeAI", lead="", trial=trial)
    monkeypatch.setattr(catalog, "load_recipe_reader", lambda: SimpleNamespace(recipes=lambda: (recipe,)))
    wheel = loopback_index.add("invokeai", "6.14")
    with_code(wheel, "invokeai", "")
    with_code(wheel, "invokeai/app/run_app", "raise ValueError('no model')")
    session = make()
    plan = session.state.plan
    plan = replace(plan, requirements=(*plan.requirements, "invokeai"), asked=("invokeai",), recipe="invokeai")
    session.state = replace(session.state, planned=Planned(planning=Planning(choice=plan, plans=(plan,))))
    state = run(session, Task.PREPARE, Task.INSTALL)
    status = state.status(Step.INSTALL)
    assert status.phase is Phase.FAILED
    assert str(status.message) == (
        "invokeai cannot be used, so the installation was rolled back: "
        "`import invokeai.app.run_app, torch; print(torch.__version__)` fails: ValueError: no model"
    )
    assert not Path(state.choices.target).exists()


@pytest.mark.parametrize("kind", ["new", "existing"])
def test_a_failed_verification_leaves_everything_as_it_was(
    make: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is there to ask: the sentence names the check, and not a byte differs."""
    session = make()
    place = Path(session.state.choices.target).parent
    if kind == "existing":
        session.state = make_standing(make)
        for cache in place.rglob("__pycache__"):
            shutil.rmtree(cache)
    before = picture(place) if place.exists() else None
    monkeypatch.setenv("FAKE_TORCH_FAULT", "exit:matmul")
    status = run(session, Task.PREPARE, Task.INSTALL).status(Step.INSTALL)
    assert status.phase is Phase.FAILED
    assert "“Multiply matrices”" in str(status.message)
    assert status.hint.params["option"] == "--keep"
    assert (picture(place) if place.exists() else None) == before
    assert session.state.environment is None
    assert any("exit status 7" in str(line) for line in session.state.log)


def make_standing(make: Make) -> State:
    """Make an environment whose torch then turns into another one; give the state to go on from."""
    session = make()
    run(session, Task.PREPARE, Task.INSTALL)
    info = next(Path(session.state.choices.target).glob("lib/*/site-packages/torch-9.0.dist-info/METADATA"))
    text = info.read_text().replace("9.0", "8.0")
    info.unlink()  # one file with that in uv's cache
    info.write_text(text)
    return make().state


def test_a_conflict_is_told_until_it_is_gone(make: Make) -> None:
    """What does not go together is told before the installation, after it, and by Diagnose; once mended no more."""
    session = make()
    session.state = make_standing(make)
    packages = next(Path(session.state.choices.target).glob("lib/*/site-packages"))
    for name in ("onnxruntime", "onnxruntime-gpu"):
        info = packages / f"{name.replace('-', '_')}-1.20.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.20\n")

    def keys() -> list[str]:
        return [finding.key for finding in session.state.findings if finding.key.startswith("onnxruntime")]

    for task in (Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.DIAGNOSE):
        state = run(session, task)
        assert state.status(task.step).phase in {Phase.READY, Phase.DONE}, state.status(task.step)
        assert keys() == ["onnxruntime-packages-conflict"], task
    shutil.rmtree(info)
    run(session, Task.VERIFY, Task.DIAGNOSE)
    assert keys() == []


def test_a_kernel_that_the_installation_mends_is_no_problem_any_more(make: Make, tmp_path: Path) -> None:
    """It was found before: its environment had been deleted by hand. Another one that is broken still is."""
    session = make()
    run(session, Task.PREPARE, Task.INSTALL)
    kernels = tmp_path / "JUPYTER_DATA_DIR" / "kernels"
    shutil.copytree(kernels / "torch-cpu-9.0", kernels / "gone")
    spec = kernels / "gone" / "kernel.json"
    spec.write_text(spec.read_text(encoding="utf-8").replace("/bin/python", "/bin/gone"), encoding="utf-8")
    shutil.rmtree(session.state.choices.target)
    again = make()
    run(again, Task.DETECT)
    assert [finding.key for finding in again.state.findings].count("kernel-broken") == 2
    again.dispatch(Resume(state=replace(again.state, planned=Planned(planning=session.state.planning))))
    for task in (Task.PREPARE, Task.INSTALL, Task.VERIFY, Task.DIAGNOSE):
        run(again, task)
        left = [str(finding.text) for finding in again.state.findings if finding.key == "kernel-broken"]
        assert len(left) == (2 if task is Task.PREPARE else 1), task
        assert "gone" in left[-1]
    spec.unlink()
    run(again, Task.VERIFY)
    assert "kernel-broken" not in [finding.key for finding in again.state.detection.findings]


@pytest.mark.parametrize("way", ["option", "answer"])
def test_the_user_may_keep_a_result_that_failed(make: Make, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option beforehand, or by an answer to the question; the report says what is wrong all the same."""
    monkeypatch.setenv("FAKE_TORCH_FAULT", "exit:matmul")
    session = make(keep=way == "option", asks=True)
    questions = asked(session, yes=True)
    state = run(session, Task.PREPARE, Task.INSTALL, Task.VERIFY)
    assert len(questions) == (way == "answer")
    assert state.status(Step.INSTALL).phase is Phase.DONE
    assert not state.report.usable
    assert "verify.matmul" in [finding.key for finding in state.findings]
    assert str(state.question) == ""


def test_a_stop_while_the_question_waits_takes_everything_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelling is an answer too."""
    monkeypatch.setenv("FAKE_TORCH_FAULT", "exit:matmul")
    session, over = make(ThreadRunner(), asks=True), threading.Event()

    def notice(old: State, new: State) -> None:
        if new.question and not old.question:
            session.cancel()
        if old.running and not new.running:
            over.set()

    watch(session, notice)
    for task in (Task.PREPARE, Task.INSTALL):
        over.clear()
        session.begin(task)
        assert over.wait(120)
    assert session.state.status(Step.INSTALL).exit_code == 130
    assert not Path(session.state.choices.target).parent.exists()


def test_a_preview_tells_files_and_bytes_and_writes_nothing(make: Make, tmp_path: Path) -> None:
    """What will be fetched, where it will lie, and the commands word for word."""
    preview = run(make(), Task.PREPARE).preview
    target = Path(preview.target)
    assert preview.download == preview.resolution.download > 0
    assert f"{target}{os.sep}" in preview.writes
    assert str(tmp_path / "JUPYTER_DATA_DIR" / "kernels" / "torch-cpu-9.0" / "kernel.json") in preview.writes
    assert not [path for path in preview.writes if path.endswith(".whl")]  # small ones are uv's to fetch
    assert preview.commands[2] == ("mv", str(target.with_name(f".{target.name}.new")), str(target))
    assert not target.parent.exists()
    assert not list((tmp_path / "XDG_STATE_HOME").rglob("*.part"))


def test_a_project_of_uv_is_told_what_would_undo_it(make: Make, tmp_path: Path) -> None:
    """The folder of a project stands for its environment, and what keeps torch there is offered beforehand."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "0"\n[tool.uv]\npackage = false\n')
    session = make(target=str(project))
    state = run(session, Task.PREPARE)
    assert state.preview.target == str(project / ".venv")
    (finding,) = state.findings
    assert finding.key == "kept-by-project"
    assert finding.remedies[0].commands == (f"assistant guard {project}",)


def test_sources_tell_pip_about_folders_with_spaces(tmp_path: Path) -> None:
    """A space ends a path for pip, so folders become addresses; offline no index is asked."""
    told = Sources(LiveHost(), find_links=[str(tmp_path / "a b")], offline=True).environment
    assert (tmp_path / "a b").as_uri() in told["PIP_FIND_LINKS"].split()
    assert told["PIP_NO_INDEX"] == "1"


def test_a_python_that_is_nowhere_is_named(make: Make) -> None:
    """A plan for a Python that is nowhere says so in a sentence."""
    session = make()
    session.state = State(
        detected=Detected(detection=session.state.detection),
        planned=Planned(
            planning=Planning(plans=(Plan(backend=Backend.CPU, variant="cpu", torch="9.0", python="2.1"),))
        ),
        choices=Choices(target=session.state.choices.target),
    )
    status = run(session, Task.PREPARE).status(Step.INSTALL)
    assert status.phase is Phase.FAILED
    assert "2.1" in str(status.message)
