"""Proves what a learner did: the lab is made anew in a throw-away folder, and the journal's deeds are done again.

Nothing of the notebook runs. Our code reads the journal here; every command that the lab or the learner's lines start
runs in a bubblewrap of its own, where only the throw-away folder can be written to. Files in it are read as plain
files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from assistant.host.sandbox import Bubble, Limits, obstacle, places_of, share_of_memory, shut_in
from assistant.i18n import Text, _, say
from assistant.labs.answer import Submission
from assistant.labs.definition import Definition, labs
from assistant.labs.grade import Grade, grade_from, learner_of, notebooks, submissions
from assistant.labs.journal import Entry, Kind, score_of, solving
from assistant.labs.play import Play
from assistant.labs.scene import PLAIN, Outcome, environment_with_torch, package_sources
from assistant.labs.shared import APART, is_not_shared, shared
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import replace

REPLAY_SECONDS = 1800.0  # of all deeds of one lab
SHARE, LEAST_MEMORY = 0.5, 4 << 30  # of the machine's memory, and bytes: torch in a kernel and in a lab's program
PROCESSES = 256  # of all that a command starts; threads of torch count on some systems
FILE_BYTES = 8 << 30  # of one file: the largest wheel of torch has half of it


class Rules(NamedTuple):
    """How deeds are done again: `trusted` without a sandbox, with the `network`, with packages from `source` alone."""

    trusted: bool = False
    network: bool = False
    source: str = ""
    seconds: float = REPLAY_SECONDS

    def check(self) -> None:
        """Raise `BadInput` where nothing isolates and nobody trusts."""
        if not self.trusted and (reason := obstacle()):
            raise BadInput(
                _(
                    "What learners typed are programs, and nothing here can isolate them: {reason}.",
                    reason=reason,
                ),
                hint=_(
                    "Install bubblewrap (Debian: apt install bubblewrap), or trust them all.", option="--i-trust-these"
                ),
            )

    @property
    def on_disk(self) -> bool:
        """Whether the index is a folder."""
        return bool(self.source) and "://" not in self.source

    def sources(self) -> dict[str, str]:
        """Return the variables that say where packages come from."""
        if not self.source and not self.network:
            place = shared()
            return {"UV_OFFLINE": "1", "PIP_RETRIES": "0", **(place.variables if place else {})}
        if not self.source:  # a password would be the learner's to read, and uv's own settings file may hold some
            known = {name: value for name, value in package_sources().items() if "@" not in value}
            return {name: value for name, value in known.items() if name != "UV_CONFIG_FILE"} | {"UV_NO_CONFIG": "1"}
        address = Path(self.source).resolve().as_uri() if self.on_disk else self.source
        return {"UV_DEFAULT_INDEX": address, "PIP_INDEX_URL": address, "UV_NO_CONFIG": "1"}

    def folders(self) -> Iterator[Path]:
        """Yield the folders that packages come from."""
        for word in re.split(r"[\s,]+", " ".join(self.sources().values())):
            place = Path(word.removeprefix("file://"))
            if place.is_absolute() and place.is_dir():
                yield (place.parent if place.name == "simple" else place).resolve()  # its pages lead to files beside it


class Confined:
    """Runs a scene's commands in bubblewrap; `place` is the throw-away folder, `cache` is uv's for all labs.

    Only while `breaking` a lab, when no learner's program is in the folder, may a command write into the cache. Where
    there is a folder that a class shares, the cache leads there, and what uv has to unpack itself goes elsewhere. While
    `judging`, what Python has compiled is not taken from where a learner may have put it.
    """

    def __init__(self, place: Path, cache: Path, rules: Rules, deadline: float) -> None:
        self.place, self.cache, self.rules = place, cache, rules
        self.breaking, self.judging = True, False
        self.places: list[Path] = [*rules.folders()]
        if not rules.source and (found := shared()):
            self.places.append(found.folder)
            self.cache = found.lead(place / "uv")
        self._own_cache = place / "home" / ".cache" / "uv"
        self._deadline = deadline
        self._memory = share_of_memory(SHARE, LEAST_MEMORY)
        self._number = count()

    def __call__(self, argv: list[str], variables: Mapping[str, str], folder: Path, limit: float) -> Outcome:
        """Run a command; past its limit, or that of the whole lab, it ends with 124."""
        done = self._run(argv, variables, folder, limit)
        if self.cache.is_relative_to(self.place) and is_not_shared(done):
            own = {"UV_CACHE_DIR": str(self._own_cache)}
            return self._run(argv, {**variables, **APART, **own}, folder, limit)
        return done

    def _run(self, argv: list[str], variables: Mapping[str, str], folder: Path, limit: float) -> Outcome:
        seconds = min(limit, self._deadline - time.monotonic())
        if seconds <= 0:
            return Outcome(124, say("Not finished after {seconds:.0f} s.", seconds=self.rules.seconds))
        network = self.rules.network or bool(self.rules.source and not self.rules.on_disk)
        filled = self.breaking or self.cache.is_relative_to(self.place)
        bubble = None if self.rules.trusted else Bubble(tuple(self.places), network, (self.cache,) if filled else ())
        own = self.cache if filled else self._own_cache
        elsewhere = str(self.place / "tmp" / f"compiled-{next(self._number)}")
        compiled = {"PYTHONPYCACHEPREFIX": elsewhere} if self.judging else {}
        done = shut_in(
            argv,
            Limits(seconds, self._memory, PROCESSES, file_bytes=FILE_BYTES),
            self.place,
            bubble=bubble,
            work=folder,
            variables={**PLAIN, "UV_CACHE_DIR": str(own), **compiled, **variables},
        )
        if done.reached:
            return Outcome(124, "\n".join([*done.lines, say("A limit was reached: {name}.", name=done.reached)]))
        return Outcome(done.code, "\n".join(done.lines))

    def torch(self) -> str:
        """Return the Python with torch, which commands can see from then on."""
        python = environment_with_torch()
        self.places += places_of(python)
        return python


def prove(folder: Path, rules: Rules) -> Iterator[Grade]:
    """Do again what every notebook below a folder holds, and grade what came of it.

    Raises `BadInput` for no folder, and where no sandbox works here unless the learners are trusted.
    """
    found = notebooks(folder)
    rules.check()
    with TemporaryDirectory(prefix="labs-cache-", ignore_cleanup_errors=True) as cache:
        for path in found:
            yield from _proved(path, str(path.relative_to(folder)), learner_of(path, folder), rules, Path(cache))


def grade_notebook(path: Path, learner: str = "", rules: Rules | None = None) -> list[Grade]:
    """Do again what one learner's notebook holds, and grade it; raises `BadInput` as `prove` does."""
    rules = rules or Rules()
    rules.check()
    with TemporaryDirectory(prefix="labs-cache-", ignore_cleanup_errors=True) as cache:
        return list(_proved(path, path.name, learner or path.stem, rules, Path(cache)))


def _proved(path: Path, name: str, learner: str, rules: Rules, cache: Path) -> Iterator[Grade]:
    found, fault = submissions(path)
    if fault:
        yield Grade(notebook=name, learner=learner, fault=fault)
    for one in found:
        definition = labs()[one.lab]
        wrong = _wrong(definition, one, learner, rules, cache.resolve())
        score = score_of(definition.text(), one.journal, solved=not wrong)
        yield replace(grade_from(name, learner, one, score, proved=True), fault=wrong)


def _wrong(definition: Definition, one: Submission, learner: str, rules: Rules, cache: Path) -> Text:
    """Return what is wrong after a learner's deeds; "" when the lab is solved."""
    named = learner if one.learner else ""
    with TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        runner = Confined(place, cache, rules, time.monotonic() + rules.seconds)
        runner.places.append(definition.folder)
        play = Play(definition, place / "lab", named, find_torch=runner.torch, runner=runner, sources=rules.sources())
        try:
            play.start()
            runner.breaking = False
            do_again(play, solving(one.journal))
            runner.judging = True
            return play.scene.bare(play.fault())
        except AssistantError as error:
            return _("It cannot be done again: {reason}", reason=error.message)
        except OSError as error:
            return _("It cannot be done again: {reason}", reason=error.strerror or type(error).__name__)


def do_again(play: Play, entries: Sequence[Entry]) -> None:
    """Do what a journal says was written and run; what failed for the learner fails again, and the next is done."""
    for entry in entries:
        with suppress(AssistantError, OSError, ValueError):
            if entry.kind is Kind.RUN:
                play.scene.run(entry.content)
            elif entry.kind is Kind.WRITE:
                play.scene.write(entry.content, entry.text)
