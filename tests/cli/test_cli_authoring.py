"""Rules and machines of users: written from a template, tested, and used beside the shipped ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import forked
import pytest
from refused import refused

from assistant.catalog.tables import data_files

pytestmark = pytest.mark.process
Run = Callable[..., CompletedProcess[str]]
LOG = "ERROR: 403 SchoolGate: file too large"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs a command in an empty folder with a home of its own."""

    def runner(*words: str, language: str = "en") -> CompletedProcess[str]:
        homes = {name: str(tmp_path / "home") for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
        return forked.run(*words, cwd=tmp_path, env={**os.environ, **homes, "LANGUAGE": language, "COLUMNS": "200"})

    return runner


@pytest.fixture
def template(run: Run, tmp_path: Path) -> Path:
    """Write the template of a rule, and a log that it knows."""
    assert run("rules", "new", "school-proxy").returncode == 0
    (tmp_path / "f.log").write_text(LOG)
    return tmp_path / "school-proxy.toml"


def keys(done: CompletedProcess[str]) -> list[str]:
    """Return the keys of the causes in a diagnosis as JSON."""
    return [cause["key"] for cause in json.loads(done.stdout)["diagnoses"]]


def test_the_template_lacks_nothing_and_is_not_overwritten(run: Run, template: Path) -> None:
    """It passes its own test as it stands; a second `new` refuses to write over it."""
    assert run("rules", "test", template.name).returncode == 0
    refused(run("rules", "new", "school-proxy"), 2, "already")
    refused(run("rules", "new", "School Proxy"), 2, "letters")


def test_a_file_of_rules_counts_by_option_and_by_folder(run: Run, template: Path, tmp_path: Path) -> None:
    """With --rules for one command, from the user's folder always, in Chinese, too; a batch as well."""
    assert keys(run("diagnose", "f.log", "--json")) == []
    assert keys(run("diagnose", "f.log", "--json", "--rules", template.name)) == ["school-proxy"]
    (tmp_path / "b.jsonl").write_text(json.dumps({"log": LOG}) + "\n")
    assert keys(run("diagnose", "--batch", "b.jsonl", "--rules", template.name)) == ["school-proxy"]
    folder = next(iter(run("rules", "test", template.name).stdout.split("always from ")[1].splitlines())).rstrip(".")
    Path(folder).mkdir(parents=True)
    template.rename(Path(folder, template.name))
    assert keys(run("diagnose", "f.log", "--json")) == ["school-proxy"]
    assert "学校的代理拒绝下载 PyTorch 的 wheel" in run("diagnose", "f.log", language="zh_CN").stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('key = "school-proxy"', 'key = "mps-oom"', "mps-oom: this key is taken already"),
        ("all = ['403']", "all = ['403.*']", "school-proxy: a repeat in the pattern 403.* goes on too long"),
        ("all = ['403']", "all = ['HTTP 403']", "has capitals"),
        ("all = ['403']", "all = ['403 (']", "is no regular expression"),
        ("all = ['403']", "alll = ['403']", "school-proxy cannot be read: unknown field `alll`"),
        ("all = ['403']", "facts = { moon = 'full' }", "school-proxy: there is no fact moon"),
        ("all = ['403']", "facts = { os = 'linux' }", "school-proxy: the fact os wants a list"),
        ("[[rule]]", "[[rule", "it is not TOML"),
    ],
)
def test_a_fault_is_one_sentence_with_file_and_rule(run: Run, template: Path, old: str, new: str, said: str) -> None:
    """Given by name the file is refused; in the user's folder it is passed over, which is said, and the rest counts."""
    template.write_text(template.read_text("utf-8").replace(old, new, 1), "utf-8")
    refused(run("diagnose", "f.log", "--rules", template.name), 2, template.name, said)
    folder = Path(template.parent, "home", "pytorch-setup-assistant", "rules")
    folder.mkdir(parents=True)
    template.rename(folder / template.name)
    done = run("diagnose", "f.log", "--json")
    assert keys(done) == []
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("healthy = [", "healthy = []\n#", "no log in `healthy`"),
        ('healthy = ["', 'healthy = ["403 SchoolGate: file too large, ', "Log 1 of `healthy` is taken"),
        ('  "403 Client', "#", "3 of 4 logs"),
        ("any = ['schoolgate: file too large', ", "any = [", "Nothing is found in log 1"),
        ('sources = ["https:', 'sources = ["http:', "needs a source"),
        ('"Install from the folder of wheels that the school keeps." =', '"x" =', "The Chinese of"),
        ('import torch\\"', 'import (\\"', "cannot be typed"),
        ("check = [", "# ", "no `check`"),
    ],
)
def test_what_a_rule_lacks_is_a_sentence_each(run: Run, template: Path, old: str, new: str, said: str) -> None:
    """One thing is spoilt, and that one is told."""
    text = template.read_text("utf-8")
    assert old in text
    template.write_text(text.replace(old, new, 1), "utf-8")
    done = run("rules", "test", template.name)
    assert done.returncode == 1
    assert said in done.stdout
    assert json.loads(run("rules", "test", template.name, "--json").stdout)["missing"]


def test_a_check_of_a_file_is_one_of_the_doctor(run: Run, tmp_path: Path) -> None:
    """`doctor --rules` judges the machine by it."""
    (tmp_path / "c.toml").write_text(
        'as_of = "2026-11-27"\n[[check]]\nkey = "course-system"\nsource = "https://uni.example"\n[[check.case]]\n'
        'severity = "warning"\nfacts = { os = ["linux"] }\ntext = "The course is for Windows."\n'
    )
    words = ("doctor", "--replay", "linux-ubuntu2404-rtx4090")
    assert "The course is for Windows." in run(*words, "--rules", "c.toml").stdout
    assert "The course is for Windows." not in run(*words).stdout


def test_a_machine_file_is_compared_with_what_it_expects(run: Run, tmp_path: Path) -> None:
    """Recording fills it in; what differs is a sentence each, and so is what is not expected at all."""
    run("detect", "--replay", "linux-ubuntu2404-rtx4090", "--record", "pc.json")
    path = tmp_path / "pc.json"
    recording = json.loads(path.read_text("utf-8"))
    recording["label"] = "a PC"
    expect = recording["expect"]
    assert expect["plan"]["backend"] == "cuda"
    expect["plan"]["backend"], expect["findings"] = "rocm", ["devices-hidden"]
    path.write_text(json.dumps(recording))
    done = run("machines", "test", "pc.json")
    assert done.returncode == 1
    assert 'plan.backend is expected to be "rocm", and it is "cuda".' in done.stdout
    assert "The finding devices-hidden is expected and not made." in done.stdout
    recording["expect"] = {}
    path.write_text(json.dumps(recording))
    done = run("machines", "test", "pc.json")
    assert done.returncode == 1
    assert "does not say what `plan` must be" in done.stdout


@pytest.mark.parametrize("name", ["machine", "recording", "rules", *data_files()])
def test_every_kind_of_file_has_a_schema(run: Run, name: str) -> None:
    """It is JSON Schema that refers to a definition of its own."""
    made = json.loads(run("schema", name).stdout)
    assert made["$ref"].removeprefix("#/$defs/") in made["$defs"]
