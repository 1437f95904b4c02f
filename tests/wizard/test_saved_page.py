"""The setup as one page to keep: complete, passive, private things taken out, hostile text shown as text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from runners import InlineRunner

from assistant.host.live import LiveHost
from assistant.i18n import verbatim
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Gpu
from assistant.model.record import replace
from assistant.model.report import Step
from assistant.session.actions import Failed, reduce
from assistant.session.session import Session
from assistant.session.state import Detected, Exported, Phase, State, StepStatus, Task
from assistant.wizard.panels import read_files
from assistant.wizard.saved_page import write_page

EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
PASSIVE = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "div", "span", "p", "pre", "code", "strong"),
    *("h1", "h2", "h3", "h4", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "path", "g", "text", "line", "circle", "rect", "a", "em", "dl", "dt", "dd"),
}


class Reader(HTMLParser):
    """Gathers what a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}
        self.links |= {value or "" for name, value in attrs if name in {"href", "src"}}

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.words += data


@pytest.fixture
def simulated() -> State:
    """Give the state of a recorded machine, detected and planned for."""
    session = Session(LiveHost(), InlineRunner(), state=State(machine="linux-arch-rx6700xt-directml"))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    return session.state


def test_the_page_tells_each_step_that_was_reached(simulated: State) -> None:
    """What was found and chosen is in the page, and a step that was not reached is not."""
    read = Reader(write_page(simulated))
    assert "gfx1031" in read.words
    assert simulated.plan.torch in read.words
    assert "Does it compute correctly?" not in read.words
    assert "script" not in read.tags


def test_hostile_text_is_text_in_the_page(simulated: State) -> None:
    """HTML in a GPU's name, a finding, a remedy, a log, a failure and a cause adds no element and no handler."""
    gpu = Gpu(vendor=simulated.detection.machine.gpus[0].vendor, name=EVIL)
    finding = Finding(
        key="evil", severity=Severity.ERROR, text=EVIL, remedies=(Remedy(text=verbatim(EVIL), commands=(EVIL,)),)
    )
    cause = Diagnosis(
        key="evil", title=verbatim(EVIL), cause=verbatim(EVIL), evidence=(EVIL,), remedies=(), confidence=1.0
    )
    machine = replace(simulated.detection.machine, gpus=(gpu,), os_version=EVIL)
    state = replace(
        simulated,
        log=(EVIL,),
        statuses={
            **simulated.statuses,
            Step.DIAGNOSE: StepStatus(phase=Phase.DONE),
            Step.EXPORT: StepStatus(phase=Phase.DONE),
        },
        detected=Detected(detection=replace(simulated.detection, machine=machine, findings=(finding,))),
        diagnosed=replace(simulated.diagnosed, diagnoses=(cause,)),
        exported=Exported(files=(EVIL,)),
    )
    state = reduce(state, Failed(step=Step.INSTALL, message=verbatim(EVIL), hint=EVIL))
    read = Reader(write_page(state))
    assert read.tags <= PASSIVE
    assert not {name for name in read.attributes if name.startswith("on")}
    assert not {link for link in read.links if not link.startswith("https://")}
    assert read.words.count(EVIL) >= 8


def test_private_things_are_taken_out(simulated: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's folder, an address with its password and the value of a secret variable are not in the page."""
    monkeypatch.setenv("HF_TOKEN", "swordfish-of-mine")
    lines = (
        "Using /home/lovelace/torch",
        "Looking in https://ada:hunter22@index.example/simple",
        "key swordfish-of-mine",
    )
    state = reduce(simulated, Failed(step=Step.INSTALL, message=lines[0], hint=lines[1]))
    state = replace(state, log=lines, statuses={**state.statuses, Step.DIAGNOSE: StepStatus(phase=Phase.DONE)})
    text = write_page(state)
    assert not [word for word in ("lovelace", "hunter22", "swordfish") if word in text]
    assert "/home/user/torch" in text


def test_files_are_given_with_their_content_and_missing_ones_with_the_reason(tmp_path: Path) -> None:
    """A file that is gone does not hide the others."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xff text")
    there, gone = read_files([str(file), str(tmp_path / "gone")])
    assert (there.name, there.content, there.fault) == ("a.txt", b"\xff text", "")
    assert gone.content == b""
    assert gone.fault
