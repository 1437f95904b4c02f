"""Whatever has saved a file, an option that takes it reads it: PowerShell's `>`, Notepad, a Chinese code page."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_command import ENCODINGS, OF_CORE, RX, answers_alike, file_parameters
from tables import sampled

# Of each command and option that reads a file: which text it is given, and what else is typed. "-" is the file itself.
READ = {
    ("detect", "--replay"): ("recording", "--json"),
    ("detect", "--from"): ("report", "--json"),
    ("plan", "--machine"): ("machine", "--why"),
    ("plan", "--machines"): ("machines", ""),
    ("plan", "--replay"): ("recording", "--json"),
    ("diagnose", "log"): ("log", "--replay linux-arch-rx6700xt-directml"),
    ("diagnose", "--batch"): ("logs", ""),
    ("diagnose", "--machine"): ("machine", "{log}"),
    ("diagnose", "--replay"): ("recording", "{log}"),
    ("doctor", "what"): ("log", "--replay linux-arch-rx6700xt-directml"),
    ("doctor", "--replay"): ("recording", ""),
    ("apply", "config"): ("config", RX),
    ("apply", "--replay"): ("recording", "{config}"),
    ("check", "config"): ("config", f"--no-verify {RX}"),
    ("check", "--replay"): ("recording", "{config} --no-verify"),
}
NO_TEXT = {("detect", "--record"), ("diagnose", "--report")}  # written
FOLDERS = {("guard", "path")}
BY_AN_ADDON = {("setup", "-r"), ("install", "-r"), ("plan", "-r")}


def test_no_option_is_forgotten() -> None:
    """A new option that takes a file is read in every encoding, or it is said why not."""
    assert sorted(file_parameters(OF_CORE)) == sorted({*READ, *NO_TEXT, *FOLDERS, *BY_AN_ADDON})


@pytest.mark.process
@pytest.mark.parametrize("encoding", sampled(ENCODINGS, len(ENCODINGS)))
@pytest.mark.parametrize(("command", "option"), READ)
def test_a_file_is_read_in_any_encoding(tmp_path: Path, command: str, option: str, encoding: str) -> None:
    """The answer is the same as to UTF-8; what PowerShell writes stands for all encodings in the usual run."""
    answers_alike(tmp_path, command, option, READ[command, option], encoding)
