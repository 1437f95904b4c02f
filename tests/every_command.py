"""What holds for every command: it reads files in any encoding, and prints into a pipe of any code page."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import click
import forked
from export.setups import SETUP

from assistant import addons
from assistant.cli.commands import COMMANDS, cli
from assistant.export.config import config_text
from assistant.machines import load
from assistant.model.record import replace, to_json

OF_CORE, OF_ADDONS = tuple(COMMANDS), tuple(addons.names(addons.COMMANDS))
NO_FILE = {"key", "name", "table", "formats", "jupyter_arguments"}  # arguments that name something else


def commands(names: Iterable[str], group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield commands of a group by their words, and instead of a group the commands in it."""
    context = click.Context(group)
    for name in names:
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command.list_commands(context), command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def file_parameters(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each command with each of its arguments, and with each option that says that it takes a file."""
    for words, command in commands(names):
        for one in command.params:
            if isinstance(one, click.Argument) and one.name not in NO_FILE:
                yield words, str(one.name)
            elif isinstance(one, click.Option) and re.search(r"FILE|\.\w+$", one.metavar or ""):
                yield words, one.opts[0]


ENCODINGS = ("utf-16", "utf-8-sig", "utf-16-le", "utf-16-be", "gbk")  # utf-16 writes the mark
RX = "--replay windows11-rx7800xt"
_MACHINE = {
    "os": "windows",
    "os_version": "Windows 11 专业版",
    "python": "3.12.4",
    "gpus": [{"vendor": "amd", "name": "AMD Radeon RX 7800 XT 显卡", "vram_gb": 16}],
}
_LOG = "ImportError: libd3d12.so: cannot open shared object file: 没有那个文件或目录\n"
_SHAPE = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
_SHAPE |= {"intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu", "torch_dtype": "bfloat16"}
TEXTS = {
    "machine": json.dumps(_MACHINE, ensure_ascii=False, indent=2),
    "machines": "".join(
        json.dumps({**_MACHINE, "os_version": name}, ensure_ascii=False) + "\n" for name in ("专业版", "家庭版")
    ),
    "recording": to_json(replace(load("windows11-two-nvidia"), label="实验室的电脑"), indent=1),
    "config": config_text(SETUP).replace("/home/jane", "/home/张三"),
    "shape": json.dumps({**_SHAPE, "_name_or_path": "模型/羊驼"}, ensure_ascii=False),
    "log": _LOG,
    "logs": json.dumps({"log": _LOG}, ensure_ascii=False) + "\n" + json.dumps({"log": "一切正常"}, ensure_ascii=False),
    "list": "# 这个项目需要的软件包，由我自己手工整理，版本不要随便改动\nnumpy\n这一行 不是软件包\n",
    "report": "PyTorch version: 2.6.0\nIs debug build: False\nOS: Windows 11 专业版\nPython version: 3.12.3\n",
}


def answers_alike(folder: Path, command: str, option: str, given: tuple[str, str], encoding: str) -> None:
    """Run a command with a text in an encoding, in a home of its own; it must answer as to UTF-8.

    `given` is which text, and what else is typed: `{log}` and `{config}` are files, and `{new}` is not there.
    """
    which, more = given
    for name in ("log", "config"):
        (folder / name).write_text(TEXTS[name], encoding="utf-8")
    env = forked.at_home(folder, COLUMNS="300")
    file = folder / ("given.json" if which == "machine" else "given.txt")
    files = {name: folder / name for name in ("log", "config", "new")}
    named = [option, file.name] if option.startswith("-") else [file.name]
    words = [*command.split(), *(word.format(**files) for word in more.split()), *named]
    text = TEXTS[which].replace("\n", "\r\n")
    file.write_bytes(text.encode())
    whole = forked.run(*words, env=env, cwd=folder)
    assert "given" not in whole.stderr, whole.stderr
    assert whole.stdout or "Resolving for" in whole.stderr
    file.write_bytes(text.encode(encoding))
    done = forked.run(*words, env=env, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, whole.stderr)


PAGES = ("cp936", "cp950", "cp932", "cp1252")  # Simplified and Traditional Chinese, Japanese, Western
LANGUAGES = ("en", "zh_CN")
SIGNS = re.compile(r"[^\x00-\x7f\w、-〿！-～]")  # not letters, nor the punctuation of Chinese sentences


class Place:
    """A home with files for the commands, and a way to run them under a code page."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "张三"
        self.home.mkdir()
        self.files = {name: self.home / name for name in ("new", "hidden", "log", "config", "model", "folder")}

    def run(self, words: str, page: str, language: str) -> subprocess.CompletedProcess[str]:
        """Run a command into a pipe of a code page; it must not end by a fault of ours."""
        env = forked.at_home(self.home, LANGUAGE=language, PYTHONIOENCODING=page)
        done = forked.run(*(word.format(**self.files) for word in words.split()), env=env)
        assert done.returncode in {0, 1, 2, 3}, done.stderr
        assert not list(self.home.rglob("fault.log")), done.stderr
        assert "Traceback" not in done.stderr
        assert (done.stdout + done.stderr).strip()
        return done

    def says_the_same(self, words: str) -> None:
        """Run a command in all code pages: each has a question mark for each letter that it lacks, and plain signs."""
        for language in LANGUAGES:
            whole = self.run(words, "utf-8", language)
            said = whole.stdout + whole.stderr
            for page in PAGES:
                done = self.run(words, page, language)
                assert done.returncode == whole.returncode
                lacking = [sign for sign in said if not (SIGNS.match(sign) or sign.encode(page, "ignore"))]
                assert (done.stdout + done.stderr).count("?") == said.count("?") + len(lacking)

    def helps(self, words: str) -> None:
        """Print the help of a command, which click does, in all code pages."""
        for language, page in product(LANGUAGES, PAGES):
            assert self.run(f"{words} --help", page, language).returncode == 0
