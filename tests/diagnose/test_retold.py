"""Messages that people retell: each row's words lead to its cause, with something to do, and no gap in a sentence."""

from __future__ import annotations

import re

import pytest

from assistant.diagnose import diagnose, load_rules, remedies_for
from assistant.i18n import render
from assistant.model.machine import Machine

KEYS = [rule.key for rule in load_rules().rules if any(sign.near for sign in rule.sign)]
SYSTEMS = [Machine(), Machine(os="linux"), Machine(os="windows"), Machine(os="macos", arch="arm64")]


def keys(text: str, machine: Machine | None = None) -> list[str]:
    """Return what a text retells."""
    return [found.key for found in diagnose(text, machine)]


def test_a_cause_without_names_is_said_whole_and_helped() -> None:
    """Who retells a message leaves names out: no placeholder is shown, and a first step stands there all the same."""
    wrong = {}
    for key in KEYS:
        rule = load_rules().by_key[key]
        cause = rule.general if rule.lacks({}) else rule.cause
        remedies = [one for machine in SYSTEMS for one in remedies_for(rule, machine, {})]
        shown = [text for one in remedies for text in (render(one.shown.text), *one.commands, *one.check)]
        gaps = [text for text in (rule.title, cause, *shown) if re.search(r"\{[a-z_]+\}", text)]
        if gaps or not all(remedies_for(rule, machine, {}) for machine in SYSTEMS):
            wrong[key] = gaps
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            "pip says the hash of the torch file doesn't match and somebody may have tampered with it",
            "download-hash-mismatch",
        ),
        ("pip 下载 torch 的时候提示哈希值不一致，我重试了三次都这样", "download-hash-mismatch"),
        (
            "as a normal user my rx card is invisible to rocm, with sudo it works. something about /dev/kfd?",
            "kfd-permission",
        ),
        ("我在 Alpine 容器里用 pip 装 torch，总是没有匹配的版本", "musl-system"),
        ("my notebook can't find torch but in the terminal python imports it just fine", "kernel-env-mismatch"),
    ],
)
def test_a_message_retold_has_the_cause_of_the_message(text: str, key: str) -> None:
    """English and Chinese, with the words of a user."""
    assert diagnose(text)[0].key == key


def test_what_a_program_prints_is_left_to_the_rules() -> None:
    """Only a person retells."""
    assert keys("2026-11-21 10:20:30,123 INFO hash mismatch of the pip cache entry, downloading again") == []


def test_who_says_that_it_works_now_retells_nothing() -> None:
    """A cure that is told is no trouble."""
    assert keys("pip said the hash doesn't match, but everything works now, thanks") == []


def test_facts_speak_against_what_is_retold() -> None:
    """A Mac's memory is not what runs out on Windows."""
    text = "my m2 runs out of memory? it says out of unified memory"
    assert keys(text)[0] == "mps-oom"
    assert "mps-oom" not in keys(text, Machine(os="windows"))


def test_a_name_that_the_words_hold_is_used() -> None:
    """The package that a person names stands in the command."""
    found = diagnose("after i upgraded transformers my old script can't import a name from it, version problem?")[0]
    assert found.key == "companion-version-mismatch"
    assert "transformers" in render(found.cause)
