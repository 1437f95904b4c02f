"""Rules that somebody adds: read more strictly than the shipped ones, which tests hold, and tried on their examples."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # the tree of a pattern has no public name
from typing import Any

from assistant.diagnose.engine import diagnose
from assistant.diagnose.rules import Rule, RuleFile, compiled, read_file, shipped_rules
from assistant.i18n import Message, _
from assistant.model.errors import BadInput

FARTHEST = 1000  # times that a repeat may go on, with those inside it: more would let a long line take seconds
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
INNER = {*REPEATS, _constants.SUBPATTERN, _constants.ASSERT, _constants.ASSERT_NOT}


def read_user_rules(text: str, name: str) -> RuleFile:
    """Read a user's file of rules; raise `BadInput` naming file, rule and what is wrong."""
    try:
        read = read_file(text, name)
    except tomllib.TOMLDecodeError as error:
        raise _refused(name, _("it is no TOML: {reason}", reason=str(error))) from error
    except (ValueError, TypeError) as error:
        raise BadInput(_("{file} holds no usable rule: {reason}.", file=name, reason=str(error)), hint=_HINT) from error
    known = {rule.key for rule in shipped_rules()}
    for rule in read.rule:
        if rule.key in known:
            raise _refused(name, _("there is a rule named {key} already", key=rule.key))
        known.add(rule.key)
        for pattern in rule.patterns:
            if runs_away(pattern):
                text_of = _("{key}: a repeat in {pattern} has no end; write {0,80} in place of *", key=rule.key)
                raise _refused(name, text_of.format(pattern=pattern))
    return read


_HINT = _("`assistant rules test FILE` tells more; `assistant rules new KEY` writes a file to begin with.")


def _refused(name: str, reason: Message) -> BadInput:
    return BadInput(_("{file} holds no usable rule: {reason}.", file=name, reason=reason), hint=_HINT)


def lacking(read: RuleFile) -> Iterator[Message]:
    """Yield what a file's rules still lack, in a sentence each; the rules are among those of `load_rules` by then."""
    for rule in read.rule:
        yield from (_("{key}: {fault}", key=rule.key, fault=fault) for fault in _lacking(rule, read.zh_CN))


def _lacking(rule: Rule, chinese: dict[str, str]) -> Iterator[Message]:
    if not KEY.fullmatch(rule.key):
        yield _("the key is to be of small letters, digits and hyphens.")
    if not rule.sign:
        yield _("it has no sign, so no log can show it.")
    if not rule.remedy:
        yield _("it has no remedy.")
    if not rule.sources or not all(source.startswith("https://") for source in rule.sources):
        yield _("it needs a source on the web that others can read, such as the issue or the maker's page.")
    for text in (rule.title, rule.cause, *(remedy.text for remedy in rule.remedy)):
        if not chinese.get(text):
            yield _('the Chinese of "{text}" is missing below [zh_CN].', text=text)
    for command in (one for remedy in rule.remedy for one in (*remedy.commands, *remedy.check)):
        if fault := _unparsed(command):
            yield _("the command {command} cannot be typed: {reason}.", command=command, reason=fault)
    yield from _untrue(rule)


def _unparsed(command: str) -> str:
    """Return why a shell would not read a command to its end; "" where it would."""
    try:
        shlex.split(command)
    except ValueError as error:
        return str(error)
    return ""


def _untrue(rule: Rule) -> Iterator[Message]:
    """Yield which of its examples a rule does not hold for."""
    if not rule.shows or not rule.healthy:
        yield _("it needs examples: `shows` with logs of this failure, `healthy` with similar ones without it.")
    for number, log in enumerate(rule.shows, 1):
        found = diagnose(log)
        if not found or found[0].key != rule.key:
            first = found[0].key if found else _("nothing")
            yield _("log {number} in `shows` is answered with {first} first.", number=number, first=first)
    for number, log in enumerate(rule.healthy, 1):
        if rule.key in {cause.key for cause in diagnose(log)}:
            yield _("log {number} in `healthy` is taken for this failure.", number=number)


def runs_away(pattern: str) -> bool:
    """Return whether a repeat in a pattern, with those inside it, goes on for more than a thousand times."""
    for most, repeated in _repeats(_parser.parse(compiled(pattern).pattern)):
        inner = [count for count, _repeated in _repeats(repeated)]
        if _constants.MAXREPEAT in {most, *inner} or most * max(inner, default=1) > FARTHEST:
            return True
    return False


def _repeats(tree: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - a private type
    """Walk all repeats of a tree, each with what it repeats."""
    for kind, value in tree:
        if kind in REPEATS:
            yield value[1], value[2]
        parts = value[1] if kind is _constants.BRANCH else value[-1:] if kind in INNER else ()
        for part in parts:
            yield from _repeats(part)
