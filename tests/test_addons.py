"""Add-ons as the core meets them: not there, somebody else's, broken; and what `assistant.api` draws in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from refused import refused
from sources import ROOT, text_of

from assistant import addons
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.host.extras import find_uv
from assistant.machines import load
from assistant.model.record import to_json

pytestmark = pytest.mark.process

GUIDE = text_of(ROOT / "docs" / "contributing.md")
MACHINE = "linux-ubuntu2404-rtx4090"


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `assistant` in a Python that also looks into a folder, as if what is there were installed."""
    command = [sys.executable, "-m", "assistant", *map(str, words)]
    variables = {**os.environ, "PYTHONPATH": str(folder), "LANGUAGE": "en"}
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Give a folder with which Python finds no `assistant_addons`, though the distribution still names its parts."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['assistant_addons'] = None\n")
    return tmp_path


def test_without_add_ons_each_of_their_commands_names_its_extra(bare):
    """One sentence with the command to type, whatever its arguments are; the help names it all the same."""
    listed = run(bare, "--help").stdout.partition("Add-ons:")[2]
    for name, entry in addons.names(addons.COMMANDS).items():
        extra = f"[{entry.module.split('.')[1]}]"
        done = run(bare, name, "check", "--json", "here")
        refused(done, 1, f"needs the extra {extra}", " install ")
        assert extra in done.stderr.partition("type: ")[2]
        assert name in listed


def test_without_add_ons_the_core_works(bare):
    """A machine is detected and planned for, and a setup can be asked for."""
    (bare / "machine.json").write_text(to_json(detect(ReplayHost(load(MACHINE))).machine))
    for words, answer in (
        (("setup", "--help"), "--backend"),
        (("detect", "--json", "--replay", MACHINE), '"nvidia_driver"'),
        (("plan", "--machine", "machine.json"), "CUDA"),
        (("doctor", "--replay", MACHINE), "NVIDIA"),
    ):
        done = run(bare, *words)
        assert (done.returncode, answer in done.stdout) == (0, True), (done.stdout, done.stderr)


def test_without_the_projects_add_on_what_nobody_could_check_is_said(bare):
    """Packages beside torch are planned with a warning; a project and a recipe name the extra that reads them."""
    (bare / "requirements.txt").write_text("einops\n")
    machine = ("plan", "--replay", MACHINE, "--offline")
    done = run(bare, *machine, "--pin", "einops")
    assert (done.returncode, done.stderr) == (1, "")
    assert "could not be checked whether all packages go together: This needs the extra [projects]" in done.stdout
    assert "could not be checked" not in run(bare, *machine, "--for", "course").stdout
    for words in (("-r", "requirements.txt"), ("--for", "comfyui")):
        refused(run(bare, *machine, *words), 1, "needs the extra [projects]")


def test_without_the_projects_add_on_a_recipes_trial_is_unknown(bare):
    """It is no check that passed: the report names it as skipped, and a bundle has none."""
    code = "from assistant.verify.runner import _list_questions as of; print(of((), 'comfyui', calls=True)[1])"
    env = {**os.environ, "PYTHONPATH": f"{bare}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("This needs the extra [projects]")


def test_the_guides_add_on_can_be_installed_and_run(tmp_path):
    """What the guide shows is a whole add-on: built and installed, its command answers beside the core's."""
    project, there = tmp_path / "assistant-hello", tmp_path / "there"
    section = GUIDE.partition("## Write an add-on")[2].partition("\n## ")[0]
    files = re.findall(r"`([\w./]+)`[^`]*:\n\n```\w+\n(.*?)```", section, re.DOTALL)
    for name, text in files:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    words = ["pip", "install", "--quiet", "--no-deps", "--target", there, project]
    subprocess.run([find_uv(), *map(str, words)], check=True)
    assert run(there, "hello", "--replay", MACHINE).stdout == "Hello! PyTorch runs on cuda here.\n"
    assert "Say which backend suits this machine." in run(there, "hello", "--help").stdout
    assert "hello" in run(there, "--help").stdout


@pytest.mark.parametrize("code", ["import no_such_module", "raise OSError('no device\\nat all')", "pass"])
def test_a_broken_add_on_is_named_and_takes_nothing_along(tmp_path, code):
    """Whatever is wrong with it: its command names the distribution, and all other commands are listed."""
    info = tmp_path / "acme_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[assistant.commands]\nacme = acme:command\n")
    (tmp_path / "acme.py").write_text(f"{code}\n")
    refused(run(tmp_path, "acme", "now"), 1, "acme:command cannot be loaded: ", "comes with acme-tools")
    listed = run(tmp_path, "--help")
    assert listed.returncode == 0
    assert {"setup", "plan", "acme"} <= set(re.findall(r"\w+", listed.stdout))


HEAVY = ("ipywidgets", "anywidget", "traitlets", "torch", "onnxruntime", "ssl", "http", "urllib.request")


def test_the_api_is_light():
    """It draws in no widget, no torch and nothing that speaks to a network; Python's own metadata brings `socket`."""
    code = "import sys, importlib.metadata; old = {*sys.modules}; import assistant.api; print(*{*sys.modules} - old)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "assistant.api" in done.stdout.split()
    assert {*done.stdout.split()} & {*HEAVY, "socket"} == set()
