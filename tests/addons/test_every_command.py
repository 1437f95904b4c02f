"""What holds for every command holds for those of add-ons, too."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from addons.onnx.traps import trap
from every_command import ENCODINGS, OF_ADDONS, RX, Place, answers_alike, commands, file_parameters
from tables import sampled

# As in `tests/cli/test_named_files.py`. The core's commands leave a project's files to an add-on.
READ = {
    ("setup", "-r"): ("list", "--yes --offline --backend cpu --target {new}"),
    ("install", "-r"): ("list", "--dry-run --offline --backend cpu --target {new}"),
    ("plan", "-r"): ("list", f"--offline --json {RX}"),
    ("fit", "--config"): ("shape", RX),
    ("fit", "--machine"): ("machine", "--parameters 8B"),
    ("fit", "--replay"): ("recording", "--parameters 8B"),
    ("bundle make", "--machines"): ("machines", "{new} --offline"),
    ("bundle make", "--machine"): ("machine", "{new} --offline"),
}
NO_TEXT = {  # written, or no text
    ("bundle make", "folder"),
    ("bundle check", "folder"),
    ("bundle serve", "folder"),
    ("bundle install", "folder"),
    ("onnx check", "model"),
    ("onnx convert", "model"),
    ("onnx convert", "--to"),
    ("onnx convert", "--inputs"),
    ("onnx try", "model"),
    ("onnx try", "--against"),
    ("onnx try", "--inputs"),
    ("labs table", "folder"),
}
USUAL = {"labs hint"}  # one sentence; with --full every command
# What to give each command, so that it prints as much as it can without a network and without an installation.
ARGUMENTS = {
    "recipes list": "",
    "recipes show": "comfyui",
    "fit": "--parameters 8B --replay linux-ubuntu2404-rtx4090",
    "bundle make": "{new} --machine windows11-rtx3060 --offline",
    "bundle check": "{folder}",
    "bundle serve": "{folder}",
    "bundle install": "{folder}",
    "onnx check": "{model}",
    "onnx convert": "{new}",
    "onnx try": "{new}",
    "mcp": "--skill",
    "labs list": "",
    "labs start": "render-group --folder {new}",
    "labs hint": "render-group --folder {new}",
    "labs cause": "render-group --folder {new} --is group-missing",
    "labs check": "render-group --folder {new}",
    "labs table": "{folder}",
}


def test_no_option_is_forgotten() -> None:
    """A new option that takes a file is read in every encoding, or it is said why not."""
    assert {*file_parameters(OF_ADDONS)} == {row for row in {*READ, *NO_TEXT} if row[0].split()[0] in OF_ADDONS}


@pytest.mark.process
@pytest.mark.parametrize("encoding", sampled(ENCODINGS, len(ENCODINGS)))
@pytest.mark.parametrize(("command", "option"), READ)
def test_a_file_is_read_in_any_encoding(tmp_path: Path, command: str, option: str, encoding: str) -> None:
    """The answer is the same as to UTF-8; what PowerShell writes stands for all encodings in the usual run."""
    answers_alike(tmp_path, command, option, READ[command, option], encoding)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Give the home of a user whose name is Chinese."""
    place = Place(tmp_path_factory.mktemp("streams"))
    place.files["folder"].mkdir()
    onnx.save(trap("tiny epsilon"), place.files["model"])
    return place


def test_no_command_is_forgotten() -> None:
    """A new command needs its arguments above."""
    assert sorted(ARGUMENTS) == sorted(words for words, _command in commands(OF_ADDONS))


@pytest.mark.process
@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=() if name in USUAL else pytest.mark.full) for name in ARGUMENTS]
)
def test_no_code_page_ends_a_command(place: Place, command: str) -> None:
    """It says the same in all of them, but for what a code page lacks."""
    place.says_the_same(f"{command} {ARGUMENTS[command]}")


@pytest.mark.process
@pytest.mark.parametrize("command", sampled(ARGUMENTS, 20))
def test_no_code_page_ends_the_help_of_a_command(place: Place, command: str) -> None:
    """Help is printed by click, and comes out in every code page."""
    place.helps(command)
