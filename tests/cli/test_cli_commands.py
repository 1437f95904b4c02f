"""The command line as a user meets it: a real process, its exit code, and one clear sentence for every bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from refused import refused

pytestmark = pytest.mark.process

COMMANDS = (
    "setup",
    "lab",
    "detect",
    "plan",
    "install",
    "verify",
    "export",
    "envs",
    "recover",
    "diagnose",
    "doctor",
    "apply",
    "check",
    "onnx",
    "catalog",
)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs the command in a home of its own."""

    def runner(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        home = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
        environment = {**os.environ, **home, "LANGUAGE": "en", "COLUMNS": "200", **options.pop("env", {})}
        return forked.run(*arguments, env=environment, **options)

    return runner


def test_every_command_is_there(run: Run) -> None:
    """The help lists all commands, none cut short, and each has a help of its own."""
    listed = run("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in listed
        assert run(command, "--help").returncode == 0
    for group in ((), ("onnx",), ("catalog",), ("labs",)):
        assert "..." not in run(*group, "--help", env={"COLUMNS": "80"}).stdout.partition("Commands:")[2]


def test_commands_are_named_as_this_user_types_them(run: Run) -> None:
    """From a checkout every next step begins with `python3 start.py`, in usage, refusals, lists and remedies alike."""
    checkout = {"env": {"SETUP_ASSISTANT_STARTED_AS": "python3 start.py"}}
    assert run("--help", **checkout).stdout.startswith("Usage: python3 start.py [OPTIONS]")
    refused(run("export", **checkout), 2, "Run `python3 start.py setup` first.")
    refused(run("detect", "--nonsense", **checkout), 2, "`python3 start.py detect --help`")
    assert "`python3 start.py setup` makes one" in run("envs", **checkout).stdout
    told = run("diagnose", "-", **checkout, input="libGL error: nothing that anybody knows\n").stdout
    assert "`python3 start.py diagnose LOG --report FILE.md`" in told
    told = run("diagnose", "-", **checkout, input="AssertionError: Torch not compiled with CUDA enabled\n").stdout
    assert "     python3 start.py " in told


def test_detect_prints_a_machine(run: Run) -> None:
    """The machine at hand is told as JSON and as text."""
    told = json.loads(run("detect", "--json").stdout)
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "Python" in run("detect").stdout


def test_a_recording_replays_to_the_same_machine(run: Run, tmp_path: Path) -> None:
    """What was recorded is what is detected from the recording, byte for byte."""
    live = run("detect", "--record", tmp_path / "m.json", "--json")
    replayed = run("detect", "--replay", tmp_path / "m.json", "--json")
    assert live.returncode == replayed.returncode == 0
    assert live.stdout == replayed.stdout


def test_a_fact_can_be_set_by_the_user(run: Run) -> None:
    """An override changes the fact."""
    assert json.loads(run("detect", "--set", "nvidia_driver=580.95", "--json").stdout)["nvidia_driver"] == "580.95"


def test_plan_answers_for_a_described_machine(run: Run, tmp_path: Path) -> None:
    """A machine written by hand gets a choice with reasons."""
    brief = tmp_path / "m.json"
    brief.write_text('{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}')
    told = json.loads(run("plan", "--machine", brief, "--json").stdout)
    assert told["choice"]["backend"] == "cpu"
    assert told["choice"]["reasons"]
    assert "Why" not in run("plan", "--machine", brief, "--why").stderr


def test_a_batch_answers_line_by_line(run: Run, tmp_path: Path) -> None:
    """A bad line gets an error in its place, and the others their plans."""
    good = '{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}'
    (tmp_path / "m.jsonl").write_text(f'{good}\n{{"oss": "linux"}}\nnonsense\n{good}')
    done = run("plan", "--machines", tmp_path / "m.jsonl", "--json")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [("choice" in answer, "error" in answer) for answer in answers] == [
        (True, False),
        (False, True),
        (False, True),
        (True, False),
    ]
    assert "oss" in answers[1]["error"]


def test_an_unknown_command_is_refused(run: Run) -> None:
    """The sentence names the command and where to look."""
    refused(run("detcet"), 2, "detcet", "--help")


def test_an_unknown_option_is_refused(run: Run) -> None:
    """The sentence names the option."""
    refused(run("detect", "--fast"), 2, "--fast", "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ("detect", "--replay", "/no/such/file"),
        ("detect", "--from", "/no/such/file"),
        ("plan", "--machine", "/no/such/file"),
        ("plan", "--machines", "/no/such/file"),
        ("diagnose", "/no/such/file"),
        ("apply", "/no/such/file"),
        ("check", "/no/such/file"),
        ("onnx", "check", "/no/such/file"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_named(run: Run, arguments: tuple[str, ...]) -> None:
    """One sentence with the file's name, exit code 2."""
    refused(run(*arguments), 2, "/no/such/file")


@pytest.mark.parametrize("text", ["", "{", "{}", '{"schema": 9}', '{"said": 3}', "\x00\x01", '{"surprise": true}'])
def test_a_broken_recording_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    """A recording that is empty, cut off, newer or of a wrong type is named in one sentence."""
    (tmp_path / "broken.json").write_text(text)
    refused(run("detect", "--replay", tmp_path / "broken.json"), 2, "broken.json")


def test_an_unknown_key_in_a_brief_is_named(run: Run, tmp_path: Path) -> None:
    """A brief with a slip of the pen is not half understood."""
    (tmp_path / "m.json").write_text('{"os": "linux", "gpuz": []}')
    refused(run("plan", "--machine", tmp_path / "m.json"), 2, "gpuz")


def test_an_impossible_backend_is_never_a_silent_cpu(run: Run, tmp_path: Path) -> None:
    """MPS on Linux is refused by name."""
    (tmp_path / "m.json").write_text('{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}')
    done = run("plan", "--machine", tmp_path / "m.json", "--backend", "mps")
    assert done.returncode in {2, 3}
    assert "mps" in done.stderr.lower()
    assert "cpu" not in done.stdout.lower()


def test_export_without_a_setup_says_what_to_do(run: Run) -> None:
    """There is nothing to export before a setup."""
    refused(run("export"), 2, "assistant setup")


def test_verify_refuses_what_is_no_environment(run: Run, tmp_path: Path) -> None:
    """A folder without a Python is named."""
    refused(run("verify", "--target", tmp_path), 2, str(tmp_path))


def test_setup_refuses_a_folder_of_other_things(run: Run, tmp_path: Path) -> None:
    """A target that exists and is no environment is left as it is."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    refused(run("setup", "--yes", "--target", tmp_path / "thesis"), 2, "is not an environment", "--target")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


def test_setup_without_a_yes_asks_and_takes_no_for_no(run: Run, tmp_path: Path) -> None:
    """Answering no installs nothing."""
    done = run("setup", "--target", tmp_path / "env", input="n\n")
    assert done.returncode == 130
    assert "Nothing was installed" in done.stderr
    assert not (tmp_path / "env").exists()


def test_setup_without_a_network_says_so(run: Run, tmp_path: Path) -> None:
    """When no index answers, the sentence says it, and nothing is left behind."""
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    quick = {"UV_HTTP_RETRIES": "0", "UV_CACHE_DIR": str(tmp_path / "cache")}
    done = run("setup", "--yes", "--target", tmp_path / "env", env={**nowhere, **quick})
    refused(done, 3, "cannot be reached", "--with-cuda-libraries")
    assert not (tmp_path / "env").exists()


def test_setup_for_a_python_that_no_wheel_fits(run: Run, tmp_path: Path) -> None:
    """Python 2.7 gets a sentence and exit code 3, not an attempt."""
    done = run("setup", "--yes", "--python", "2.7", "--target", tmp_path / "env")
    assert done.returncode in {2, 3}, done.stderr
    assert "2.7" in done.stderr
    assert not (tmp_path / "env").exists()


def test_what_is_only_tried_is_no_setup(run: Run, tmp_path: Path) -> None:
    """A dry run and a Python that is no environment of ours leave nothing that an export would go on from."""
    run("install", "--dry-run", "--offline", "--target", tmp_path / "env")
    refused(run("export", "--to", tmp_path / "files"), 2, "no earlier setup", "assistant setup")
    run("verify", "--target", sys.executable, "--device", "nowhere")
    refused(run("export", "--to", tmp_path / "files"), 2, "no earlier setup", "assistant setup")
    assert not (tmp_path / "files").exists()


def test_options_that_contradict_each_other_are_refused(run: Run, tmp_path: Path) -> None:
    """A machine comes from one place; so does a log; one thing is done with environments at a time."""
    refused(run("plan", "--machine", tmp_path, "--replay", "macos14-m1"), 2, "--machine", "--replay")
    refused(run("diagnose", "x.log", "--batch", "y.jsonl"), 2, "--batch")
    refused(run("envs", "--forget", tmp_path, "--undo", tmp_path), 2, "--forget", "--undo")


@pytest.mark.parametrize("option", [("envs", "--check"), ("setup", "--target")])
def test_a_home_folder_that_nobody_knows(run: Run, option: tuple[str, str]) -> None:
    """It is a slip of the pen, and no fault of the program."""
    refused(run(*option, "~nobody-of-this-name/env"), 2, "~nobody-of-this-name/env")


def test_a_name_that_is_nearly_a_shipped_machine(run: Run) -> None:
    """The nearest names are told."""
    refused(run("detect", "--replay", "macos14-m2"), 2, "macos14-m1")


def test_a_question_that_nobody_answers(run: Run, tmp_path: Path) -> None:
    """Without anybody at the keyboard a command says which option answers."""
    refused(run("envs", "--remove", tmp_path / "env"), 130, "--yes")


def test_pruning_answers_in_json_where_json_is_asked_for(run: Run) -> None:
    """The bytes that were freed, and nothing that is no JSON."""
    assert json.loads(run("envs", "--prune", "--json").stdout) == {"removed": None, "freed_bytes": 0}


def test_a_refusal_speaks_of_pins_only_where_some_were_given(run: Run) -> None:
    """DirectML has no wheel for Python 3.13, whatever else is wished for."""
    asked = ("plan", "--replay", "windows11-rx7800xt", "--python", "3.13", "--backend", "directml")
    bare = run(*asked).stderr
    assert "pins" not in bare
    assert "satisfies" not in bare
    assert "that satisfies torch==2.4.1" in run(*asked, "--pin", "torch==2.4.1").stderr
