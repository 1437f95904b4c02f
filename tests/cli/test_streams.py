"""Whatever code page a pipe has, no command ends in it: every command, four code pages, two languages."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click
import forked
import onnx
import pytest
from babel.messages.pofile import read_po
from export.setups import SETUP
from tables import sampled

import assistant
from assistant.cli import cli
from assistant.export.config import config_text
from assistant.host.streams import PLAIN

PAGES = ("cp936", "cp950", "cp932", "cp1252")  # Simplified and Traditional Chinese, Japanese, Western
LANGUAGES = ("en", "zh_CN")
USUAL = {"plan", "diagnose", "labs notebooks"}  # prose, signs and names of files; with --full every command
NOWHERE = "http://127.0.0.1:9/simple"  # port 9 is discard's, where nobody listens
# What to give each command, so that it prints as much as it can without a network and without an installation.
ARGUMENTS = {
    "setup": "--yes --offline --backend cpu --target {new} --to {new}",
    "lab": "--folder {hidden}",
    "detect": "--replay windows11-two-nvidia",
    "plan": "--why --replay linux-arch-rx6700xt-directml",
    "recipes list": "",
    "recipes show": "comfyui",
    "recipes plan": "comfyui --offline --replay windows11-rx7800xt",
    "fit": "--parameters 8B --replay linux-ubuntu2404-rtx4090",
    "install": "--dry-run --offline --backend cpu --target {new}",
    "verify": "--target {new}",
    "export": "--list",
    "bundle make": "{new} --machine windows11-rtx3060 --offline",
    "bundle check": "{folder}",
    "bundle serve": "{folder}",
    "bundle install": "{folder}",
    "envs": "",
    "recover": "",
    "diagnose": "{log} --replay linux-arch-rx6700xt-directml",
    "doctor": "--replay linux-ubuntu2404-rtx3090-hidden",
    "apply": "{config} --replay linux-ubuntu2204-gtx1080 --backend cpu",
    "check": "{config} --replay linux-ubuntu2204-gtx1080 --no-verify",
    "onnx check": "{model}",
    "onnx convert": "{new}",
    "onnx try": "{new}",
    "mcp": "--skill",
    "catalog refresh": f"--yes --index-url {NOWHERE}",
    "labs list": "",
    "labs check": "{folder}",
    "labs notebooks": "{new}",
}
SIGNS = re.compile(r"[^\x00-\x7f\w、-〿！-～]")  # not letters, nor the punctuation of Chinese sentences


class Place:
    """A home with files for the commands, and a way to run them under a code page."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "张三"
        self.home.mkdir()
        self.files = {name: self.home / name for name in ("new", "hidden", "log", "config", "model", "folder")}
        self.files["hidden"].mkdir()
        (self.files["hidden"] / "assistant.py").touch()
        self.files["folder"].mkdir()
        log = "ImportError: libd3d12.so: cannot open shared object file: 没有那个文件或目录\n"
        self.files["log"].write_text(log, encoding="gbk")
        self.files["config"].write_text(config_text(SETUP), encoding="utf-8")
        value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        node = onnx.helper.make_node("Relu", ["x"], ["y"])
        out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [value], [out])), self.files["model"])
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
        places = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "JUPYTER_DATA_DIR")
        own = {name: str(self.home) for name in places}
        self.env = {**kept, **own, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": NOWHERE, "COLUMNS": "200"}

    def run(self, command: str, page: str, language: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run a command into a pipe of a code page; it must not end by a fault of ours."""
        words = [*command.split(), *(word.format(**self.files) for word in ARGUMENTS.get(command, "").split()), *more]
        done = forked.run(*words, env={**self.env, "LANGUAGE": language, "PYTHONIOENCODING": page})
        assert done.returncode in {0, 1, 2, 3}, done.stderr
        assert not list(self.home.rglob("fault.log")), done.stderr
        assert "Traceback" not in done.stderr
        assert (done.stdout + done.stderr).strip()
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Give the home of a user whose name is Chinese."""
    return Place(tmp_path_factory.mktemp("streams"))


def commands(group: click.Group = cli, before: str = "") -> Iterator[str]:
    """Yield every command that there is, by the words that one types."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_no_command_is_forgotten() -> None:
    """A new command needs its arguments above."""
    assert sorted(ARGUMENTS) == sorted(commands())


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
    """It says the same in all of them, with a question mark for each letter that one lacks, and with plain signs."""
    for language in LANGUAGES:
        whole = place.run(command, "utf-8", language)
        said = whole.stdout + whole.stderr
        for page in PAGES:
            done = place.run(command, page, language)
            assert done.returncode == whole.returncode
            lacking = [sign for sign in said if not (SIGNS.match(sign) or sign.encode(page, "ignore"))]
            assert (done.stdout + done.stderr).count("?") == said.count("?") + len(lacking)


@pytest.mark.process
@pytest.mark.parametrize("command", sampled(["", *ARGUMENTS], 20))
def test_no_code_page_ends_the_help_of_a_command(place: Place, command: str) -> None:
    """Help is printed by click, and comes out in every code page."""
    for language, page in product(LANGUAGES, PAGES):
        words = [*command.split(), "--help"]
        done = forked.run(*words, env={**place.env, "LANGUAGE": language, "PYTHONIOENCODING": page})
        assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_json_is_the_same_in_every_code_page(place: Place) -> None:
    """It is ASCII, whatever it tells."""
    whole = place.run("plan", "utf-8", "zh_CN", "--json")
    assert whole.stdout.isascii()
    for page in ("cp1252", "cp936"):
        assert place.run("plan", page, "zh_CN", "--json").stdout == whole.stdout


@pytest.mark.process
def test_an_answer_that_cannot_be_read_is_asked_for_again(place: Place) -> None:
    """Bytes of another code page are no answer, and no fault."""
    command = [sys.executable, "-m", "assistant", "envs", "--remove", "nothing"]
    env = {**place.env, "LANGUAGE": "zh_CN", "PYTHONIOENCODING": "cp936"}
    done = subprocess.run(command, input="是\n".encode(), env=env, capture_output=True, check=False)
    assert done.returncode == 130
    assert "请输入 y（是）" in done.stderr.decode("cp936")
