"""Which causes a text may speak of, where none is shown: those whose descriptions share most of its words.

Causes are ranked as a search engine ranks pages, by Okapi BM25 (S. Robertson, H. Zaragoza, "The Probabilistic Relevance
Framework: BM25 and Beyond", 2009): a word counts the more, the fewer causes have it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import NamedTuple

from assistant.diagnose.engine import Match, excluded_causes, match_of, quoted
from assistant.diagnose.facts import LogContext
from assistant.diagnose.log import Log
from assistant.diagnose.rules import PLACEHOLDER, Cause, Rule, evaluate, load_rules
from assistant.i18n import LANGUAGES, _, in_language, render
from assistant.model.machine import Machine
from assistant.model.record import replace

MOST = 3  # chosen: as many as are worth trying one after the other
# Fitted by counting on 359 labelled texts: in 70 % of those without a sure cause, the right one is among three.
FREQUENT = 3.0  # BM25's k1: how much a word that stands often in a description counts more than one that stands once
LENGTHY = 0.75  # BM25's b: how far long descriptions are held back
ENOUGH = 9.0  # of BM25's score, as counted there: two in five of the texts without any setup problem come so close
LEAST = 0.5  # of the best one's score, below which another cause is no rival

# Where a person's line ends a sentence; a stop within a version or a file's name does not.
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_WORD = re.compile(r"[a-z][a-z]+\d*|[\u4e00-\u9fff]+")
_ESCAPED = re.compile(r"\\.")  # in a pattern: \b, \d


class _Described(NamedTuple):
    """A rule, how often each word stands in its description, and how much one that stands there once is held back."""

    rule: Rule
    words: Mapping[str, int]
    held_back: float


def possible_causes(log: Log, machine: Machine) -> tuple[Match, ...]:
    """Return up to `MOST` causes that a text without a known one is most like, the likest first; () if it is like none.

    `machine` holds all facts, those of the log included; causes that it is known not to have are left out. The evidence
    of each is the sentence that shares most with it.
    """
    if machine.os == "linux" and machine.wsl is None:
        machine = replace(machine, wsl=False)  # who is in WSL says so
    excluded = excluded_causes(log, machine)
    asked = Counter(_words(log.text))
    scored = [
        (_score(asked, each), each)
        for each in _descriptions()
        if each.rule.key not in excluded and False not in evaluate(machine, each.rule.needs).values()
    ]
    scored.sort(key=lambda pair: -pair[0])
    least = max(ENOUGH, LEAST * scored[0][0])
    rivals = (each for score, each in scored if score >= least)
    sentences = [(index, part) for index, (_number, line) in enumerate(log.lines) for part in _END.split(line)]
    counted = [Counter(_words(sentence)) for _index, sentence in sentences] if scored[0][0] >= least else []

    def match_rival(described: _Described) -> Match | None:
        """Return a cause, its evidence the last sentence that is most like it; None if no remedy suits the program."""
        scores = [_score(words, described) for words in counted]
        index, sentence = sentences[max(range(len(scores)), key=lambda at: (scores[at], at))]
        match = match_of(described.rule, Cause(described.rule.key, "likeness", (index,)), context)
        return match and match._replace(diagnosis=replace(match.diagnosis, evidence=(quoted(sentence),)))

    context = LogContext(log, machine)
    return tuple(islice(filter(None, map(match_rival, rivals)), MOST))


def _score(asked: Mapping[str, int], described: _Described) -> float:
    """Return how like a text with these words is to a description: the words of both, weighed by how rare they are."""
    shared = asked.keys() & described.words.keys()
    return sum(_rarity()[word] * _weight(described, word) * math.sqrt(asked[word]) for word in shared)


def _weight(described: _Described, word: str) -> float:
    """Return what a word counts in a description by how often it stands there, from 0 to 1."""
    count = described.words[word]
    return count / (count + described.held_back)


@cache
def _descriptions() -> tuple[_Described, ...]:
    """Return what is known of each cause that has a name of its own, as words of all languages."""
    rules = [rule for rule in load_rules().rules if not PLACEHOLDER.search(rule.title)]
    counted = [Counter(word for text in _texts_of(rule) for word in _words(text)) for rule in rules]
    usual = sum(map(Counter.total, counted)) / len(counted)
    return tuple(
        _Described(rule, words, FREQUENT * (1 - LENGTHY + LENGTHY * words.total() / usual))
        for rule, words in zip(rules, counted, strict=True)
    )


@cache
def _rarity() -> Mapping[str, float]:
    """Return for each word how much it tells: the logarithm of how few descriptions have it."""
    descriptions = _descriptions()
    having = Counter(word for described in descriptions for word in described.words)
    return {word: math.log(1 + (len(descriptions) - count + 0.5) / (count + 0.5)) for word, count in having.items()}


def _texts_of(rule: Rule) -> Iterator[str]:
    """Yield what describes a cause: its sentences in each language, and the words of the patterns that show it."""
    for language in LANGUAGES:
        with in_language(language):
            yield from (render(_(text)) for text in (rule.title, rule.cause, *(fix.text for fix in rule.remedy)))
    for sign in rule.sign:
        for pattern in (*sign.any, *sign.all, *sign.near):
            yield " ".join({*_words(_ESCAPED.sub(" ", pattern))})


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text; of Chinese, which has no blanks between them, each two characters that stand together.

    Single letters and numbers are none: versions are read as facts.
    """
    for word in _WORD.findall(text.lower()):
        if word.isascii():
            yield word
        else:
            yield from (word[index : index + 2] for index in range(len(word) - 1))
