"""No word of the wizard escapes translation: every step is walked in a made-up language."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import ipywidgets as widgets
import pytest
from made_up import ENGLISH_WORDS, LATIN_WORD, without_filled, write_made_up
from runners import InlineRunner, wizard_on
from tables import each

from assistant.catalog.catalog import bundles
from assistant.export import FORMATS
from assistant.host.base import ReplayHost
from assistant.i18n import use_language
from assistant.install import Package, Prepared, Resolution, Sources
from assistant.machines import load
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace, to_json
from assistant.model.report import Check, Environment, Progress, Report, Status, Step
from assistant.session.actions import Choose, Failed, Paste, Reported, Show
from assistant.session.session import Session
from assistant.session.state import Exported, Installed, Page, Phase, State, StepStatus, Task, Verified
from assistant.session.store import Store
from assistant.wizard.app import SetupWizard
from assistant.wizard.panels import PAGES
from assistant.wizard.shared_widgets import Details, Foldable

MACHINES = ["linux-mint22-laptop-780m-rtx4070", "windows11-rx7800xt", "macos14-m1", "linux-debian12-cpu-container"]
# Names that are the same in every language, and what stands in a hint as an example to type.
NAMES = {"PyTorch", "Python", "ROCm", "GB", "MB", "NVIDIA", "English", "SetupWizard", "torch", "CPU", "CUDA"}
NAMES |= {"ms", "XPU", "MPS", "DirectML", "PyPI", "nvidia", "driver", "model"}
NAMES |= {*LATIN_WORD.findall(str(Path.cwd())), "pytorch", "configuration"}  # the folder for the files
PACKAGES = {word for bundle in bundles() for line in bundle.requirements for word in LATIN_WORD.findall(line)}
PACKAGES |= {"numpy", "pip", "pandas", "seaborn"}  # what a minimal setup brings, and examples of what can be added
DONE = StepStatus(phase=Phase.DONE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the made-up language's catalogue."""
    return write_made_up(tmp_path_factory.mktemp("made-up"))


@pytest.fixture(autouse=True)
def _made_up(folder: Path) -> Iterator[None]:
    use_language("zh_CN", folder)
    yield
    use_language("en")


class Texts(HTMLParser):
    """Collects the texts of some HTML, those that are only heard included, and leaves out what is typed as code."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._code = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep names for those who do not see."""
        self._code += tag in {"pre", "code", "svg", "style"}
        self.found += [value for name, value in attrs if name in {"aria-label", "title", "alt"} and value]

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        self._code -= tag in {"pre", "code", "svg", "style"}

    def handle_data(self, data: str) -> None:
        """Keep what is seen."""
        self.found += [data] if not self._code else []


def texts_of(widget: widgets.Widget) -> Iterator[str]:
    """Give every text of a widget and of those below it."""
    if isinstance(widget, Foldable):
        widget.unfolded = True
        yield widget.title
    if isinstance(widget, widgets.HTML | Details):
        yield from Texts(widget.value).found
    yield from (getattr(widget, name, "") for name in ("description", "placeholder"))
    for option in getattr(widget, "options", ()):
        yield from (option["title"], option["lead"]) if isinstance(option, dict) else [str(option[0])]
    for child in getattr(widget, "children", ()):
        yield from texts_of(child)


def said_by(shown: SetupWizard) -> list[str]:
    """Give every text in sight, those of head and foot included."""
    head, foot = shown.head, shown.foot
    own = [
        foot.status,
        *head.words.values(),
        *foot.words.values(),
        *(words for _key, words in head.links),
        *(words for _name, words, _able in foot.buttons),
        *Texts(foot.note).found,
    ]
    return [*own, foot.progress["text"], foot.progress["figures"], *texts_of(shown)]


def walked(shown: SetupWizard) -> set[str]:
    """Show every page and gather what is said."""
    found: set[str] = set()
    for page in PAGES:
        shown.session.dispatch(Show(page=page))
        found |= set(said_by(shown))
    return found


def strange(texts: set[str], state: State) -> set[str]:
    """Give the words that neither a translation nor a fact of the state explains."""
    known = NAMES | PACKAGES | set(LATIN_WORD.findall(" ".join([*FORMATS, to_json(state)])))
    outside = {text: without_filled(text) for text in texts}
    words = {word for text in outside.values() for word in LATIN_WORD.findall(text)} - known
    return words | {text for text in outside.values() if ENGLISH_WORDS.search(text) and text not in to_json(state)}


@each("name", MACHINES)
def test_no_word_of_a_simulation_escapes(name: str) -> None:
    """Facts, the plan with its alternatives, the banner, and why nothing can be installed."""
    shown = wizard_on(Session(ReplayHost(load(name)), InlineRunner(), state=State(machine=name)))
    for task in (Task.DETECT, Task.PLAN, Task.DIAGNOSE):
        shown.session.begin(task)
    recording = load(name)
    found = {text for text in walked(shown) if recording.source not in text}
    assert strange(found, shown.session.state) == set()
    shown.close()


def whole(state: State) -> State:
    """Give the state of a setup that was gone through to its end."""
    made = Environment(path="/env", python="/env/bin/python", kernel="name")
    checks = tuple(Check(key="matmul", status=status, seconds=0.1) for status in Status)
    preview = Prepared(
        plan=Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12"),
        target="/env",
        commands=(("uv", "venv"),),
        resolution=Resolution(lock="", packages=(Package(name="p", version="1", url="u"),)),
    )
    return replace(
        state,
        statuses=dict.fromkeys(Step, DONE),
        preview=preview,
        log=("line",),
        log_file="/log",
        installed=Installed(environment=made),
        choices=replace(state.choices, target="/env"),
        verified=Verified(report=Report(device="cpu", checks=checks)),
        exported=Exported(files=(__file__,)),
    )


@pytest.mark.parametrize("phase", [Phase.DONE, Phase.STALE, Phase.READY])
def test_no_word_of_a_whole_setup_escapes(phase: Phase, tmp_path: Path) -> None:
    """Agreement, result, verification, causes and files; done, to be repeated, and before anything was done."""
    host = ReplayHost(load(MACHINES[0]))
    session = Session(host, InlineRunner(), Store(tmp_path), sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    session.dispatch(Choose(overrides={"glibc": "2.40"}))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    session.dispatch(Paste(log="OSError: libd3d12.so: cannot open shared object file: No such file or directory"))
    session.begin(Task.DIAGNOSE)
    state = replace(whole(session.state), statuses=dict.fromkeys(Step, StepStatus(phase=phase)))
    shown = wizard_on(Session(host, InlineRunner(), state=state))
    assert strange(walked(shown), shown.session.state) == set()
    shown.close()


def test_no_word_of_work_and_failure_escapes(tmp_path: Path) -> None:
    """What is said while something runs, when it stops, when it fails, and when an older setup is offered."""
    host = ReplayHost(load(MACHINES[0]))
    store = Store(tmp_path)
    session = Session(host, InlineRunner(), store, sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    store.save(replace(whole(session.state), installed=None))
    running = replace(whole(session.state), running=Task.INSTALL, stopping=True)
    shown = wizard_on(Session(host, InlineRunner(), state=running))
    told = set(said_by(shown))
    progress = Progress(step=Step.INSTALL, text="", done=5e6, total=9e6, unit="bytes", rate=1e6)
    shown.session.dispatch(Reported(events=(progress,)))
    told |= set(said_by(shown))
    shown.session.dispatch(Failed(step=Step.INSTALL, message=""))
    told |= walked(shown)
    shown.close()
    for seen in (host, ReplayHost(load("macos14-m1"))):
        shown = wizard_on(Session(seen, InlineRunner(), store, sources=Sources(seen, offline=True)))
        shown.session.begin(Task.DETECT)
        assert shown._pages[Page.SETUP].offer.drawn
        known = replace(shown.session.state, log=(to_json(whole(session.state)),))
        assert strange(told | set(said_by(shown)), known) == set()
        shown.close()


def test_what_was_not_translated_would_be_seen() -> None:
    """The tests above find what they look for."""
    assert strange({"Nobody translated this."}, State()) >= {"Nobody", "translated"}
