"""Packages that are added to an environment that stands: what is typed, what is shown, what is done and refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import session.test_installing as grounds
from loopback import LoopbackIndex, with_code
from runners import InlineRunner
from tables import each

from assistant.host.live import LiveHost
from assistant.install import EnvironmentFolder, Site, Sources
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Planning
from assistant.model.record import from_plain, replace
from assistant.model.report import Environment, Status, Step
from assistant.session.actions import Add, blockers, next_automatic_task
from assistant.session.session import Session
from assistant.session.state import Adding, Detected, Installed, Phase, Planned, State, Task
from assistant.session.steps import split_requirements


@each(
    ("typed", "meant"),
    [
        ("seaborn", ("seaborn",)),
        ("%pip install seaborn, pandas >= 2, <3", ("seaborn", "pandas>=2,<3")),
        ("python -m pip install x==1.0 y ~= 2", ("x==1.0", "y~=2")),
        ("a[b, c]==1 d", ("a[b,c]==1", "d")),
        (" x, ,y\nz ", ("x", "y", "z")),
        ("!pip install -U seaborn", ("-U", "seaborn")),
        ("  ", ()),
    ],
)
def test_what_is_typed_is_read_as_it_is_meant(typed: str, meant: tuple[str, ...]) -> None:
    """With `pip install` before it or not; an option stays, and is refused later by its name."""
    assert split_requirements(typed) == meant


def test_nothing_is_added_without_names_or_an_environment() -> None:
    """Each reason is a sentence."""
    state = State(detected=Detected(detection=Detection(machine=Machine())))
    assert [str(reason) for reason in blockers(state, Task.ADD)] == [
        "There is no installed environment yet.",
        "No packages were named.",
    ]
    made = replace(state, installed=Installed(environment=Environment(path="/e", python="/e/bin/python")))
    assert blockers(replace(made, adding=Adding(requirements=("x",))), Task.ADD) == ()


@dataclass
class Place:
    """An environment that was made and verified once, a copy of it, and the index that has more."""

    index: LoopbackIndex
    make: grounds.Make
    state: State
    copy: Path

    def restored(self) -> Session:
        """Bring the environment back as it was made; give a session that stands there."""
        target = Path(self.state.environment.path)
        shutil.rmtree(target)
        shutil.copytree(self.copy, target, symlinks=True, copy_function=os.link)
        session = self.make()
        session.state = self.state
        return session


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Make the environment."""
    folder = tmp_path_factory.mktemp("adding")
    (folder / "index").mkdir()
    index = LoopbackIndex(folder / "index")
    with pytest.MonkeyPatch.context() as monkeypatch:
        make = grounds.maker(index, folder, monkeypatch)
        state = grounds.run(make(), Task.PREPARE, Task.INSTALL)
        assert state.report, state.status(Step.INSTALL)
        shutil.copytree(state.environment.path, folder / "copy", symlinks=True)
        index.add("seaborn", "0.13", requires=("cycler>=0.10",))
        index.add("cycler", "0.12")
        index.add("old-fashioned", "1.0", requires=("torch<2",))
        yield Place(index, make, state, folder / "copy")
    index.close()


@pytest.fixture
def standing(place: Place) -> Session:
    """Give a session whose environment stands, and an index that has more."""
    return place.restored()


def add(session: Session, *requirements: str) -> Adding:
    """Name packages and begin."""
    session.dispatch(Add(requirements=requirements))
    return grounds.run(session, Task.ADD).adding


@pytest.mark.process
def test_what_would_change_is_shown_and_then_done(standing: Session) -> None:
    """Nothing is changed by the look; then both packages are there, verified, and part of plan, lock and marker."""
    target, before = Path(standing.state.environment.path), standing.state
    adding = add(standing, "seaborn>=0.13")
    here = Site.ask(target, LiveHost()).versions
    assert [one.name for one in adding.prepared.resolution.changes(here)] == ["cycler", "seaborn"]
    assert "seaborn" not in here
    assert standing.state.status(Step.VERIFY).phase is Phase.DONE
    state = grounds.run(standing, Task.ADD)
    assert state.adding.status.message == ""
    assert state.adding.changed
    assert {"seaborn": "0.13", "cycler": "0.12"}.items() <= Site.ask(target, LiveHost()).versions.items()
    assert state.plan.requirements == (*before.plan.requirements, "seaborn>=0.13")
    assert EnvironmentFolder(target).marker.plan.requirements == state.plan.requirements
    assert state.preview.resolution.versions["seaborn"] == "0.13"
    assert (state.environment.kernel, state.environment.display_name) == (
        before.environment.kernel,
        before.environment.display_name,
    )
    assert next_automatic_task(replace(state, planned=Planned(planning=state.planning))) is not Task.PREPARE
    assert state.status(Step.VERIFY).phase is Phase.DONE
    assert state.plan.asked == ("seaborn",)
    report = state.report
    assert report.usable
    assert [check.status for check in report.checks if check.key == "package.seaborn"] == [Status.PASSED]


@pytest.mark.process
def test_what_is_there_already_changes_nothing(standing: Session) -> None:
    """And what was verified stays verified."""
    adding = add(standing, "borrowed")
    assert adding.prepared.ready
    state = grounds.run(standing, Task.ADD)
    assert (state.adding.changed, state.status(Step.VERIFY).phase) == (False, Phase.DONE)
    assert state.report


@pytest.mark.process
@pytest.mark.parametrize(
    ("wish", "said", "help_"),
    [
        ("-U", "'-U' is not a requirement", "Write a name"),
        ("torch==8.0", "torch==8.0 cannot be added: this environment keeps torch 9.0", "new environment"),
        ("old-fashioned", "old-fashioned cannot be added: ", "another version"),
        ("nowhere-at-all", "nowhere-at-all cannot be added: ", "another version"),
    ],
)
def test_what_cannot_be_added_is_refused_in_a_sentence(standing: Session, wish: str, said: str, help_: str) -> None:
    """The setup itself stays as it was: done, and verified."""
    statuses = standing.state.statuses
    adding = add(standing, wish)
    assert str(adding.status.message).startswith(said)
    assert help_ in str(adding.status.hint)
    assert adding.prepared is None
    assert standing.state.running is None
    assert standing.state.statuses == statuses
    if wish == "old-fashioned":
        assert "torch" in str(adding.status.message).removeprefix(said)  # what quarrels


@pytest.mark.process
def test_a_failed_verification_takes_the_packages_back(standing: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is as it was, and the sentence says so."""
    add(standing, "seaborn")
    monkeypatch.setenv("FAKE_TORCH_FAULT", "exit:matmul")
    state = grounds.run(standing, Task.ADD)
    assert "rolled back" in str(state.adding.status.message)
    assert "seaborn" not in Site.ask(Path(state.environment.path), LiveHost()).versions
    assert state.status(Step.VERIFY).phase is Phase.DONE


@pytest.mark.process
def test_an_added_package_that_cannot_be_imported_is_taken_back(standing: Session, place: Place) -> None:
    """The sentence names it and the reason."""
    with_code(place.index.add("of-another-cuda", "1.0"), "of_another_cuda", "import nothing_such")
    add(standing, "of-another-cuda")
    state = grounds.run(standing, Task.ADD)
    assert str(state.adding.status.message).startswith(
        "of-another-cuda cannot be used, so the installation was rolled back: "
    )
    assert "No module named 'nothing_such'" in str(state.adding.status.message)
    assert "of-another-cuda" not in Site.ask(Path(state.environment.path), LiveHost()).versions


@pytest.mark.heavy
def test_a_package_is_added_beside_real_torch(tmp_path: Path) -> None:
    """Into a real CPU environment of its own: torch is held to the letter, and computes afterwards."""
    places = {name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "JUPYTER_DATA_DIR")}
    words = ["install", "--yes", "--json", "--backend", "cpu", "--target", str(tmp_path / "env")]
    done = subprocess.run(
        [sys.executable, "-m", "assistant", *words],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=True,
    )
    made = from_plain(json.loads(done.stdout), Environment, "the environment")
    plan = EnvironmentFolder(tmp_path / "env").marker.plan
    state = State(
        detected=Detected(detection=Detection(machine=Machine(os="linux"))),
        planned=Planned(planning=Planning(choice=plan, plans=(plan,))),
        installed=Installed(environment=made),
    )
    session = Session(LiveHost(), InlineRunner(), None, state, sources=Sources(LiveHost()))
    assert add(session, "tabulate").status.message == ""
    state = grounds.run(session, Task.ADD)
    assert state.adding.status.message == ""
    code = "import tabulate, torch; print(torch.__version__)"
    told = subprocess.run([made.python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == made.packages["torch"]
