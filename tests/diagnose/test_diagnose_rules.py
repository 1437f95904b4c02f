"""Rules are loaded strictly, and none is slow on text that is made against it."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import time
from itertools import pairwise

import pytest
import tree_sitter
import tree_sitter_powershell
from diagnose.patterns import endless, missed
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnose import diagnose, load_rules, read_log, remedies_for
from assistant.diagnose.rules import QUESTIONS, compiled, evaluate, literals
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor


@pytest.mark.parametrize(
    ("pattern", "held"),
    [
        (r"no module named .torch", {"no module named "}),
        (r"(?:cuda|hip) out of memory", {" out of memory"}),
        (r"not loaded|cannot", {"not loaded", "cannot"}),
        (r"ab?c{0,3}defgh", {"defgh"}),
        (r"torch\.cuda\.is_available\(\)\W{0,6}false", {"torch.cuda.is_available()"}),
        (r"[abc]{2}(?!not )(?:abcdefgh)? colou?r", {" colo"}),
        (r"\bvae\b.{0,80}(?:«slow»|«hang»s?|«time»-?out)", {"slow", "hang", "time"}),
        (r"«2\*\*3»", {"2**3"}),
    ],
)
def test_the_literals_are_what_every_match_holds(pattern: str, held: set[str]) -> None:
    """Alternatives, classes, optional and escaped characters are understood, and marks win."""
    assert literals(pattern) == held
    assert missed(compiled(pattern), held) is False


def test_every_match_of_a_rule_holds_a_literal() -> None:
    """By the grammar of regular expressions, no match of any shipped pattern is without one of its literals."""
    lost = {pattern for pattern, held in load_rules().literals.items() if missed(compiled(pattern), held)}
    assert lost == set()


def test_each_pattern_shows_a_text_to_look_for() -> None:
    """Logs are searched in lower case, and only for patterns of which a literal text stands in them."""
    for pattern in load_rules().literals:
        assert not re.search(r"(?<!\\)[A-Z]", pattern), pattern
        assert min(map(len, literals(pattern))) >= (3 if pattern.isascii() else 2), pattern


def test_each_fact_of_a_rule_can_be_asked() -> None:
    """The question exists, and a machine of which all is known answers it."""
    rules = load_rules()
    rows = [row for rule in rules.rules for row in (*rule.sign, *rule.remedy)]
    rows += [case for check in rules.checks for case in check.case]
    asked = [rule.needs for rule in rules.rules]
    asked += [getattr(row, name, {}) for row in rows for name in ("facts", "unless", "likely")]
    for facts in asked:
        named = {name: "1" for argument in facts.values() if isinstance(argument, dict) for name in argument}
        machine = Machine(
            os="linux",
            os_version="1",
            arch="1",
            container="1",
            nvidia_driver="1",
            python="3.12",
            gpus=(Gpu(name="x", vendor=Vendor.AMD),),
            packages=named,
            env=named,
        )
        evaluate(machine, facts)
        lists = {"os", "vendor", "builds_differ"} & {*facts}
        assert all(isinstance(facts[name], list) for name in lists), facts
    assert {name for facts in asked for name in facts} <= {*QUESTIONS}


def test_no_pattern_of_a_rule_can_run_away() -> None:
    """Each repeat has an end, and repeats inside one another an end that is near."""
    assert [pattern for pattern in load_rules().literals if endless(compiled(pattern))] == []
    assert endless(compiled("begin.*end"))
    assert endless(compiled("begin(?:a{1,90}b){1,90}end"))


def test_every_rule_is_whole() -> None:
    """Each has a remedy and a source on the web; no key is there twice."""
    rules = load_rules().rules
    assert len({rule.key for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.remedy
        assert all(source.startswith("https://") for source in rule.sources), rule.key
        assert rule.sources, rule.key
        assert all(0 < sign.confidence <= 1 for sign in rule.sign), rule.key


def test_the_cost_grows_with_the_length_and_no_faster() -> None:
    """Twice the text takes about twice the time."""

    def seconds(characters: int) -> float:
        log = read_log("error: cannot open, not found, failed to load torch\n" * (characters // 52))
        started = time.process_time()
        diagnose(log)
        return time.process_time() - started

    seconds(10_000)
    assert seconds(800_000) < 4 * seconds(400_000) + 0.3


def test_every_python_command_is_python() -> None:
    """The programs inside commands and checks compile, quotes and all."""
    for rule in load_rules().rules:
        for command in (command for way in rule.remedy for command in (*way.commands, *way.check)):
            words = shlex.split(command, posix=True) if "\\" not in command.replace('\\"', "") else []
            for flag, program in pairwise(words):
                if flag == "-c" and words[0].startswith("python"):
                    compile(program, f"{rule.key}: {command}", "exec")


@pytest.fixture(scope="module")
def tables_read() -> None:
    """Read the shipped tables and examples, once, before anything is timed."""
    diagnose("my gpu is not used and i have no idea why, anybody?")


@pytest.mark.usefixtures("tables_read")
@given(text=st.text(max_size=400), data=st.binary(max_size=400))
def test_no_text_and_no_bytes_are_too_strange(text: str, data: bytes) -> None:
    """Whatever comes is diagnosed or refused in a sentence."""
    diagnose(text)
    with contextlib.suppress(BadInput):
        diagnose(data)


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("sh"), reason="no POSIX shell here")
def test_every_command_for_linux_is_shell() -> None:
    """The shell reads each command to its end, quotes and all."""
    machine = Machine(os="linux", wsl=False)
    remedies = [remedy for rule in load_rules().rules for remedy in remedies_for(rule, machine)]
    text = "\n".join(command for each in remedies for command in (*each.commands, *each.check) if ":\\" not in command)
    done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("machine", "foreign"),
    [
        (Machine(os="windows"), r"(?:sudo|apt|export|unset|ldconfig|modprobe|source|lsmod|dnf|open) "),
        (Machine(os="macos"), r"(?:sudo apt|sudo modprobe|apt|ldconfig|reg|set|dism|wsl|winget|py) "),
        (Machine(os="linux", wsl=False), r"(?:reg|set|dism|wsl|winget|py|open) "),
        (Machine(os="linux", wsl=True), r"(?:reg|set|dism|winget|py|open|sudo modprobe|sudo reboot) "),
    ],
)
def test_no_command_belongs_to_another_system(machine: Machine, foreign: str) -> None:
    """Whatever rule fires on a system, it tells nobody to type another system's commands."""
    for rule in load_rules().rules:
        for command in (command for each in remedies_for(rule, machine) for command in (*each.commands, *each.check)):
            assert not re.match(foreign, command), (rule.key, command)


@pytest.mark.parametrize("vendor", [None, *Vendor])
def test_what_windows_is_told_reads_alike_in_both_of_its_shells(vendor: Vendor | None) -> None:
    """PowerShell's grammar takes every command, none escapes a quote or sets a variable as cmd alone knows it."""
    machine = Machine(os="windows", gpus=(Gpu(name="x", vendor=vendor),) if vendor else ())
    remedies = [remedy for rule in load_rules().rules for remedy in remedies_for(rule, machine)]
    commands = {
        command for each in remedies for command in (*each.commands, *each.check) if not command.startswith("%")
    }
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    assert {command for command in commands if parser.parse(command.encode()).root_node.has_error} == set()
    assert {command for command in commands if re.search(r'\\"|^set ', command)} == set()


def test_each_distribution_is_told_its_own_installer() -> None:
    """Fedora is offered no apt, Ubuntu no dnf, and where the distribution is unknown both are named."""

    def typed(version: str | None) -> str:
        machine = Machine(os="linux", wsl=False, os_version=version)
        remedies = [remedy for rule in load_rules().rules for remedy in remedies_for(rule, machine)]
        return " ".join(command for remedy in remedies for command in remedy.commands)

    assert "apt install" not in typed("Fedora Linux 42")
    assert "dnf" not in typed("Ubuntu 24.04")
    assert "apt install" in typed(None)
    assert "dnf install" in typed(None)


def test_two_values_of_one_variable_say_when_each_is_right() -> None:
    """Where nothing is known of the machine, both are told: the reader chooses by what the sentences say."""
    for rule in load_rules().rules:
        ways = remedies_for(rule, Machine())
        for name in {name for way in ways for name in way.env}:
            texts = {way.env[name]: way.text for way in ways if name in way.env}
            assert len(texts) == 1 or all(re.search(r"\bif\b", text, re.IGNORECASE) for text in texts.values()), (
                rule.key
            )


def test_every_remedy_that_does_something_has_a_check() -> None:
    """What is set, installed or typed can be checked afterwards, or a plan brings its device's check."""
    unchecked = {
        (rule.key, remedy.text)
        for rule in load_rules().rules
        for remedy in remedies_for(rule, Machine())
        if (remedy.commands or remedy.env) and not remedy.check and not remedy.plan
    }
    # These ask, or are for tools that have no exit code: which package has a file, which nodes a model has.
    asking = {
        "missing-system-library",
        "dml-npu-unsupported-model",
        "directml-dll-version-mismatch",
        "kernel-env-mismatch",
    }
    others = {
        "dml-debug-layer-missing",
        "folder-not-writable",
        "rocm-apt-unsupported-distro",
        "device-index-out-of-range",
    }
    assert {key for key, _text in unchecked} <= asking | others
