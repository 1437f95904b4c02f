"""Whatever code page a pipe has, no command ends in it: every command, four code pages, two languages."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from babel.messages.pofile import read_po
from every_command import OF_CORE, SIGNS, Place, commands
from export.setups import SETUP
from tables import sampled

import assistant
from assistant.export.config import config_text
from assistant.host.files import PLAIN

NOWHERE = "http://127.0.0.1:9/simple"  # port 9 is discard's, where nobody listens
USUAL = {"plan", "diagnose"}  # prose and signs; with --full every command
# What to give each command, so that it prints as much as it can without a network and without an installation.
ARGUMENTS = {
    "setup": "--yes --offline --backend cpu --target {new} --to {new}",
    "lab": "--folder {hidden}",
    "detect": "--replay windows11-two-nvidia",
    "plan": "--why --replay linux-arch-rx6700xt-directml",
    "install": "--dry-run --offline --backend cpu --target {new}",
    "verify": "--target {new}",
    "export": "--list",
    "envs": "",
    "guard": "{new}",
    "recover": "",
    "diagnose": "{log} --replay linux-arch-rx6700xt-directml",
    "doctor": "--replay linux-ubuntu2404-rtx3090-hidden",
    "apply": "{config} --replay linux-ubuntu2204-gtx1080 --backend cpu",
    "check": "{config} --replay linux-ubuntu2204-gtx1080 --no-verify",
    "catalog refresh": f"--yes --index-url {NOWHERE}",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Give the home of a user whose name is Chinese."""
    place = Place(tmp_path_factory.mktemp("streams"))
    place.files["hidden"].mkdir()
    (place.files["hidden"] / "assistant.py").touch()
    log = "ImportError: libd3d12.so: cannot open shared object file: 没有那个文件或目录\n"
    place.files["log"].write_text(log, encoding="gbk")
    place.files["config"].write_text(config_text(SETUP), encoding="utf-8")
    return place


def test_no_command_is_forgotten() -> None:
    """A new command needs its arguments above."""
    assert sorted(ARGUMENTS) == sorted(words for words, _command in commands(OF_CORE))


def test_every_sign_has_a_plain_one() -> None:
    """All that English sentences and the terminal's own texts hold beyond ASCII, but for letters, is in the table."""
    folder = Path(assistant.__file__).parent
    with (folder / "locale/zh_CN/LC_MESSAGES/assistant.po").open("rb") as file:
        sentences = ["".join(message.id) for message in read_po(file)]
    sources = [*(folder / "cli").glob("*.py"), folder / "views.py", folder / "start.py"]
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert {sign for text in (*sentences, *texts) for sign in SIGNS.findall(text)} <= PLAIN.keys()


@pytest.mark.process
@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=() if name in USUAL else pytest.mark.full) for name in ARGUMENTS]
)
def test_no_code_page_ends_a_command(place: Place, command: str) -> None:
    """It says the same in all of them, but for what a code page lacks."""
    place.says_the_same(f"{command} {ARGUMENTS[command]}")


@pytest.mark.process
@pytest.mark.parametrize("command", sampled(["", *ARGUMENTS], 20))
def test_no_code_page_ends_the_help_of_a_command(place: Place, command: str) -> None:
    """Help is printed by click, and comes out in every code page."""
    place.helps(command)


@pytest.mark.process
def test_json_is_the_same_in_every_code_page(place: Place) -> None:
    """It is ASCII, whatever it tells."""
    words = f"plan {ARGUMENTS['plan']} --json"
    whole = place.run(words, "utf-8", "zh_CN")
    assert whole.stdout.isascii()
    for page in ("cp1252", "cp936"):
        assert place.run(words, page, "zh_CN").stdout == whole.stdout


@pytest.mark.process
def test_an_answer_that_cannot_be_read_is_asked_for_again(place: Place) -> None:
    """Bytes of another code page are no answer, and no fault."""
    command = [sys.executable, "-m", "assistant", "envs", "--remove", "nothing"]
    env = forked.at_home(place.home, LANGUAGE="zh_CN", PYTHONIOENCODING="cp936")
    done = subprocess.run(command, input="是\n".encode(), env=env, capture_output=True, check=False)
    assert done.returncode == 130
    assert "请输入 y（是）" in done.stderr.decode("cp936")
