"""The command line as a user meets it: a real process, its exit code, and one clear sentence for every bad input."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from forked import Run
from loopback import LoopbackIndex
from refused import refused
from tables import each

from assistant.cli.commands import COMMANDS

pytestmark = pytest.mark.process

BRIEF = '{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}'


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Describe a machine, beside which the command runs."""
    (tmp_path / "m.json").write_text(BRIEF)
    return run


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_help_fits_a_screen_and_lists_every_command(run: Run, language: str) -> None:
    """In 24 lines of 80 columns; what people begin with has its sentence, and none of these is cut short."""
    listed = run("--help", COLUMNS="80", LANGUAGE=language).stdout
    assert len(listed.splitlines()) <= 24
    assert set(COMMANDS) <= set(re.findall(r"[a-z]+", listed))
    for group in ((), ("catalog",)):
        assert "..." not in run(*group, "--help", COLUMNS="80").stdout.partition("Commands:")[2]


def test_without_a_command_the_five_tasks_are_listed(run: Run) -> None:
    """Each with what is typed for it; where nobody can choose, nothing is asked and nothing begins."""
    done = run(input="1\n")
    assert done.returncode == 0
    assert re.findall(r"^  (\d)  assistant (\w+)", done.stdout, re.MULTILINE) == [
        ("1", "setup"),
        ("2", "recipes"),
        ("3", "doctor"),
        ("4", "envs"),
        ("5", "labs"),
    ]


def test_a_shell_completes_commands_and_files(run: Run) -> None:
    """By click's own protocol, as the scripts for bash, zsh and fish speak it."""

    def offered(typed: str) -> list[str]:
        words = typed.split(" ")
        done = run(_ASSISTANT_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
        return done.stdout.split()

    assert offered("assistant do") == ["plain,doctor"]
    assert "plain,directml" in offered("assistant plan --backend ")
    assert offered("assistant diagnose err") == ["file,err"]


def test_the_doctor_judges_what_it_is_given(run: Run, tmp_path: Path) -> None:
    """A log, a model and a configuration as their own commands do; what is none of these is named."""
    (tmp_path / "error.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    (tmp_path / "notes.toml").write_text("[tool]\n")
    (tmp_path / "broken.onnx").write_bytes(b"\xff" * 40)
    for words in (("error.log", "--json"), ("error.log",)):
        assert run("doctor", *words).stdout == run("diagnose", *words).stdout != ""
    for file, command in (("broken.onnx", ("onnx", "check")), ("notes.toml", ("check",))):
        said = run("doctor", file)
        refused(said, 2, file)
        assert said.stderr == run(*command, file).stderr
    refused(run("doctor", "nowhere.log"), 2, "nowhere.log")
    refused(run("doctor", "."), 2, "is not an environment")


def test_commands_are_named_as_this_user_types_them(run: Run) -> None:
    """From a checkout every next step begins with `python3 start.py`, in usage, refusals, lists and remedies alike."""
    checkout = {"SETUP_ASSISTANT_STARTED_AS": "python3 start.py"}
    assert run("--help", **checkout).stdout.startswith("Usage: python3 start.py [OPTIONS]")
    refused(run("export", **checkout), 2, "Run `python3 start.py setup` first.")
    refused(run("detect", "--nonsense", **checkout), 2, "`python3 start.py detect --help`")
    assert "`python3 start.py setup` makes one" in run("envs", **checkout).stdout
    told = run("diagnose", "-", **checkout, input="libGL error: nothing that anybody knows\n").stdout
    assert "`python3 start.py diagnose LOG --report FILE.md`" in told
    told = run("diagnose", "-", **checkout, input="AssertionError: Torch not compiled with CUDA enabled\n").stdout
    assert "     python3 start.py " in told


def test_this_machine_is_printed_and_replays_from_its_recording(run: Run) -> None:
    """As text and as JSON; what was recorded is what is detected from the recording, byte for byte."""
    live = run("detect", "--record", "recorded.json", "--json")
    replayed = run("detect", "--replay", "recorded.json", "--json")
    assert live.returncode == replayed.returncode == 0
    assert live.stdout == replayed.stdout
    assert json.loads(live.stdout)["schema"] == 1
    assert json.loads(live.stdout)["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "Python" in run("detect", "--replay", "recorded.json").stdout
    changed = run("detect", "--replay", "recorded.json", "--set", "nvidia_driver=580.95", "--json")
    assert json.loads(changed.stdout)["nvidia_driver"] == "580.95"


def test_plan_answers_for_a_described_machine(run: Run) -> None:
    """A machine written by hand gets a choice with reasons."""
    choice = json.loads(run("plan", "--machine", "m.json", "--json").stdout)["choice"]
    assert choice["backend"] == "cpu"
    assert choice["reasons"]
    assert choice["disk_gb"] > choice["download_mb"] / 1000


def test_a_batch_answers_line_by_line(run: Run, tmp_path: Path) -> None:
    """A bad line gets an error in its place, and the others their plans."""
    (tmp_path / "m.jsonl").write_text(f'{BRIEF}\n{{"oss": "linux"}}\nnonsense\n{BRIEF}')
    done = run("plan", "--machines", "m.jsonl", "--json")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [next(iter({"choice", "error"} & answer.keys())) for answer in answers] == [
        "choice",
        "error",
        "error",
        "choice",
    ]
    assert "oss" in answers[1]["error"]


@each(
    ("words", "code", "said"),
    [
        ("detcet", 2, ("detcet", "--help")),
        ("detect --fast", 2, ("--fast", "--help")),
        ("detect --replay /no/such/file", 2, ("/no/such/file",)),
        ("detect --from /no/such/file", 2, ("/no/such/file",)),
        ("plan --machine /no/such/file", 2, ("/no/such/file",)),
        ("plan --machines /no/such/file", 2, ("/no/such/file",)),
        ("diagnose /no/such/file", 2, ("/no/such/file",)),
        ("apply /no/such/file", 2, ("/no/such/file",)),
        ("check /no/such/file", 2, ("/no/such/file",)),
        ("detect --replay macos14-m2", 2, ("macos14-m1",)),
        ("plan --machine m.json --backend mps", 3, ("MPS",)),
        ("export", 2, ("assistant setup",)),
        ("verify --target thesis", 2, ("thesis",)),
        ("setup --yes --python 2.7 --target env", 3, ("2.7",)),
        ("setup --yes --target env", 1, ("cannot be reached",)),
        ("setup --target ~nobody-of-this-name/env", 2, ("~nobody-of-this-name/env",)),
        ("envs --check ~nobody-of-this-name/env", 2, ("~nobody-of-this-name/env",)),
        ("envs --remove env", 130, ("--yes",)),
        ("plan --machine m.json --replay macos14-m1", 2, ("--machine", "--replay")),
        ("diagnose x.log --batch y.jsonl", 2, ("--batch",)),
        ("envs --forget a --undo a", 2, ("--forget", "--undo")),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    run: Run, tmp_path: Path, words: str, code: int, said: tuple[str, ...]
) -> None:
    """It names the culprit or the next step; nothing is printed as if it were an answer, and nothing is made."""
    (tmp_path / "thesis").mkdir(exist_ok=True)
    done = run(*words.split())
    refused(done, code, *said)
    assert not (tmp_path / "env").exists()


@each("text", ["", "{", "{}", '{"schema": 9}', '{"said": 3}', "\x00\x01", '{"surprise": true}'])
def test_a_broken_recording_or_description_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    """One that is empty, cut off, newer or of a wrong type is named in one sentence, an unknown key with it."""
    (tmp_path / "broken.json").write_text(text)
    refused(run("detect", "--replay", "broken.json"), 2, "broken.json")
    if "surprise" in text:
        refused(run("plan", "--machine", "broken.json"), 2, "surprise")


def test_setup_asks_and_touches_no_folder_of_other_things(run: Run, index: LoopbackIndex, tmp_path: Path) -> None:
    """Answering no installs nothing, and a target that exists and is no environment is left as it is."""
    done = run("setup", "--backend", "cpu", "--target", "env", input="n\n", index=index.url)
    assert done.returncode == 130
    assert "Nothing was installed" in done.stderr
    assert not (tmp_path / "env").exists()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    done = run("setup", "--yes", "--backend", "cpu", "--target", "thesis", index=index.url)
    refused(done, 2, "is not an environment", "--target")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


def test_what_is_only_tried_is_no_setup(run: Run, index: LoopbackIndex, tmp_path: Path) -> None:
    """A dry run and a Python that is no environment of ours leave nothing that an export would go on from."""
    tried = run("install", "--dry-run", "--backend", "cpu", "--target", "env", index=index.url)
    assert tried.returncode == 0, tried.stderr
    refused(run("export", "--to", "files"), 2, "no earlier setup", "assistant setup")
    run("verify", "--target", sys.executable, "--device", "nowhere")
    refused(run("export", "--to", "files"), 2, "no earlier setup", "assistant setup")
    assert not (tmp_path / "files").exists()


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
