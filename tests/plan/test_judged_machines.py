"""Machines of every kind, each judged by hand from what the makers publish: the plan must be one that works there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
from catalogs import catalog_as_of
from packaging.specifiers import SpecifierSet
from tables import each

from assistant.model.machine import Machine
from assistant.model.plan import Request
from assistant.model.record import render_messages, to_json
from assistant.plan import make_plans

FILES = ("judged_machines.jsonl", "windows_machines.jsonl")  # each row of the second names its sources
LINES = [line for file in FILES for line in (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()]
CASES = {case["name"]: case for case in map(json.loads, LINES)}


def answer_for(case):
    """Plan for a line of `plan --machines`: a machine with its pins and its request, as of the release it names."""
    told = dict(case["machine"])
    pins, request = tuple(told.pop("pins", ())), told.pop("request", {})
    wish = msgspec.convert({**request, "pins": pins}, Request)
    return make_plans(msgspec.convert(told, Machine), catalog_as_of(case.get("as_of", "2.15.0")), wish)


@each("name", CASES)
def test_the_choice_works_on_the_machine(name):
    """Backend, index, release, environment and what is said are as judged; where no wheel fits, there is no choice."""
    wanted = CASES[name]["wanted"]
    answer = answer_for(CASES[name])
    choice = answer.choice
    told = to_json(render_messages(answer))
    assert re.search(wanted.get("says", ""), told)
    assert not ("must_not_say" in wanted and re.search(wanted["must_not_say"], told))
    if choice is None:
        assert wanted.get("refused") or wanted.get("or_refused")
        return
    assert not wanted.get("refused")
    assert choice.backend.value in wanted["backends"]
    assert all(any(re.search(need, line) for line in choice.requirements) for need in wanted.get("needs", ()))
    if choice.backend.value != wanted["backends"][0]:
        return
    assert choice.variant in wanted.get("variants", [choice.variant])
    assert choice.variant not in wanted.get("never", [])
    assert SpecifierSet(_specifier(wanted.get("torch", ""))).contains(choice.torch)
    assert not set(choice.env) & set(wanted.get("unset", ()))
    if choice.variant != "amd-index":  # its wheels hold the card's own code
        assert choice.env.items() >= wanted.get("env", {}).items()


def _specifier(text):
    return f"=={text}" if text[:1].isdigit() else text
