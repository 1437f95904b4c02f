"""`assistant diagnose` and `assistant doctor` as a user meets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import forked
import pytest

pytestmark = pytest.mark.process

LOG = "starting\nloading\nOSError: libd3d12.so: cannot open shared object file: No such file or directory\nstopped\n"
FIELDS = {"key", "title", "cause", "evidence", "remedies", "confidence", "sources"}


def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command in English."""
    return forked.run(*arguments, env={**os.environ, "LANGUAGE": "en", "COLUMNS": "200"}, **options)


def test_json_holds_what_the_contract_says() -> None:
    """Every field is there, also where it is empty; the remedy's plan is a whole plan, and no line shows a secret."""
    secret = "hf_abcdefghijklmnopqrstuvwxyz012345"  # noqa: S105 - of nobody
    log = LOG.replace("OSError", f"{secret} OSError")
    done = run("diagnose", "-", "--replay", "linux-arch-rx6700xt-directml", "--json", input=log)
    assert secret not in done.stdout
    best = json.loads(done.stdout)["diagnoses"][0]
    assert set(best) >= FIELDS
    assert best["key"] == "directml-on-native-linux"
    assert all({"text", "commands", "plan"} <= set(remedy) for remedy in best["remedies"])
    assert best["remedies"][0]["plan"]["backend"] == "rocm"


def test_json_tells_what_was_read_and_what_is_not_sure(tmp_path: Path) -> None:
    """Each fact names the line that tells it, and whose computer it is; a cause that is not sure is a possible one."""
    (tmp_path / "e.log").write_text("GPU: RTX 4070\ntorch 2.9.0+cpu\nmy gpu is not used, why?\n")
    answer = json.loads(run("diagnose", tmp_path / "e.log", "--json").stdout)
    assert {"key": "packages", "value": "torch 2.9.0+cpu", "line": 2} in answer["facts"]
    assert answer["facts"][0]["key"] == "origin"
    assert [cause["key"] for cause in answer["possible"]] == [cause["key"] for cause in answer["diagnoses"]]
    sure = json.loads(run("diagnose", "-", "--replay", "linux-arch-rx6700xt-directml", "--json", input=LOG).stdout)
    assert sure["facts"][0] == {"key": "origin", "value": "given"}
    assert sure["possible"] == []
    trace = 'File "/Users/a/v/lib/python3.12/site-packages/torch/a.py"\nTorch not compiled with CUDA enabled'
    other = json.loads(run("diagnose", "-", "--replay", "linux-arch-rx6700xt-directml", "--json", input=trace).stdout)
    assert (other["facts"][0]["value"], other["diagnoses"][0]["key"]) == ("other", "cuda-requested-on-mac")


def test_a_person_sees_the_line_the_cause_and_the_commands(tmp_path: Path) -> None:
    """The failing line is marked in its context with its number."""
    (tmp_path / "e.log").write_text(LOG)
    told = run("diagnose", tmp_path / "e.log", "--replay", "linux-arch-rx6700xt-directml").stdout
    assert "→      3 │ OSError: libd3d12.so" in told
    assert "loading" in told
    assert "pip uninstall -y torch-directml" in told
    assert "assistant setup --backend rocm" in told
    assert "check:" in told


def test_a_log_without_trouble_says_so_and_offers_a_report(tmp_path: Path) -> None:
    """Nothing is invented; the report holds no line, as none names an error, and says so."""
    (tmp_path / "e.log").write_text("/home/jane/x: all is well\n")
    done = run("diagnose", tmp_path / "e.log", "--report", tmp_path / "r.md")
    assert done.returncode == 0
    assert "--report" in done.stdout
    report = (tmp_path / "r.md").read_text()
    assert "no line names an error" in report
    assert "all is well" not in report
    assert json.loads(run("diagnose", tmp_path / "e.log", "--json").stdout)["diagnoses"] == []


def test_a_log_goes_before_the_machine_that_was_given(tmp_path: Path) -> None:
    """A log with Windows' paths is answered for Windows, whatever machine is given with it; one in doubt is its own."""
    (tmp_path / "m.json").write_text('{"os": "linux", "os_version": "Ubuntu 24.04"}')
    for log, origin in ((r'File "C:\a\app.py"', "other"), ("Killed", "given")):
        done = run("diagnose", "-", "--machine", tmp_path / "m.json", "--json", input=log)
        assert json.loads(done.stdout)["facts"][0] == {"key": "origin", "value": origin}


def test_a_batch_answers_line_by_line(tmp_path: Path) -> None:
    """A bad line gets an error in its place."""
    good = json.dumps({"log": LOG, "machine": {"os": "linux", "wsl": True}})
    (tmp_path / "b.jsonl").write_text(
        f'{good}\nnonsense\n{{"log": 3}}\n{{"log": "fine", "machine": {{"oss": 1}}}}\n{good}\n'
    )
    answers = [
        json.loads(line) for line in run("diagnose", "--batch", tmp_path / "b.jsonl", "--json").stdout.splitlines()
    ]
    assert ["error" in answer for answer in answers] == [False, True, True, True, False]
    assert answers[0]["diagnoses"][0]["key"] == "wsl-host-too-old"


@pytest.mark.parametrize(("data", "word"), [(b"\x7fELF\x00\x00", "binary"), (None, "cannot be read")])
def test_what_cannot_be_read_is_refused_in_a_line(tmp_path: Path, data: bytes | None, word: str) -> None:
    """One sentence, exit code 2."""
    path = tmp_path / "e.log"
    if data:
        path.write_bytes(data)
    done = run("diagnose", path)
    assert done.returncode == 2
    assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_doctor_checks_every_thing_in_a_line() -> None:
    """Good news and bad on one line each, with ways out for the bad."""
    told = run("doctor", "--replay", "linux-arch-rx6700xt-directml").stdout
    assert "✓ Python" in told
    assert "! torch-directml is installed" in told
    assert "✗ PyTorch" in told
    assert re.search(r"\d+ problems? found\.", told)


def test_the_doctor_speaks_json() -> None:
    """The same as records with keys and severities."""
    told = json.loads(run("doctor", "--replay", "linux-ubuntu2404-rtx4090", "--json").stdout)["findings"]
    assert {"key", "severity", "text"} <= set(told[0])
    assert not [finding for finding in told if finding["severity"] == "error"]


def test_without_a_cause_guesses_are_called_guesses() -> None:
    """They are no causes in JSON, and each names what speaks for it."""
    story = "Decoding took half an hour the very first time: MIOpen searches for convolution kernels at each new size."
    told = run("diagnose", "-", "--replay", "linux-arch-rx6700xt-directml", input=story).stdout
    assert "They are guesses" in told
    assert "What speaks for it: Decoding took half an hour" in told
    answer = json.loads(run("diagnose", "-", "--replay", "linux-arch-rx6700xt-directml", "--json", input=story).stdout)
    assert answer["diagnoses"] == []
    assert answer["unexplained"]["possible"][0]["key"] == "miopen-find-mode"
