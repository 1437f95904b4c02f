"""Causes that a person's words resemble, by examples of how people tell each of them (phrasings.json).

Each cause is the mean of its examples' vectors of words, weighted by how rare they are, less the mean of all examples;
a text has the cause to which its angle is smallest. That is Rocchio's classifier with tf-idf weights, as in Manning,
Raghavan and Schütze, "Introduction to Information Retrieval", chapters 6 and 14. A new wording is one more example.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise

from assistant.diagnose.log import Log
from assistant.diagnose.predicates import ask
from assistant.diagnose.prose import personal
from assistant.diagnose.rules import load_rules
from assistant.diagnose.symptoms import asks_for_nothing
from assistant.model.machine import Machine
from assistant.model.record import Record, from_json

LONGEST = 4000  # chosen: characters that a person writes of one problem
OWN = 0.8  # chosen: share of a text that has to be the person's own, else the program's messages decide
NEAR = 0.06  # chosen with the labelled texts: the least cosine that tells anything
ALONE = 0.004  # chosen likewise: the least product of a cosine and its distance to the next that names a cause
LEAST = 20  # chosen: words, pairs of words and characters that tell a cause by themselves, some ten words
MOST = 3  # causes that are named; the right one was among them for 72 of 86 fresh texts
UNRELATED = ""  # the key of examples that tell no cause
_TOKENS = re.compile(r"[a-z]+|\d+(?:\.\d+)*|[\u4e00-\u9fff]+")


class _Examples(Record, frozen=True):
    en: tuple[str, ...] = ()
    zh: tuple[str, ...] = ()


class _File(Record, frozen=True):
    as_of: str
    source: str
    unrelated: _Examples
    phrasings: dict[str, _Examples]


def resembled(log: Log, machine: Machine) -> tuple[str, ...]:
    """Return the causes that a person's words resemble most, the nearest first, of those that the machine can have.

    () for a text that is not somebody's own, says that all is well, or resembles those that tell no cause.
    """
    near = [key for key, cosine in _nearest(log, machine) if cosine >= NEAR]
    return () if near[:1] == [UNRELATED] else tuple(islice(filter(None, near), MOST))


def unmistaken(log: Log, machine: Machine) -> str:
    """Return the cause that a person's words resemble, where they resemble no other one nearly as much; "" for none."""
    near = _nearest(log, machine)
    (key, first), (_key, second) = near[:2] or [("", 0.0)] * 2
    if not key or first * (first - second) < ALONE or _elsewhere(key, machine):
        return ""
    told_enough = len(features(log.text)) >= LEAST and personal(log.text)
    return key if told_enough and _classifier().nearest(log.text) != UNRELATED else ""


def _elsewhere(key: str, machine: Machine) -> bool:
    """Return whether only few systems have a cause, and it is unknown whether this is one."""
    needs = load_rules().by_key[key].needs
    wanted = needs.get("os")
    few = isinstance(wanted, list) and not {"linux", "windows"} & {*wanted}
    return few and ask(machine, needs)["os"] is None


def _nearest(log: Log, machine: Machine) -> list[tuple[str, float]]:
    """Return the causes that the machine can have, and `UNRELATED`, with their likeness to a person's words."""
    own = "\n".join(line for (_number, line), mine in zip(log.lines, log.written, strict=True) if mine)
    whole = sum(len(line) for _number, line in log.lines)
    if not own or len(own) > LONGEST or len(own) < OWN * whole or asks_for_nothing(log):
        return []
    rules = load_rules().by_key
    return [
        (key, cosine)
        for key, cosine in _classifier().ranked(own)
        if not key or False not in ask(machine, rules[key].needs).values()
    ]


class Classifier:
    """Causes as mean vectors of the examples that tell them."""

    def __init__(self, examples: Iterable[tuple[str, str]]) -> None:
        """Learn from pairs of a cause's key and a text."""
        pairs = list(examples)
        counted = [features(text) for _key, text in pairs]
        documents = Counter(name for one in counted for name in one)
        self._rarity = {name: 1 + math.log((len(pairs) + 1) / (count + 1)) for name, count in documents.items()}
        sizes = Counter(key for key, _text in pairs)
        means: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._keys = [key for key, _text in pairs]
        self._examples: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._mean: dict[str, float] = defaultdict(float)
        for number, (key, one) in enumerate(zip(self._keys, counted, strict=True)):
            for name, weight in self._unit(one).items():
                self._examples[name].append((number, weight))
                means[key][name] += weight / sizes[key]
                self._mean[name] += weight / len(pairs)
        square = sum(weight * weight for weight in self._mean.values())
        self._lengths: dict[str, float] = {}
        self._weights: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for key, mean in means.items():
            apart = sum(weight * (weight - 2 * self._mean[name]) for name, weight in mean.items()) + square
            self._lengths[key] = math.sqrt(apart) or 1.0
            for name, weight in mean.items():
                self._weights[name].append((key, weight))

    def _unit(self, counted: Counter[str]) -> dict[str, float]:
        rarity = self._rarity
        known = {name: (1 + math.log(count)) * rarity[name] for name, count in counted.items() if name in rarity}
        length = math.sqrt(sum(weight * weight for weight in known.values())) or 1.0
        return {name: weight / length for name, weight in known.items()}

    def ranked(self, text: str) -> list[tuple[str, float]]:
        """Return each cause with the cosine of its angle to a text, the nearest first."""
        near: dict[str, float] = dict.fromkeys(self._lengths, 0.0)
        usual = 0.0
        for name, weight in self._unit(features(text)).items():
            usual += weight * self._mean[name]
            for key, other in self._weights[name]:
                near[key] += weight * other
        cosines = ((key, (product - usual) / self._lengths[key]) for key, product in near.items())
        return sorted(cosines, key=lambda one: -one[1])

    def nearest(self, text: str) -> str:
        """Return the cause of the single example that is nearest to a text."""
        near: dict[int, float] = defaultdict(float)
        for name, weight in self._unit(features(text)).items():
            for number, other in self._examples[name]:
                near[number] += weight * other
        return self._keys[max(near, key=near.__getitem__)] if near else UNRELATED


def features(text: str) -> Counter[str]:
    """Count a text's words and pairs of words, Chinese characters and pairs of them.

    For example: `torch 2.3` has torch, 2.3 and "torch 2.3"; 显卡 has 显, 卡 and 显卡.
    """
    found: Counter[str] = Counter()
    before = ""
    for token in _TOKENS.findall(text.lower()):
        if "\u4e00" <= token[0] <= "\u9fff":
            found.update(token)
            found.update(map("".join, pairwise(token)))
            before = ""
        else:
            found.update((token, f"{before} {token}") if before else (token,))
            before = token
    return found


@cache
def _classifier() -> Classifier:
    tables = phrasings()
    rows = {UNRELATED: tables.unrelated, **tables.phrasings}
    return Classifier((key, text) for key, row in rows.items() for text in (*row.en, *row.zh))


@cache
def phrasings() -> _File:
    """Read the shipped examples, once; raise `BadInput` naming what is wrong in them."""
    return from_json(files("assistant.diagnose").joinpath("phrasings.json").read_bytes(), _File, "phrasings.json")
