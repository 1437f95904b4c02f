"""One lab as its notebook sees it: start, look, predict, try, ask for a hint, check."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from assistant.host.files import read_plain
from assistant.host.folders import user_cache
from assistant.i18n import _, say, use_language
from assistant.labs.answer import Answer, Shown, Submission, block
from assistant.labs.definition import LabText, lab_at
from assistant.labs.journal import (
    AID_COST,
    BEGINS,
    GUESS_COST,
    HINT_COST,
    POINTS,
    Entry,
    Journal,
    Kind,
    Score,
    attempt,
    is_right,
    proves,
    score_of,
)
from assistant.labs.play import Play
from assistant.model.errors import BadInput
from assistant.model.record import from_json, replace, to_json

MOST_CAUSES = 3
CAPTURED_BYTES = 1 << 20  # of a file that an editor has changed


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
        definition = lab_at(key)
        place = Path(folder or user_cache() / "labs" / definition.key).absolute()
        self._play = Play(definition, place, learner, torch=torch)
        self.scene = self._play.scene
        self._journal = Journal(place.with_name(f"{place.name}.journal.jsonl"))

    @property
    def text(self) -> LabText:
        """The lab's texts in the language of the moment."""
        return self._play.text

    def start(self) -> Answer:
        """Set up the broken state and tell the story; the lab's folder is emptied first, its journal is kept."""
        self._play.start()
        kind = Kind.RESET if self._journal.entries() else Kind.START
        self._journal.add(kind, self._play.learner, to_json(dict(self._digests())))
        text = self.text
        goals = "".join(f"\n- {goal}" for goal in text.objectives)
        parts = [f"### {text.title}", say("About {count} minutes. You learn to:", count=text.minutes) + goals]
        parts.append(text.story)
        if text.files:
            parts.append(say("You may change: {files}.", files=", ".join(f"`{name}`" for name in text.files)))
        causes = "".join(f"\n- `{key}`: {words}" for key, words in text.causes.items())
        parts.append(say("What is the cause? Predict it before you fix anything:") + causes)
        return Answer("\n\n".join([*parts, self.symptom().text]))

    reset = start

    def symptom(self) -> Answer:
        """Run what fails, and show what it prints."""
        return self._shown(self._play.symptom().text)

    def predict(self, cause: str, evidence: str) -> Answer:
        """Name the cause by its key, with the words of the output that prove it; the first cause counts."""
        text = self.text
        if cause not in text.causes:
            raise BadInput(
                _("“{cause}” is not among this lab's causes.", cause=cause),
                hint=_("Choose one of: {names}.", names=", ".join(text.causes)),
            )
        self._journal.add(Kind.PREDICT, cause, self.scene.portable(evidence))
        if is_right(text, cause, evidence):
            return Answer(say("That is the cause, and your evidence proves it. Now fix it."))
        if cause == text.cause:
            return Answer(say("It may be, but this evidence does not prove it: quote the words that do."))
        if proves(text, evidence):
            return Answer(say("Your evidence matters, but it speaks for another cause."))
        return Answer(say("Nothing proves that. Look at the output again: which words name what failed?"))

    def diagnose(self) -> Answer:
        """Let the assistant diagnose what the symptom prints: an aid that costs a point, once."""
        found = self._play.causes()
        self._journal.add(Kind.AID, "diagnose")
        lines = [f"- **{diagnosis.title}** {diagnosis.cause}" for diagnosis in found[:MOST_CAUSES]]
        told = "\n".join(lines) or say("No known problem matches this; look at the last lines yourself.")
        return Answer(f"{told}\n\n{self._cost(AID_COST)}")

    def run(self, command: str) -> Answer:
        """Run a line: python, pip, uv or assistant first; `> FILE` at its end keeps what it prints."""
        outcome = self.scene.run(command)
        self._journal.add(Kind.RUN, self.scene.portable(command))
        return self._shown(outcome.text)

    def write(self, name: str, text: str) -> Answer:
        """Write one of the lab's files."""
        self.scene.write(name, text)
        self._journal.add(Kind.WRITE, self.scene.portable(name), self.scene.portable(self.scene.filled(text)))
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
        self._capture()
        fault = self.scene.bare(self._play.fault())
        self._journal.add(Kind.CHECK, fault)
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
        learner = next((entry.content for entry in reversed(entries) if entry.kind in BEGINS), "")
        return Submission(lab=self._play.definition.key, learner=learner, journal=entries)

    def _capture(self) -> None:
        """Take what an editor has changed into the journal, so that it is there when the lab is replayed."""
        known = _known(attempt(self._journal.entries()))
        for name, digest in self._digests():
            if digest != known.get(name):
                self._journal.add(Kind.WRITE, name, self.scene.portable(self.scene.read(name)))

    def _digests(self) -> list[tuple[str, str]]:
        """Return a hash of each text file that the learner may change."""
        found = []
        for name in self.text.files:
            try:
                content = read_plain(self.scene.folder / name, CAPTURED_BYTES).decode()
            except (OSError, UnicodeDecodeError):  # there is none, or it is no text
                continue
            found.append((name, _digest(self.scene.portable(content))))
        return found

    def _shown(self, text: str) -> Answer:
        bare = self.scene.bare(text)
        return Answer(block(bare), plain=bare)


def _known(done: Sequence[Entry]) -> dict[str, str]:
    """Return the hashes of the files as the journal knows them."""
    known: dict[str, str] = {}
    for entry in done:
        if entry.kind in BEGINS:
            known = from_json(entry.text or "{}", dict[str, str], "the journal")
        elif entry.kind is Kind.WRITE:
            known[entry.content] = _digest(entry.text)
    return known


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
