"""The page of the environments, without a browser: what it shows, offers and does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.broken import BrokenEnvironment
from ipywidgets.widgets.widget import _instances
from loopback import LoopbackIndex
from runners import InlineRunner, wizard_on

from assistant.host.live import LiveHost
from assistant.install import Difference, Site, Sources
from assistant.install.in_place import Move
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.record import replace
from assistant.session.session import Session
from assistant.session.state import Detected, EnvironmentSummary, Page, Repair, State, Survey, Task
from assistant.wizard.app import SetupWizard
from assistant.wizard.panels.environments import EnvironmentsPage, draw_lead, draw_repair

pytestmark = pytest.mark.full

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def wizard(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SetupWizard]:
    """Give a wizard that works in a folder of its own, and takes packages from the index on loopback."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "CONDA", "MAMBA"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "own" / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home")
    state = State(
        page=Page.ENVIRONMENTS,
        detected=Detected(detection=Detection(machine=Machine(os="linux", arch="x86_64", wsl=False))),
    )
    host = LiveHost()
    shown = wizard_on(Session(host, InlineRunner(), state=state, sources=Sources(host, index_url=loopback_index.url)))
    yield shown
    shown.close()


def page_of(wizard: SetupWizard) -> EnvironmentsPage:
    """Find the page."""
    return wizard._pages[Page.ENVIRONMENTS]


def press(wizard: SetupWizard, key: str, path: Path) -> None:
    """Press a button of a card."""
    wizard.head._handle_custom_msg({"press": f"{key}:{path}", "view": "v"}, [])


def card(wizard: SetupWizard, path: Path) -> str:
    """Find the card of an environment."""
    cards = re.findall("<article.*?</article>", page_of(wizard).rows.value)
    return next(one for one in cards if f":{path}&quot;" in one or f':{path}"' in one)


def buttons(wizard: SetupWizard, path: Path) -> list[str]:
    """Name the buttons of an environment's card."""
    return re.findall(r'data-press="(\w+):', card(wizard, path))


@pytest.mark.process
def test_three_clicks_mend_and_one_takes_it_back(wizard: SetupWizard, loopback_index: LoopbackIndex) -> None:
    """Mend shows the difference, one press does it, Undo stands beside it; every version is what it was."""
    broken = BrokenEnvironment(loopback_index, Path.cwd() / "broken")
    before, path = broken.picture(), broken.target
    versions = Site.ask(path, LiveHost()).versions
    wizard.session.begin(Task.SURVEY)
    assert "ptsa-light-bad" in card(wizard, path)
    assert "broken</span>" in card(wizard, path)
    assert buttons(wizard, path) == ["check", "mend", "keep"]
    press(wizard, "mend", path)
    shown = str(page_of(wizard).lead.value)
    assert "What would change in broken" in shown
    assert "numpy 2.1.0 → 1.26.4" in shown
    assert "onnxruntime-gpu 1.20 is removed" in shown
    assert "What stays as it is" not in shown
    assert wizard.foot.buttons[:2] == [("main", "Change these packages", True), ("other0", "Not now", True)]
    assert broken.picture() == before
    wizard.press("main")
    assert "ptsa-light-good" in card(wizard, path)
    assert buttons(wizard, path) == ["check", "undo", "keep"]
    assert "uv fetches the old versions again" in str(wizard.foot.note)
    assert wizard.foot.buttons[1] == ("other0", "Undo", True)
    wizard.press("other0")
    assert "ptsa-light-bad" in card(wizard, path)
    assert Site.ask(path, LiveHost()).versions == versions


@pytest.mark.process
def test_not_now_changes_nothing(wizard: SetupWizard, loopback_index: LoopbackIndex) -> None:
    """The list is there again."""
    broken = BrokenEnvironment(loopback_index, Path.cwd() / "broken")
    before = broken.picture()
    wizard.session.begin(Task.SURVEY)
    press(wizard, "mend", broken.target)
    wizard.press("other0")
    assert wizard.session.state.environments.repair is None
    assert page_of(wizard).rows not in page_of(wizard).hidden
    assert broken.picture() == before


MADE = EnvironmentSummary(
    path="/made", name="made", made=True, kernels=("torch-cpu",), torch="2.13.0+cpu", python="3.12.1"
)


def with_survey(wizard: SetupWizard, *known: EnvironmentSummary) -> None:
    """Let the wizard show environments that are made up."""
    old = wizard.session.state
    wizard.session.state = replace(old, environments=replace(old.environments, survey=Survey(environments=known)))
    wizard.catch_up()


def test_a_removal_is_asked_for_twice(wizard: SetupWizard) -> None:
    """The card's button only asks; Keep it takes it back."""
    with_survey(wizard, MADE, replace(MADE, path="/other", made=False, kernels=()))
    assert buttons(wizard, Path("/made")) == ["check", "keep", "open", "remove"]
    assert buttons(wizard, Path("/other")) == ["check", "keep"]
    press(wizard, "remove", Path("/made"))
    assert wizard.foot.buttons[0] == ("main", "Remove it", True)
    assert "/made and everything in it" in str(wizard.foot.note)
    wizard.press("other0")
    assert wizard.foot.buttons[0] == ("main", "Set up another", True)


@pytest.mark.process
def test_a_build_is_kept_and_let_go_by_one_press_each(wizard: SetupWizard, loopback_index: LoopbackIndex) -> None:
    """The row says which, every file is as it was afterwards, and nothing has left the page."""
    path = BrokenEnvironment(loopback_index, Path.cwd() / "some").target
    before = {file: file.read_bytes() for file in path.rglob("*activate*")}
    wizard.session.begin(Task.SURVEY)
    for words, kept in (("Keep this build", True), ("Let go of this build", False), ("Keep this build", True)):
        assert words in card(wizard, path)
        press(wizard, "keep", path)
        assert (path / "pip.conf").exists() == kept
        assert ({file: file.read_bytes() for file in before} != before) == kept


def test_open_hands_a_notebook_on_the_kernel_to_the_page(wizard: SetupWizard, monkeypatch: pytest.MonkeyPatch) -> None:
    """JupyterLab's extension takes it from there."""
    with_survey(wizard, MADE)
    sent: list[dict[str, object]] = []
    monkeypatch.setattr(wizard.foot, "send", sent.append)
    press(wizard, "open", Path("/made"))
    assert (sent[0]["event"], sent[0]["view"]) == ("ptsa-open-notebook", "v")
    assert sent[0]["detail"]["kernel"] == "torch-cpu"
    assert sent[0]["detail"]["notebook"]["metadata"]["kernelspec"]["name"] == "torch-cpu"
    wizard.foot._handle_custom_msg({"refused": sent[0]["event"], "detail": sent[0]["detail"]}, [])
    (written,) = Path.cwd().glob("*.ipynb")
    assert f"The notebook {written} is ready" in str(wizard.foot.note)


def test_hostile_texts_stay_text(wizard: SetupWizard) -> None:
    """Names, paths and versions come from files of strangers."""
    finding = Finding(key="x", severity=Severity.ERROR, text=HOSTILE)
    texts = dict.fromkeys(("path", "name", "torch", "python", "of", "checked"), HOSTILE)
    known = EnvironmentSummary(**texts, findings=(finding,))
    with_survey(wizard, known)
    state = replace(wizard.session.state, environments=replace(wizard.session.state.environments, picked=HOSTILE))
    assert "<img" not in draw_lead(state)
    site = Site(**dict.fromkeys(("prefix", "base_prefix", "python", "version", "purelib"), HOSTILE))
    moves = (Move(name=HOSTILE, before=HOSTILE, after=HOSTILE), Move(name=HOSTILE, after=HOSTILE))
    difference = Difference(site=site, moves=moves, findings=(finding,))
    repair = Repair(path=HOSTILE, difference=difference, mends=(finding,), remains=(finding,))
    assert "<img" not in draw_repair(state, repair)
    assert draw_repair(state, repair).count("&lt;img") > 5
    assert "<img" not in page_of(wizard).rows.value
    assert page_of(wizard).rows.value.count("&lt;img") > 5


def test_a_page_that_is_closed_leaves_no_model(wizard: SetupWizard) -> None:
    """Every widget of it is freed."""
    begun = len(_instances)
    page = EnvironmentsPage(wizard.session)
    page.follow(wizard.session.state)
    page.close()
    assert len(_instances) == begun
