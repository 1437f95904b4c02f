"""No command names a distribution that neither the text nor the project's tables name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from assistant.diagnose import diagnose
from assistant.diagnose.environments import distributions_in, listed_distributions
from assistant.diagnose.rules import PLACEHOLDER, load_rules
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.record import from_plain

HERE = Path(__file__).parent
CASES = [
    (case["log"], from_plain(case["machine"], Machine, "the case"))
    for case in map(json.loads, (HERE / "cases.jsonl").read_text(encoding="utf-8").splitlines())
    if re.search(r"requires|depends on|distribution|install|import|wheel|version|undefined symbol", case["log"])
]
# Packages that no table of the project names, as tools and people name them.
UNLISTED = (HERE / "unlisted_packages.txt").read_text(encoding="utf-8").rstrip().split("\n----\n")
TEXTS = [*CASES, *((text, Machine(os="linux")) for text in UNLISTED)]


# What the rules write themselves, with nothing to fill in.
WRITTEN = {
    name
    for rule in load_rules().rules
    for remedy in rule.remedy
    for command in remedy.commands
    for name in distributions_in(PLACEHOLDER.sub("", command))
}


def invented(found: tuple[Diagnosis, ...], text: str) -> set[str]:
    """Return the distributions of all commands that are neither a whole word of a text nor in a table."""
    named = {
        name
        for diagnosis in found
        for remedy in diagnosis.remedies
        for command in remedy.commands
        for name in distributions_in(command)
    }
    words = {canonicalize_name(word.strip(".-_")) for word in re.findall(r"[\w.-]+", text.lower())}
    words |= {canonicalize_name(word) for word in re.findall(r"([a-z][\w.]*)-\d[\w.+]*(?:-|\.tar)", text.lower())}
    return named - listed_distributions() - words - WRITTEN


@given(st.sampled_from(TEXTS), st.integers(30, 160))
@settings(max_examples=250, deadline=None)
def test_a_narrow_terminal_invents_no_distribution(case: tuple[str, Machine], width: int) -> None:
    """A terminal of any width cuts names in two; each name in a command is a whole one of the text as it was."""
    text, machine = case
    cut = "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width))
    assert not invented(diagnose(cut, machine), text)


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.sampled_from([" ", ""]))
@settings(max_examples=250, deadline=None)
def test_lines_that_were_joined_or_broken_at_random_invent_none(
    case: tuple[str, Machine], dice: object, by: str
) -> None:
    """Whatever happened to a text's line ends, each name in a command is a whole word of what was pasted."""
    text, machine = case
    pick = dice.random  # type: ignore[attr-defined]
    changed = re.sub(r"[ \n]", lambda old: (by if old[0] == "\n" else "\n") if pick() < 0.2 else old[0], text)
    assert not invented(diagnose(changed, machine), changed)


@pytest.mark.parametrize("text", UNLISTED[:1])
def test_a_sentence_that_ends_in_a_build_joins_no_package(text: str) -> None:
    """A build's tag at the end of a line is not a package of the next line."""
    commands = [command for one in diagnose(text) for remedy in one.remedies for command in remedy.commands]
    assert commands
    assert not [command for command in commands if re.search(r"cu121torchaudio|install cu121|--pin cu121", command)]


@pytest.mark.parametrize("text", [text for text in UNLISTED[1:4] if text])
def test_a_package_that_a_tool_names_is_still_named(text: str) -> None:
    """What pip or uv prints whole may be put into a command although no table has it."""
    commands = [command for one in diagnose(text) for remedy in one.remedies for command in remedy.commands]
    assert [command for command in commands if "quux" in command], commands
