"""No sentence of the commands escapes translation: their outputs are read in a made-up language."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from made_up import without_filled, write_made_up

from assistant.cli.commands import COMMANDS

# Runs several commands one after the other in one process.
START = """
import json, sys
from pathlib import Path
from assistant.i18n import use_language
from assistant.cli import main
folder, runs = sys.argv[1:]
for words in json.loads(runs):
    use_language("zh_CN", Path(folder))
    sys.argv[1:] = words
    try:
        main()
    except SystemExit:
        pass
"""
ASSISTANT = Path(__file__).parents[2] / "assistant"
THREE_WORDS = re.compile(r"\b(?=([a-z]{2,} [a-z]{2,} [a-z]{2,})\b)")
LOG = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory\n"
HELP = [["--help"], *([command, "--help"] for command in COMMANDS)]
ANSWERS = [
    ["detect", "--replay", "linux-arch-rx6700xt-directml"],
    ["detect", "--replay", "nothing"],
    ["plan", "--replay", "linux-ubuntu2404-rtx5090-driver575", "--why"],
    ["plan", "--replay", "linux-alpine-musl"],
    ["plan", "--pin", "torch=="],
    ["doctor", "--replay", "linux-ubuntu2404-rtx3090-hidden"],
    ["diagnose", "LOG"],
    ["diagnose", "nowhere.log"],
    ["envs"],
    ["envs", "--remove", "nothing"],
    ["recover"],
    ["verify"],
    ["export"],
    ["nonsense"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the made-up language's catalogue."""
    return write_made_up(tmp_path_factory.mktemp("made-up"))


@pytest.mark.process
@pytest.mark.parametrize("runs", [HELP, ANSWERS], ids=["help", "answers"])
def test_no_sentence_of_a_command_escapes(runs: list[list[str]], folder: Path, tmp_path: Path) -> None:
    """Whatever a command says, in its help, its answer or its refusal, came through the translation."""
    log = tmp_path / "error.log"
    log.write_text(LOG)
    words = [[str(log) if word == "LOG" else word for word in run] for run in runs]
    homes = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", START, str(folder), json.dumps(words)],
        env={**os.environ, **homes, "LANGUAGE": "zh_CN", "COLUMNS": "400", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    said = f"{done.stdout}\n{done.stderr}".replace(LOG.strip(), "")
    assert "Traceback" not in said
    assert len(re.findall("[Ж\u4e00-\u9fff]", said)) > 100 * len(runs)
    shown = {words for line in said.splitlines() for words in THREE_WORDS.findall(without_filled(line))}
    assert shown & ours() == set()


@cache
def ours() -> set[str]:
    """Give all runs of three English words in our code; others come from data, machines and logs, and stay."""
    texts = (
        node.value
        for path in ASSISTANT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = {words for text in texts for words in THREE_WORDS.findall(text)}
    return {words for words in found if not words.startswith("pip install ")}  # a command


def test_an_english_sentence_would_be_seen() -> None:
    """The test above knows the words of our sentences."""
    assert "what this machine" in ours()
