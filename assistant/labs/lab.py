"""One lab as its notebook sees it: start, look, try, ask for a hint, check."""

from __future__ import annotations

import sys
from pathlib import Path

from assistant.diagnose import read_log
from assistant.host.folders import user_cache
from assistant.i18n import render, say, use_language
from assistant.labs.scene import Scene
from assistant.labs.scenes import SCENES
from assistant.labs.texts import text_of
from assistant.model.machine import Machine
from assistant.model.record import Record, from_json, replace, to_json, to_plain
from assistant.session.diagnosis import diagnosed

MIME = "application/vnd.torch-setup-assistant.lab+json"
POINTS, HINT_COST, MISS_COST = 10, 2, 1
SHOWN_LINES = 12
MOST_CAUSES = 3
_HERE = {"win32": Machine(os="windows"), "darwin": Machine(os="macos")}
_LINUX = Machine(os="linux", wsl=False)


class Score(Record, frozen=True):
    """How a learner stands with one lab."""

    lab: str
    hints: int = 0
    misses: int = 0
    solved: bool = False

    @property
    def points(self) -> int:
        """Ten for a lab mended at once; two less for each hint, one for each check too early, at least one."""
        return max(1, POINTS - HINT_COST * self.hints - MISS_COST * self.misses) if self.solved else 0


class Told:
    """What a lab answers: Markdown in a notebook, plain text elsewhere; a check carries its score along."""

    def __init__(self, text: str, score: Score | None = None) -> None:
        self.text, self.score = text, score

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_asked: object) -> dict[str, object]:
        """Give a notebook what it shows and what `assistant labs check` reads."""
        shown: dict[str, object] = {"text/plain": self.text, "text/markdown": self.text}
        if self.score:
            shown[MIME] = to_plain(self.score)
        return shown


class Lab:
    """A lab by its key, played in a folder of the user's cache, or in `folder`; `torch` is a Python that has torch.

    `language` is "en" or "zh_CN"; your system's by default. Raises `BadInput` for a key that is not there.
    """

    def __init__(self, key: str, folder: Path | str | None = None, *, torch: str = "", language: str = "") -> None:
        if language:
            use_language(language)
        self.text, self._play = text_of(key), SCENES[key]
        place = folder or user_cache() / "labs" / key
        self.scene = Scene(Path(place), torch)

    def start(self) -> Told:
        """Break it: make the folder anew and tell the story. What was there of this lab is gone."""
        self.scene.clear()
        self._play.breaks(self.scene)
        self._keep(Score(lab=self.text.key))
        story = f"### {say(self.text.title)}\n\n{say(self.text.story)}"
        return Told("\n\n".join([story, *self._files(), self.symptom().text]))

    reset = start

    def symptom(self) -> Told:
        """Run what fails, and show the end of what it prints."""
        outcome = self._play.symptom(self.scene)
        return self._shown(outcome.text)

    def diagnose(self) -> Told:
        """Let the assistant read what the symptom prints: the likeliest causes, best first."""
        log = self._play.symptom(self.scene).text
        found = diagnosed(read_log(log), _HERE.get(sys.platform, _LINUX))
        lines = [f"- **{diagnosis.title}** {diagnosis.cause}" for diagnosis in found[:MOST_CAUSES]]
        return Told("\n".join(lines) or say("No known problem matches this; look at the last lines yourself."))

    def run(self, command: str) -> Told:
        """Run a line: python, pip, uv or assistant first; `> FILE` at its end keeps what it prints."""
        return self._shown(self.scene.run(command).text)

    def write(self, name: str, text: str) -> Told:
        """Write one of the lab's files."""
        self.scene.write(name, text)
        return Told(say("Written to {file}.", file=name))

    def read(self, name: str) -> Told:
        """Show one of the lab's files."""
        return Told(f"```text\n{self.scene.read(name)}\n```")

    def hint(self) -> Told:
        """Give the next hint, which costs two points; after the last one it is given again."""
        score = self.score
        given = min(score.hints, len(self.text.hints) - 1)
        self._keep(replace(score, hints=given + 1))
        told = say("Hint {number} of {count}: {hint}")
        return Told(told.format(number=given + 1, count=len(self.text.hints), hint=say(self.text.hints[given])))

    def check(self) -> Told:
        """Run it and tell whether it is mended; a check too early costs a point."""
        fault, score = self._play.fault(self.scene), self.score
        if fault:
            score = self._keep(score if score.solved else replace(score, misses=score.misses + 1))
            return Told(say("Not fixed yet. {fault}", fault=self.scene.bare(render(fault))), score)
        score = self._keep(replace(score, solved=True))
        mended = say("Fixed: {points} of {most} points.", points=score.points, most=POINTS)
        return Told(f"**{mended}** {say(self.text.explanation)}", score)

    def solve(self) -> Told:
        """Do what the answer says, for the instructor, and check."""
        for line in self.text.answer:
            name, marker, text = line.partition(" <<< ")
            if marker:
                self.scene.write(name, text)
            else:
                self.scene.run(line)
        return self.check()

    @property
    def score(self) -> Score:
        """How the learner stands; nothing yet before `start`."""
        kept = self.scene.read("score.json")
        return from_json(kept, Score, "score.json") if kept else Score(lab=self.text.key)

    def _keep(self, score: Score) -> Score:
        self.scene.write("score.json", to_json(score))
        return score

    def _shown(self, text: str) -> Told:
        lines = self.scene.bare(text).splitlines()[-SHOWN_LINES:]
        return Told("\n".join(["```text", *lines, "```"]))

    def _files(self) -> list[str]:
        named = ", ".join(f"`{name}`" for name in self.text.files)
        return [say("You may change: {files}.", files=named)] if named else []
