"""Rules that users write: a file to begin with, and what a file lacks of all that the shipped rules have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

from assistant.diagnose.engine import diagnose
from assistant.diagnose.patterns import slow
from assistant.diagnose.rules import KEY, Check, Example, Rule, RuleFile, RuleRemedy, compiled
from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine

EXAMPLES = 4  # a log and three other wordings of it, as each shipped rule has


def new_rules(key: str, day: str) -> str:
    """Return a file of rules to begin with, its comments in English; raise `BadInput` for what can be no key."""
    if not KEY.fullmatch(key):
        raise BadInput(
            _("{key} cannot be the key of a rule.", key=key),
            hint=_("Take small letters and digits with hyphens between the words, as in school-proxy."),
        )
    text = files("assistant.diagnose").joinpath("new_rule.toml").read_text("utf-8")
    return text.replace("KEY", key, 1).replace("DATE", day, 1)


def lacking(file: RuleFile) -> Iterator[Message]:
    """Yield what the rules and checks of a file lack, in a sentence each; they have to be in use (`use_rules`)."""
    if not file.rule and not file.check:
        yield _("The file holds neither a rule nor a check.")
    for rule in file.rule:
        yield from (_("{key}: {fault}", key=rule.key, fault=fault) for fault in _lacking(rule))
    for check in file.check:
        yield from (_("{key}: {fault}", key=check.key, fault=fault) for fault in _lacking_in_check(check))
    yield from _untranslated(file)


def _lacking(rule: Rule) -> Iterator[Message]:
    if not rule.sign:
        yield _("It has no `sign`, so no log can show it.")
    if not all(0 < sign.confidence <= 1 for sign in rule.sign):
        yield _("The confidence of a `sign` is more than 0 and at most 1.")
    if not all(sign.any or sign.all for sign in rule.sign):
        yield _("A `sign` has neither `any` nor `all`: every log would show it.")
    if not rule.remedy:
        yield _("It has no remedy.")
    if not rule.sources or not all(source.startswith("https://") for source in rule.sources):
        yield _NO_SOURCE
    for remedy in rule.remedy:
        yield from _lacking_in_remedy(remedy)
    for pattern in rule.patterns:
        if slow(compiled(pattern)):
            yield _("The pattern {pattern} is too slow on a long log.", pattern=pattern)
    yield from _untrue(rule)


_NO_SOURCE = _("It needs a source that others can read: a page with https://, such as an issue or the maker's page.")


def _lacking_in_check(check: Check) -> Iterator[Message]:
    if not check.source.startswith("https://"):
        yield _NO_SOURCE
    if not check.case:
        yield _("It has no `case`, so it never says anything.")


def _lacking_in_remedy(remedy: RuleRemedy) -> Iterator[Message]:
    for command in (*remedy.commands, *remedy.check):
        if fault := _unreadable(command):
            yield _("The command {command} cannot be typed: {reason}.", command=command, reason=fault)
    if (remedy.commands or remedy.env) and not remedy.check and not remedy.plan:
        yield _('The remedy "{text}" does something and has no `check` that tells whether it helped.', text=remedy.text)


def _unreadable(command: str) -> Text:
    """Return why a command cannot be read to its end; "" where it can. On Windows a backslash is part of a path."""
    try:
        words = shlex.split(command) if "\\" not in command.replace('\\"', "") else []
        for flag, program in pairwise(words):
            if flag == "-c" and words[0].startswith("python"):
                compile(program, "-c", "exec")
    except (ValueError, SyntaxError) as error:
        return str(error)
    return ""


def _untrue(rule: Rule) -> Iterator[Message]:
    """Yield which examples a rule lacks, and for which of them it does not hold."""
    if len(rule.shows) < EXAMPLES:
        text = _("It has {given} of {wanted} logs in `shows`: how it is worded by other versions, systems, languages.")
        yield text.format(given=len(rule.shows), wanted=EXAMPLES)
    if not rule.healthy:
        yield _("It has no log in `healthy`: one that looks similar and is without this trouble.")
    machines = [Machine()]
    for number, example in enumerate(rule.shows, 1):
        shown = Example(log=example, machine=Machine()) if isinstance(example, str) else example
        machines.append(shown.machine)
        found = diagnose(shown.log, shown.machine)
        if not found:
            yield _("Nothing is found in log {number} of `shows`.", number=number)
        elif found[0].key != rule.key:
            yield _("In log {number} of `shows`, {other} is found first.", number=number, other=found[0].key)
    for number, log in enumerate(rule.healthy, 1):
        if any(cause.key == rule.key for machine in machines for cause in diagnose(log, machine)):
            yield _("Log {number} of `healthy` is taken for this trouble.", number=number)


def _untranslated(file: RuleFile) -> Iterator[Message]:
    texts = [text for rule in file.rule for text in (rule.title, rule.cause, *(one.text for one in rule.remedy))]
    texts += [case.text for check in file.check for case in check.case]
    for text in dict.fromkeys(texts):
        if not re.search("[\u4e00-\u9fff]", file.zh_CN.get(text, "")):
            yield _('The Chinese of "{text}" is missing below [zh_CN].', text=text)
