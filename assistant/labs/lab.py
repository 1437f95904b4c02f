"""One lab as its notebook sees it: start, look, try, ask for a hint, check."""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from assistant.diagnose import read_log
from assistant.host.folders import user_cache
from assistant.i18n import _, render, say, use_language
from assistant.labs.exercises import SCENES
from assistant.labs.scene import Scene
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.record import Record, from_json, from_plain, replace, to_json, to_plain
from assistant.session.diagnosis import diagnosed

MIME = "application/vnd.torch-setup-assistant.lab+json"
POINTS, HINT_COST, MISS_COST = 10, 2, 1
SHOWN_LINES = 12  # the end of a traceback, with its cause
MOST_CAUSES = 3
_HERE = {"win32": Machine(os="windows"), "darwin": Machine(os="macos")}
_LINUX = Machine(os="linux", wsl=False)


class Text(Record, frozen=True):
    """One lab in labs.toml; `files` are those that the learner changes, `answer` the lines that solve it.

    `python` is the only version that it works with ("" for any from 3.11 on), `systems` are those that it works on.
    """

    key: str
    title: str
    story: str
    hints: tuple[str, ...]
    answer: tuple[str, ...]
    explanation: str
    files: tuple[str, ...] = ()
    python: str = ""
    systems: tuple[str, ...] = ("linux", "windows", "macos")


class _Labs(Record, frozen=True):
    schema: int
    lab: tuple[Text, ...]


@cache
def texts() -> dict[str, Text]:
    """Return the texts of all labs by key, in teaching order."""
    raw = tomllib.loads((files("assistant.labs") / "labs.toml").read_text("utf-8"))
    return {text.key: text for text in from_plain(raw, _Labs, "labs.toml").lab}


def text_of(key: str) -> Text:
    """Return the texts of one lab; raise `BadInput` for an unknown key."""
    if key not in texts():
        names = ", ".join(texts())
        raise BadInput(_("There is no lab named {name}.", name=key), hint=_("Choose one of: {names}.", names=names))
    return texts()[key]


class Score(Record, frozen=True):
    """A learner's result in one lab so far."""

    lab: str
    hints: int = 0
    misses: int = 0
    solved: bool = False

    @property
    def points(self) -> int:
        """Ten for a lab solved at once; two less for each hint, one for each check that fails, at least one."""
        return max(1, POINTS - HINT_COST * self.hints - MISS_COST * self.misses) if self.solved else 0


class Answer:
    """What a lab answers: Markdown in a notebook, plain text elsewhere; a check's answer holds the score."""

    def __init__(self, text: str, score: Score | None = None) -> None:
        self.text, self.score = text, score

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_asked: object) -> dict[str, object]:
        """Return what a notebook shows, and what `assistant labs check` reads."""
        shown: dict[str, object] = {"text/plain": self.text, "text/markdown": self.text}
        if self.score:
            shown[MIME] = to_plain(self.score)
        return shown


class Lab:
    """A lab by its key, in a folder of the user's cache, or in `folder`; `torch` is a Python that has torch.

    `language` is "en" or "zh_CN"; the system's by default. Raises `BadInput` for an unknown key.
    """

    def __init__(self, key: str, folder: Path | str | None = None, *, torch: str = "", language: str = "") -> None:
        if language:
            use_language(language)
        self.text, self._exercise = text_of(key), SCENES[key]
        place = folder or user_cache() / "labs" / key
        self.scene = Scene(Path(place), torch)

    def start(self) -> Answer:
        """Set up the broken state and tell the story; the lab's folder is emptied first."""
        self.scene.clear()
        self._exercise.breaks(self.scene)
        self._keep(Score(lab=self.text.key))
        parts = [f"### {say(self.text.title)}", say(self.text.story)]
        if self.text.files:
            parts.append(say("You may change: {files}.", files=", ".join(f"`{name}`" for name in self.text.files)))
        return Answer("\n\n".join([*parts, self.symptom().text]))

    reset = start

    def symptom(self) -> Answer:
        """Run what fails, and show the end of what it prints."""
        outcome = self._exercise.symptom(self.scene)
        return self._shown(outcome.text)

    def diagnose(self) -> Answer:
        """Diagnose what the symptom prints; the likeliest causes, best first."""
        log = self._exercise.symptom(self.scene).text
        found = diagnosed(read_log(log), _HERE.get(sys.platform, _LINUX))
        lines = [f"- **{diagnosis.title}** {diagnosis.cause}" for diagnosis in found[:MOST_CAUSES]]
        return Answer("\n".join(lines) or say("No known problem matches this; look at the last lines yourself."))

    def run(self, command: str) -> Answer:
        """Run a line: python, pip, uv or assistant first; `> FILE` at its end keeps what it prints."""
        return self._shown(self.scene.run(command).text)

    def write(self, name: str, text: str) -> Answer:
        """Write one of the lab's files."""
        self.scene.write(name, text)
        return Answer(say("Written to {file}.", file=name))

    def read(self, name: str) -> Answer:
        """Show one of the lab's files."""
        return Answer(f"```text\n{self.scene.read(name)}\n```")

    def hint(self) -> Answer:
        """Show the next hint, which costs two points; the last one is shown again and again."""
        score = self.score
        given = min(score.hints, len(self.text.hints) - 1)
        self._keep(replace(score, hints=given + 1))
        hints = self.text.hints
        return Answer(
            say("Hint {number} of {count}: {hint}", number=given + 1, count=len(hints), hint=say(hints[given]))
        )

    def check(self) -> Answer:
        """Check whether it is fixed; a check that fails costs a point."""
        fault, score = self._exercise.remaining(self.scene), self.score
        if fault:
            score = self._keep(score if score.solved else replace(score, misses=score.misses + 1))
            return Answer(say("Not fixed yet. {fault}", fault=self.scene.bare(render(fault))), score)
        score = self._keep(replace(score, solved=True))
        fixed = say("Fixed: {points} of {most} points.", points=score.points, most=POINTS)
        return Answer(f"**{fixed}** {say(self.text.explanation)}", score)

    def solve(self) -> Answer:
        """Apply the documented answer, for the instructor, and check."""
        for line in self.text.answer:
            name, marker, text = line.partition(" <<< ")
            if marker:
                self.scene.write(name, text)
            else:
                self.scene.run(line)
        return self.check()

    @property
    def score(self) -> Score:
        """The learner's result so far; empty before `start`."""
        kept = self.scene.read("score.json")
        return from_json(kept, Score, "score.json") if kept else Score(lab=self.text.key)

    def _keep(self, score: Score) -> Score:
        self.scene.write("score.json", to_json(score))
        return score

    def _shown(self, text: str) -> Answer:
        lines = self.scene.bare(text).splitlines()[-SHOWN_LINES:]
        return Answer("\n".join(["```text", *lines, "```"]))
