"""Tries whether a lab is what its author promises: it breaks, refuses wrong ways and takes right ones."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from assistant.host.files import read_plain
from assistant.i18n import Message, Text, _, render
from assistant.labs.definition import FILE_BYTES, PROGRAM, Definition, LabText, Translation, Way
from assistant.labs.journal import proves
from assistant.labs.play import Play
from assistant.model.errors import AssistantError
from assistant.model.record import Record

LEAST_RIGHT, LEAST_WRONG, LEAST_HINTS, LEAST_CAUSES = 2, 1, 2, 2
SHARE_OF_MINUTES = 0.5  # chosen: more of a learner's time no start may take
NAMES = 64  # that are tried for drawing each variant
_CODE = re.compile(r"`[^`]+`")
_TOKEN = re.compile(r"[\w./<>=-]{5,}")
_SHARED = ("title", "objectives", "story", "hints", "explanation", "remember", "causes", "faults")


class Trial(Record, frozen=True):
    """What a lab's trial found: `faults` to correct, and how many seconds everything took."""

    key: str
    faults: tuple[Text, ...]
    seconds: float


def try_lab(definition: Definition, folder: Path, *, torch: str = "") -> Trial:
    """Play every variant of a lab below `folder`; what keeps it from being played here is a fault, too."""
    began = time.monotonic()
    faults: list[Text] = []
    try:
        faults += [*_unwritten(definition)]
        for number, learner in enumerate(_learners(definition)):
            play = Play(definition, folder / f"lab {number}", learner, torch=torch)
            faults += _played(play)
    except AssistantError as error:
        faults.append(error.message)
    return Trial(key=definition.key, faults=tuple(dict.fromkeys(faults)), seconds=round(time.monotonic() - began, 1))


def _learners(definition: Definition) -> Iterator[str]:
    """Yield a name for each variant."""
    drawn = {repr(sorted(definition.values(name).items())): name for name in ["", *map(str, range(NAMES))]}
    yield from drawn.values()


def _unwritten(definition: Definition) -> Iterator[Message]:
    """Yield what is missing in the texts."""
    text, ways = definition.english, definition.ways
    few = {
        "hints": (len(text.hints), LEAST_HINTS),
        "causes": (len(text.causes), LEAST_CAUSES),
        "objectives": (len(text.objectives), 1),
        "evidence": (len(text.evidence), 1),
        "right": (len(ways.right), LEAST_RIGHT),
        "wrong": (len(ways.wrong), LEAST_WRONG),
    }
    for name, (there, least) in few.items():
        if there < least:
            yield _("It has {there} of at least {least} “{name}”.", there=there, least=least, name=name)
    if not any(token in text.hints[-1] for way in ways.right for line in way.lines for token in _TOKEN.findall(line)):
        yield _("The last hint names nothing of any right way.")
    program = read_plain(definition.folder / PROGRAM, FILE_BYTES, follow=True).decode()
    if any(piece in program for piece in text.evidence):
        yield _("The evidence stands in {file}: let a program say it that really fails.", file=PROGRAM)
    yield from _translated(text, definition.chinese)


def _translated(text: LabText, chinese: Translation | None) -> Iterator[Message]:
    """Yield what is missing in Chinese, and code that differs."""
    if chinese is None:
        yield _("It has no Chinese texts (lab.zh_CN.toml).")
        return
    for name in _SHARED:
        here, there = _flat(getattr(text, name)), _flat(getattr(chinese, name))
        if here.keys() != there.keys():
            yield _("In Chinese, “{name}” has other parts.", name=name)
        for part in here.keys() & there.keys():
            if sorted(_CODE.findall(here[part])) != sorted(_CODE.findall(there[part])):
                yield _("In Chinese, “{name}” shows other code.", name=name)


def _flat(value: str | tuple[str, ...] | dict[str, str]) -> dict[str, str]:
    if isinstance(value, dict):
        return value
    return {str(number): one for number, one in enumerate((value,) if isinstance(value, str) else value)}


def _played(play: Play) -> Iterator[Text]:
    """Yield what is wrong with one variant when it is played."""
    began = time.monotonic()
    play.start()
    outcome = play.symptom()
    if (took := time.monotonic() - began) > SHARE_OF_MINUTES * 60 * play.text.minutes:
        yield _("The start takes {seconds:.0f} s of {minutes} minutes.", seconds=took, minutes=play.text.minutes)
    if not outcome.status:
        yield _("Nothing fails after the start.")
    if not proves(play.text, outcome.text):
        yield _("The failing program prints none of the evidence.")
    if (wanted := play.text.diagnosis) and (found := next((one.key for one in play.causes()), "")) != wanted:
        yield _("The diagnosis is “{found}” in place of “{wanted}”.", found=found, wanted=wanted)
    if not play.fault():
        yield _("It counts as fixed at the start.")
    for way in play.definition.ways.wrong:
        if not _after(play, way):
            yield _("A wrong way counts as right: {line}", line=way.lines[0])
    for way in play.definition.ways.right:
        if fault := _after(play, way):
            yield _("A right way is refused: {line} ({fault})", line=way.lines[0], fault=fault)


def _after(play: Play, way: Way) -> str:
    """Start anew, do a way, and return what is still wrong."""
    play.start()
    for line in play.definition.filled_way(way, play.learner).lines:
        try:
            play.scene.do(line)
        except AssistantError as error:
            return render(error.message)
    return play.scene.bare(play.fault())
