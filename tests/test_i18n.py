"""The language is chosen as users expect, and no sentence gets past it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import forked
import pytest
from made_up import LATIN_WORD, escaped, without_filled, write_made_up
from tables import each

from assistant.catalog import load_catalog
from assistant.cli.draw import draw_detection, draw_planning
from assistant.detect import detect
from assistant.diagnose.rules import load_rules
from assistant.host.base import ReplayHost
from assistant.i18n import (
    Message,
    Text,
    _,
    _Current,
    lines,
    ngettext,
    preferred_language,
    render,
    say,
    sentences,
    use_language,
    verbatim,
)
from assistant.machines import load, shipped
from assistant.model.finding import Finding
from assistant.model.machine import Detection
from assistant.model.plan import Planning
from assistant.model.record import from_json, to_json
from assistant.plan import explain, make_plans

ROOT = Path(__file__).parents[1]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
Assistant = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _language_is_put_back() -> Iterator[None]:
    yield
    use_language("en")


@pytest.fixture
def assistant(tmp_path: Path) -> Assistant:
    """Give a function that runs the command in a bare environment."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("LANG", "LC_"))}
        home = {"HOME": str(tmp_path), "COLUMNS": "200", "PYTHONUTF8": "1"}
        return forked.run(*arguments, env={**bare, **home, **variables})

    return run


@each(
    ("variables", "system", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "C", "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "zh_CN", "C"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "C", "en"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, "C", "zh"),
        ({"LANGUAGE": "zh_CN", "LC_ALL": "POSIX"}, "C", "POSIX"),
        ({}, "Chinese (Simplified)_China.936", "Chinese"),
        ({"LANG": ""}, "de_DE.UTF-8", "de"),
    ],
)
def test_the_environment_chooses_then_the_system(variables: dict[str, str], system: str, language: str) -> None:
    """The order is that of GNU gettext; Windows, which sets no variable, is asked last."""
    assert preferred_language(variables, system).startswith(language)


def test_a_language_can_be_named() -> None:
    """A code wins over the environment, and a language that is not there is English."""
    assert use_language("zh_CN") == "zh_CN"
    assert say("Restart the computer.") == "重启电脑。"
    assert use_language("fr") == "en"
    assert say("Restart the computer.") == "Restart the computer."


def test_a_message_is_written_in_the_language_in_force() -> None:
    """One message reads as each language has it, with what it speaks of, other messages among that."""
    message = _("This step failed unexpectedly: {kind}: {reason}", kind="OSError", reason=_("You cancelled the work."))
    assert render(message) == "This step failed unexpectedly: OSError: You cancelled the work."
    use_language("zh_CN")
    assert render(message) == "此步骤意外出错：OSError：您取消了操作。"
    assert str(message) == render(message)


def test_messages_are_put_together() -> None:
    """Counts, lists, rows of sentences, lines and a program's own words all become one text."""
    assert [render(ngettext("{count} thing differs.", "{count} things differ.", count)) for count in (1, 2)] == [
        "1 thing differs.",
        "2 things differ.",
    ]
    assert render(_("Read: {tools}.", tools=("a", _("Check")))) == "Read: a, Check."
    row = sentences((_("Restart the computer."), "", _("You stopped the command.")))
    assert render(row) == "Restart the computer. You stopped the command."
    assert render(lines(("one", "", _("Check")))) == "one\nCheck"
    assert render(verbatim("{braces} stay")) == "{braces} stay"
    assert render(_("Not checked: {source} cannot be reached ({reason}).", source="x", reason=_("Check."))) == (
        "Not checked: x cannot be reached (Check)."
    )
    use_language("zh_CN")
    assert render(row) == "重启电脑。您已停止该命令。"


@each(
    "text",
    ["{a:g}", "{0} {a}", "{b}", "{a.nothing}", "{a!x}", "{a", "{a:>1000000000}", "{a:>{wide}}", "{a:.1000000000f}"],
)
def test_a_sentence_that_somebody_else_wrote_into_a_file_is_no_program(text: str) -> None:
    """What cannot be filled in, or would fill the memory, is shown as it stands."""
    assert render(_(text, a="x", wide="1000000000")) == text


def test_an_option_of_the_command_line_is_shown_at_the_command_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands before the full stop, also of a sentence among others; the wizard never hears of it."""
    row = sentences((_("Restart the computer.", option="--now"), _("Check", option="--it")))
    assert render(row) == "Restart the computer. Check"
    monkeypatch.setattr(_Current, "options", True)
    assert render(row) == "Restart the computer (--now). Check (--it)"
    use_language("zh_CN")
    assert render(row) == "重启电脑（--now）。检查项 (--it)"


def test_a_message_survives_json() -> None:
    """What is written to a file is read as the same message, whatever it speaks of."""
    message = _("{a} {b}", a=_("Check"), b=("x", _("Check")))
    assert from_json(to_json(message), Message, "it") == message
    assert hash(message) == hash(from_json(to_json(message), Message, "it"))


@pytest.mark.process
@pytest.mark.parametrize(
    ("variables", "is_chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANGUAGE": "zh_CN"}, True),
        ({}, False),
    ],
)
def test_the_command_follows_the_environment(assistant: Assistant, variables: dict[str, str], is_chinese: bool) -> None:  # noqa: FBT001 - a column of the table above
    """The terminal's own language is spoken without being asked for."""
    done = assistant("detect", "--replay", "linux-ubuntu2404-rtx4090", **variables)
    assert done.returncode == 0, done.stderr
    assert bool(CHINESE.search(done.stdout)) is is_chinese


@pytest.mark.process
def test_help_and_usage_errors_are_chinese(assistant: Assistant) -> None:
    """Commands, options and click's own sentences are translated, by option or by environment."""
    assert "供脚本使用" in assistant("--lang", "zh_CN", "--help").stdout
    assert "显示此帮助并退出" in assistant("detect", "--help", LANG="zh_CN.UTF-8").stdout
    assert "没有命令 'foo'。" in assistant("--lang", "zh_CN", "foo").stderr
    assert "Find out what this machine is:" in assistant("detect", "--help", LANG="zh_CN.UTF-8", LC_ALL="C").stdout


@pytest.fixture(scope="module")
def made_up_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the made-up language's catalogue."""
    return write_made_up(tmp_path_factory.mktemp("made-up"))


@pytest.fixture
def _made_up(made_up_folder: Path) -> None:
    use_language("zh_CN", made_up_folder)


def told_by(findings: Iterable[Finding]) -> Iterator[Text]:
    """Give all sentences of findings."""
    for finding in findings:
        yield finding.text
        yield from (way.text for way in finding.remedies)


def reasons_of(planning: Planning) -> Iterator[Text]:
    """Give all sentences of a planner's answer."""
    for plan in planning.plans:
        yield from (*plan.reasons, *plan.warnings)
    for rejection in planning.rejected:
        yield from (rejection.why, rejection.would_help)


def looked_at(name: str) -> tuple[Detection, Planning]:
    """Detect a shipped machine and plan for it."""
    found = detect(ReplayHost(load(name)))
    return found, make_plans(found.machine, load_catalog())


@pytest.mark.usefixtures("_made_up")
def test_no_sentence_of_detection_and_plans_escapes() -> None:
    """Findings, reasons, warnings and rejections of every shipped machine all pass through gettext."""
    texts: set[Text] = set()
    for name in shipped():
        found, planning = looked_at(name)
        texts |= {*told_by(found.findings), *reasons_of(planning), *explain(planning, found.machine)}
    assert len(texts) > 200
    assert escaped(map(render, texts)) == set()


@pytest.mark.usefixtures("_made_up")
def test_no_sentence_of_a_diagnosis_escapes() -> None:
    """Every rule's words are known to the translators."""
    texts = {say(text) for rule in load_rules().rules for text in (rule.title, rule.cause)}
    texts |= {render(each.shown.text) for rule in load_rules().rules for each in rule.remedy}
    assert escaped(texts) == set()


@pytest.mark.usefixtures("_made_up")
@pytest.mark.parametrize("name", ["linux-ubuntu2404-rtx4090", "windows11-rx7800xt", "wsl1-ubuntu2004", "macos14-m1"])
def test_no_word_of_the_terminal_escapes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is drawn in Latin letters are facts of the machine, names of packages and backends, and commands."""
    found, planning = looked_at(name)
    draw_detection(found)
    draw_planning(planning)
    drawn = without_filled(capsys.readouterr().out)
    facts = to_json(found.machine) + "".join(f"{plan.backend.value} {plan.variant}" for plan in planning.plans)
    facts += "".join(f"{rejection.backend.value} {rejection.variant}" for rejection in planning.rejected)
    facts += "".join(c for finding in found.findings for way in finding.remedies for c in way.commands)
    assert set(LATIN_WORD.findall(drawn)) - set(LATIN_WORD.findall(facts)) <= {"GB", "glibc", "ROCm"}
