"""The jobs on GitHub: valid, closed to attackers, and made of commands that exist. None of them runs here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from assistant import start
from assistant.cli.commands import COMMANDS

pytestmark = [pytest.mark.process, pytest.mark.full]

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(shell: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every step that runs commands, with its place; those of one shell, or of the runner's own."""
    for path in FILES:
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items():
            usual = job.get("defaults", {}).get("run", {}).get("shell", "")
            for step in job["steps"]:
                if "run" in step and step.get("shell", usual) == shell:
                    yield f"{path.name}, {name}, {step['name']}", step


@pytest.mark.parametrize(
    "words",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
        ("zizmor", "--offline", "--quiet", "--min-severity", "low"),
    ],
    ids=lambda words: words[0],
)
def test_the_linters_find_nothing(words):
    """Neither GitHub's schema nor the one that looks for what attackers use."""
    tool = Path(sys.executable).with_name(words[0])
    done = subprocess.run([tool, *words[1:], *FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_action_is_the_same_everywhere():
    """By its whole hash, with the release that it is beside it."""
    used = [re.findall(r"uses: (\S+)@(.*)", path.read_text("utf-8")) for path in FILES]
    releases = {(name, pin) for found in used for name, pin in found}
    assert len({name for name, _pin in releases}) == len(releases)
    assert all(re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin) for _name, pin in releases)


@pytest.mark.skipif(sys.platform == "win32", reason="shellcheck has no wheel for every Windows")
@pytest.mark.parametrize("shell", ["", "bash"])
def test_shellcheck_reads_the_commands(shell, tmp_path):
    """Those of Linux and macOS; the ones that Windows' shell runs as well are single commands."""
    for place, step in steps(shell):
        script = tmp_path / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        tool = Path(sys.executable).with_name("shellcheck")
        done = subprocess.run([tool, "--shell=bash", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{place}\n{done.stdout}"


def test_what_is_published_was_checked_and_needs_no_password():
    """Only a job that PyPI trusts by its identity publishes, after one that ran the script of the releases."""
    jobs = [(path, yaml.safe_load(path.read_text("utf-8"))["jobs"]) for path in FILES]
    publishing = [(path, all_jobs, job) for path, all_jobs in jobs for job in all_jobs.values() if "pypi" in str(job)]
    assert sorted(path.stem for path, _all, _job in publishing) == ["release"]
    for path, all_jobs, job in publishing:
        assert job["permissions"] == {"id-token": "write"}
        assert (job["environment"], "secrets." in path.read_text("utf-8")) == ("pypi", False)
        before = job
        while "needs" in before:
            before = all_jobs[before["needs"]]
        assert any("uv run release/make.py" in step.get("run", "") for step in before["steps"])


def test_the_assistants_commands_exist():
    """Each command after `start.py` is one of today's, with options that it has."""
    lines = [line for _place, step in steps() for line in re.findall(r"start\.py (?:--lang \w+ )?(.+)", step["run"])]
    typed = [words for words in map(shlex.split, lines) if words[0] not in start.TESTS]
    assert len(typed) > 4
    for name, *words in typed:
        command = getattr(import_module(f"assistant.cli.{COMMANDS[name]}"), name)
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, name
