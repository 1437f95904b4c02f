"""The labs as a page of a notebook: choose one, start it, run what fails, say the cause, check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from assistant.api import AssistantError, render, say
from assistant.api.texts import LANGUAGES, Markup, joined, language, tag, use_language
from assistant_addons.labs import activation
from assistant_addons.labs.definition import labs
from assistant_addons.labs.play import POINTS, Play
from assistant_addons.labs.words import may_change, needs_of, result_line

WIDE = {"layout": {"width": "auto"}}
SHOW_FOLDER = """export default { render({ model, el }) {
  model.on("change:path", () => el.dispatchEvent(new CustomEvent("ptsa-open-file",
    { bubbles: true, cancelable: true, detail: { path: model.get("path") } })));
} };"""


class FileList(anywidget.AnyWidget):
    """Shows a folder in JupyterLab's file list, where the assistant's extension is there; draws nothing."""

    _esm = SHOW_FOLDER
    path = traitlets.Unicode("").tag(sync=True)


class Labs(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """The page; `play` is the lab that is chosen, `status` what is said of what runs just now."""

    def __init__(self) -> None:
        super().__init__()
        self.language = widgets.Dropdown(options=[(name, code) for code, name in LANGUAGES.items()])
        self.language.value = language()
        self.chosen = widgets.Dropdown(**WIDE)
        self.learner = widgets.Text()
        self.progress, self.task, self.shown, self.status = (widgets.HTML() for _ in range(4))
        self.cause, self.evidence = widgets.RadioButtons(**WIDE), widgets.Combobox(layout={"width": "60%"})
        self.files = FileList()
        self.start, self.run, self.hint, self.answer, self.check, self.next = (widgets.Button(**WIDE) for _ in range(6))
        rows = ([self.chosen, self.learner, self.language], [self.start, self.run, self.hint, self.check, self.next])
        top, buttons = (widgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in rows)
        answer = widgets.HBox([self.evidence, self.answer])
        self.children = [
            top,
            self.progress,
            self.task,
            buttons,
            self.status,
            self.shown,
            self.cause,
            answer,
            self.files,
        ]
        self.play = self._played(next(iter(labs())))
        self.chosen.observe(self._choose, "value")
        self._reword()
        self._draw()
        self.language.observe(self._speak, "value")
        for button, work in (
            (self.start, self._start),
            (self.run, self._run),
            (self.hint, lambda: self._say(self.play.hint())),
            (self.answer, lambda: self._say(self.play.name(self.cause.value or "", self.evidence.value))),
            (self.check, self._check),
            (self.next, self._next),
        ):
            button.on_click(self._guarded(work))

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "Labs()"

    def _played(self, key: str) -> Play:
        return Play(key, learner=self.learner.value.strip(), report=self._say)

    def _guarded(self, work: Callable[[], object]) -> Callable[[object], None]:
        """Return what a button does: its work, with the buttons off meanwhile and an error as one sentence."""

        def press(_button: object) -> None:
            buttons = (self.start, self.run, self.hint, self.answer, self.check, self.next)
            for one in buttons:
                one.disabled = True
            try:
                work()
            except AssistantError as error:
                self._say(" ".join(render(part) for part in (error.message, error.hint) if part))
            finally:
                for one in buttons:
                    one.disabled = False
                self._draw()

        return press

    def _say(self, text: str) -> None:
        self.status.value = str(joined(tag("p", part) for part in text.split("\n\n")))

    def _start(self) -> None:
        self._say(say("Starting: the first time this can take some minutes."))
        self.play = self._played(self.play.space.key)
        self.play.start()
        self.files.path = str(self.play.space.folder)
        self._run()

    def _run(self) -> None:
        self._say(say("Running {command} …", command=self.play.definition.symptom))
        lines = self.play.symptom().text.splitlines()
        self.shown.value = str(tag("pre", "\n".join(lines)))
        self.evidence.options = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
        self._say("")

    def _check(self) -> None:
        self._say(say("Running {command} …", command=self.play.definition.symptom))
        fault, _result = self.play.check()
        self._say(result_line(self.play, fault))

    def _next(self) -> None:
        keys = list(labs())
        self.chosen.value = keys[(keys.index(self.play.space.key) + 1) % len(keys)]

    def _choose(self, change: dict[str, Any]) -> None:
        self.play = self._played(change["new"])
        self.shown.value, self.status.value, self.evidence.options = "", "", ()
        self._draw()

    def _speak(self, change: dict[str, Any]) -> None:
        use_language(change["new"])
        self._reword()
        self._draw()

    def _reword(self) -> None:
        """Put every word that no lab decides into the language in force."""
        self.chosen.unobserve(self._choose, "value")  # new words for the options take the first one for chosen
        self.chosen.options = [(self._title(key), key) for key in labs()]
        self.chosen.value = self.play.space.key
        self.chosen.observe(self._choose, "value")
        self.chosen.description, self.learner.description = say("Lab"), say("Your name")
        self.language.description = say("Language")
        self.evidence.description = say("Because")
        self.evidence.placeholder = say("a line of the output, or your own words")
        self.start.description, self.run.description = say("Start"), say("Run what fails")
        self.hint.description, self.check.description = say("Hint (2 points)"), say("Check it")
        self.answer.description, self.next.description = say("That is the cause"), say("Next lab")

    @staticmethod
    def _title(key: str) -> str:
        definition = labs()[key]
        minutes = say("{count} min", count=definition.minutes)
        return f"{definition.title} ({', '.join(filter(None, [minutes, needs_of(definition)]))})"

    def _draw(self) -> None:
        """Draw the lab that is chosen, and how far the learner is."""
        results = [self._played(key).result for key in labs()]
        fixed = sum(one.solved for one in results)
        self.progress.value = say(
            "{fixed} of {count} labs fixed, {points} of {most} points",
            fixed=fixed,
            count=len(results),
            points=sum(one.points for one in results),
            most=POINTS * len(results),
        )
        definition, started = self.play.definition, self.play.started
        parts = [tag("h3", str(definition.title)), tag("p", str(definition.task)), tag("p", may_change(definition))]
        self.task.value = str(joined([*parts, *(self._where() if started else ())]))
        causes = [(words, key) for key, words in self.play.causes.items()]
        if [*self.cause.options] != causes:
            self.cause.options, self.cause.value = causes, None
        for part in (self.cause, self.evidence, self.answer, self.run, self.hint, self.check):
            part.layout.display = None if started else "none"

    def _where(self) -> Sequence[Markup]:
        """Say where the lab lies, and how a terminal becomes its own."""
        folder = self.play.space.folder
        line = say("Its folder is {folder}. Change its files in any editor; in a terminal, type first:", folder=folder)
        return tag("p", line), tag("pre", activation.command(folder))
