"""One lab as it is played: broken, looked at, predicted, mended, checked, by a learner in a notebook or by a test."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet

from assistant.api import BadInput, _, ngettext, render, replace, say
from assistant.api.records import Diagnosis, Machine, to_plain
from assistant.api.steps import (
    EnvironmentFolder,
    LiveHost,
    ReplayHost,
    Site,
    detect,
    find_causes,
    read_log,
    recorded_machine,
)
from assistant.api.system import missing_extra_error, read_regular, user_cache
from assistant.api.texts import use_language
from assistant_addons.labs.definition import FILE_BYTES, LabText, lab_at
from assistant_addons.labs.journal import (
    AID_COST,
    GUESS_COST,
    HINT_COST,
    MIME,
    POINTS,
    Journal,
    Kind,
    Score,
    Submission,
    is_right,
    proves,
    score_of,
)
from assistant_addons.labs.scene import Scene, package_sources

SHOWN_LINES = 24  # of an output that is not folded
END_LINES = 12  # that stay visible below a folded one: the end of a traceback, with its cause


class Answer:
    """Markdown in a notebook, plain text elsewhere; a check's answer holds what grading needs."""

    def __init__(self, text: str, submission: Submission | None = None, *, plain: str = "") -> None:
        self.text, self.submission = text, submission
        self._plain = plain or text

    def __repr__(self) -> str:
        return self._plain

    def _repr_mimebundle_(self, **_asked: object) -> dict[str, object]:
        """Return what a notebook shows, and what `assistant labs check` reads."""
        shown: dict[str, object] = {"text/plain": self._plain, "text/markdown": self.text}
        if self.submission:
            shown[MIME] = to_plain(self.submission)
        return shown


class Shown(str):
    """The text of a file: shown as a block, and otherwise the text itself."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return _fenced(str(self))


def block(text: str) -> str:
    """Return the Markdown of a program's output; a long one is folded, and its end stays visible."""
    lines = text.splitlines()
    if len(lines) <= SHOWN_LINES:
        return _fenced(text)
    count = render(ngettext("All {count} line", "All {count} lines", len(lines)))
    return f"<details><summary>{escape(count)}</summary>\n\n{_fenced(text)}\n\n</details>\n\n{_fenced_lines(lines)}"


def _fenced_lines(lines: Sequence[str]) -> str:
    return _fenced("\n".join(["…", *lines[-END_LINES:]]))


def _fenced(text: str) -> str:
    """Fence a text with more back-ticks than it has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.rstrip()}\n{fence}"


SYSTEMS: dict[str, Literal["windows", "macos"]] = {"win32": "windows", "darwin": "macos"}
MINORS = range(11, 15)  # from `requires-python` to the newest
TITLES = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}


def opening(text: LabText) -> str:
    """Return how long a lab takes and what it teaches, as Markdown."""
    return "".join(
        [say("About {count} minutes. You learn to:", count=text.minutes), *(f"\n- {goal}" for goal in text.objectives)]
    )


def needs_of(text: LabText) -> str:
    """Return where a lab can be played, where not everywhere, as a short text."""
    systems = _titles(text) if len(text.systems) < len(TITLES) else []
    return ", ".join([*systems, *filter(None, [_pythons(text.python)])])


def _titles(text: LabText) -> list[str]:
    return [TITLES[one] for one in text.systems]


def _pythons(wanted: str) -> str:
    """Return the Pythons that a lab takes, of those that the assistant runs on."""
    fit = [minor for minor in MINORS if f"3.{minor}" in SpecifierSet(wanted)]
    if len(fit) == len(MINORS):
        return ""
    return say("Python {first} to {last}", first=f"3.{fit[0]}", last=f"3.{fit[-1]}") if fit else f"Python {wanted}"


def check_system(text: LabText) -> None:
    """Raise `BadInput` on a system where a lab cannot be played, `WorkFailed` where the assistant lacks a package."""
    if SYSTEMS.get(sys.platform, "linux") not in text.systems:
        raise BadInput(
            _(
                "The lab “{title}” can be played on {systems} alone.",
                title=text.title,
                systems=", ".join(_titles(text)),
            ),
            hint=_("Choose another lab: `assistant labs list` shows where each can be played."),
        )
    for package in text.needs:
        if find_spec(package) is None:
            raise missing_extra_error(package, "onnx" if package == "onnx" else "labs")


MOST_CAUSES = 3


class Lab:
    """A lab by its key, in a folder of the user's cache, or in `folder`; `torch` is a Python that has torch.

    `learner` is whose score it is, and decides the order of the causes. `language` is "en" or "zh_CN"; the system's by
    default. Raises `BadInput` for an unknown key.
    """

    def __init__(
        self, key: str, folder: Path | str | None = None, *, learner: str = "", torch: str = "", language: str = ""
    ) -> None:
        if language:
            use_language(language)
        self._definition, self._learner = lab_at(key), learner
        self._program, english = self._definition.program, self._definition.english
        place = Path(folder or user_cache() / "labs" / key).absolute()
        self.scene = Scene(place, self._definition.folder, torch=torch)
        self.scene.machine, self.scene.pythons = english.machine, english.python
        self.scene.names = self._given("names")
        self._set_variables()
        self._journal = Journal(place.with_name(f"{place.name}.journal.jsonl"))

    def _set_variables(self) -> None:
        self.scene.variables = {**package_sources(), **self._given("variables")}

    def _given(self, name: str) -> Mapping[str, str]:
        function = getattr(self._program, name)
        return function(self.scene) if function else {}

    @property
    def text(self) -> LabText:
        """The lab's texts in the language of the moment."""
        return self._definition.text(self._learner)

    def start(self) -> Answer:
        """Set up the broken state and tell the story; the lab's folder is emptied first, its journal is kept."""
        self._break()
        kind = Kind.RESET if self._journal.entries() else Kind.START
        self._journal.add(kind, self._learner, self._state())
        text = self.text
        parts = [f"### {text.title}", opening(text), text.story]
        if text.files:
            parts.append(say("You may change: {files}.", files=", ".join(f"`{name}`" for name in text.files)))
        causes = "".join(f"\n- `{key}`: {words}" for key, words in text.causes.items())
        parts.append(say("What is the cause? Predict it before you fix anything:") + causes)
        return Answer("\n\n".join([*parts, self.symptom().text]))

    reset = start

    def _break(self) -> None:
        """Make the broken state; raise `BadInput` where the lab cannot be played here."""
        check_system(self.text)
        self.scene.clear()
        self._set_variables()  # what an earlier start left in the folder no longer counts
        for program in self._definition.programs:
            self.scene.write(program.name, read_regular(program, FILE_BYTES, follow=True))
        self._program.breaks(self.scene)

    def symptom(self) -> Answer:
        """Run what fails, and show what it prints."""
        return self._shown(self._program.symptom(self.scene).text)

    def predict(self, cause: str, evidence: str) -> Answer:
        """Name the cause by its key, with the words of the output that prove it; the first cause counts."""
        text = self.text
        if cause not in text.causes:
            raise BadInput(
                _("“{cause}” is not among this lab's causes.", cause=cause),
                hint=_("Choose one of: {names}.", names=", ".join(text.causes)),
            )
        self._journal.add(Kind.PREDICT, cause, self.scene.bare(evidence))
        if is_right(text, cause, evidence):
            return Answer(say("That is the cause, and your evidence proves it. Now fix it."))
        if cause == text.cause:
            return Answer(say("It may be, but this evidence does not prove it: quote the words that do."))
        if proves(text, evidence):
            return Answer(say("Your evidence matters, but it speaks for another cause."))
        return Answer(say("Nothing proves that. Look at the output again: which words name what failed?"))

    def diagnose(self) -> Answer:
        """Let the assistant diagnose what the symptom prints: an aid that costs a point, once."""
        found = self._causes()
        self._journal.add(Kind.AID, "diagnose")
        lines = [f"- **{diagnosis.title}** {diagnosis.cause}" for diagnosis in found[:MOST_CAUSES]]
        told = "\n".join(lines) or say("No known problem matches this; look at the last lines yourself.")
        return Answer(f"{told}\n\n{self._cost(AID_COST)}")

    def run(self, command: str) -> Answer:
        """Run a line: python, pip, uv or assistant first; `> FILE` at its end keeps what it prints."""
        outcome = self.scene.run(command)
        self._journal.add(Kind.RUN, self.scene.bare(command))
        return self._shown(outcome.text)

    def write(self, name: str, text: str) -> Answer:
        """Write one of the lab's files."""
        self.scene.write(name, text)
        self._journal.add(Kind.WRITE, self.scene.bare(name))
        return Answer(say("Written to {file}.", file=name))

    def read(self, name: str) -> Shown:
        """Return the text of one of the lab's files."""
        return Shown(self.scene.read(name))

    def hint(self) -> Answer:
        """Show the next hint, which costs two points; the last one is shown again for nothing."""
        hints = self.text.hints
        given = self.score.hints
        if given < len(hints):
            self._journal.add(Kind.HINT, str(given + 1))
        number = min(given, len(hints) - 1)
        told = say("Hint {number} of {count}: {hint}", number=number + 1, count=len(hints), hint=hints[number])
        return Answer(f"{told}\n\n{self._cost(HINT_COST if given < len(hints) else 0)}")

    def check(self) -> Answer:
        """Check whether it is fixed; the first check that fails costs nothing, each later one a point."""
        fault = self.scene.bare(self._fault())
        self._journal.add(Kind.CHECK, fault, self._state())
        submission = self._submission()
        if fault:
            return Answer(say("Not fixed yet. {fault}", fault=fault), submission)
        score, text = self.score, self.text
        fixed = say("Fixed: {points} of {most} points.", points=score.points, most=POINTS)
        parts = [f"**{fixed}** {text.explanation}"]
        if score.guessed:
            cause = text.causes[text.cause]
            parts.append(
                say(
                    "{cost} point is lost, as the cause had not been proved first: {cause}",
                    cost=GUESS_COST,
                    cause=cause,
                )
            )
        remember = say("Remember")
        return Answer("\n\n".join([*parts, f"> **{remember}**\n>\n> {text.remember}"]), submission)

    @property
    def score(self) -> Score:
        """The learner's result so far, worked out from the journal."""
        return score_of(self.text, self._journal.entries())

    def _cost(self, cost: int) -> str:
        left = replace(self.score, solved=True, guessed=False).points
        return say("This costs {cost} of {most} points; {left} are left.", cost=cost, most=POINTS, left=left)

    def _submission(self) -> Submission:
        entries = self._journal.entries()
        begun = (entry.content for entry in reversed(entries) if entry.kind in {Kind.START, Kind.RESET})
        return Submission(lab=self._definition.key, learner=next(begun, ""), journal=entries)

    def _fault(self) -> str:
        """Return what is still wrong; "" when the lab is solved."""
        self.scene.faults = self.text.faults
        fault = self._program.fault
        return fault(self.scene) if fault else self.scene.fails(self._program.symptom(self.scene))

    def _causes(self) -> tuple[Diagnosis, ...]:
        """Diagnose what the symptom prints, with what is known of the lab's environment and machine."""
        return find_causes(read_log(self._program.symptom(self.scene).text), self._machine())

    def _machine(self) -> Machine:
        if machine := self._definition.english.machine:
            return detect(ReplayHost(recorded_machine(machine))).machine
        system = SYSTEMS.get(sys.platform)
        here = Machine(os=system) if system else Machine(os="linux", wsl=False)
        environment = EnvironmentFolder(self.scene.folder / "env")
        if not environment.exists:
            return here
        site = Site.ask(environment.path, LiveHost())
        return replace(here, python=site.version, packages={one.name: one.version for one in site.distributions})

    def _state(self) -> str:
        """Return a hash of the files that the learner may change, in any editor; "" where there are none."""
        found = hashlib.sha256()
        for name in self.text.files:
            with suppress(OSError):  # there is none
                found.update(read_regular(self.scene.folder / name, FILE_BYTES))
        return found.hexdigest()[:16] if self.text.files else ""

    def _shown(self, text: str) -> Answer:
        bare = self.scene.bare(text)
        return Answer(block(bare), plain=bare)
