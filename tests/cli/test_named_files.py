"""Whatever has saved a file, an option that takes it reads it: PowerShell's `>`, Notepad, a Chinese code page."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import forked
import pytest
from export.setups import SETUP
from tables import sampled

from assistant.cli import cli
from assistant.export.config import config_text
from assistant.machines import load
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace, to_json
from assistant_addons.classroom.folder import Bundle, Kind, write_bundle

Run = Callable[..., subprocess.CompletedProcess[str]]
ENCODINGS = ("utf-16", "utf-8-sig", "utf-16-le", "utf-16-be", "gbk")  # utf-16 writes the mark
MACHINE = {
    "os": "windows",
    "os_version": "Windows 11 专业版",
    "python": "3.12.4",
    "gpus": [{"vendor": "amd", "name": "AMD Radeon RX 7800 XT 显卡", "vram_gb": 16}],
}
LOG = "ImportError: libd3d12.so: cannot open shared object file: 没有那个文件或目录\n"
SHAPE = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
SHAPE |= {"intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu", "torch_dtype": "bfloat16"}
TEXTS = {
    "machine": json.dumps(MACHINE, ensure_ascii=False, indent=2),
    "machines": "".join(
        json.dumps({**MACHINE, "os_version": name}, ensure_ascii=False) + "\n" for name in ("专业版", "家庭版")
    ),
    "recording": to_json(replace(load("windows11-two-nvidia"), label="实验室的电脑"), indent=1),
    "config": config_text(SETUP).replace("/home/jane", "/home/张三"),
    "shape": json.dumps({**SHAPE, "_name_or_path": "模型/羊驼"}, ensure_ascii=False),
    "log": LOG,
    "logs": json.dumps({"log": LOG}, ensure_ascii=False) + "\n" + json.dumps({"log": "一切正常"}, ensure_ascii=False),
    "list": "# 这个项目需要的软件包，由我自己手工整理，版本不要随便改动\nnumpy\n这一行 不是软件包\n",
    "report": "PyTorch version: 2.6.0\nIs debug build: False\nOS: Windows 11 专业版\nPython version: 3.12.3\n",
}
RX = "--replay windows11-rx7800xt"
# Of each command and option that reads a file: which text it is given, and what else is typed. "-" is the file itself.
READ = {
    ("setup", "-r"): ("list", "--yes --offline --backend cpu --target {new}"),
    ("install", "-r"): ("list", "--dry-run --offline --backend cpu --target {new}"),
    ("detect", "--replay"): ("recording", "--json"),
    ("detect", "--from"): ("report", "--json"),
    ("plan", "--machine"): ("machine", "--why"),
    ("plan", "--machines"): ("machines", ""),
    ("plan", "--replay"): ("recording", "--json"),
    ("plan", "-r"): ("list", f"--offline --json {RX}"),
    ("recipes plan", "--machine"): ("machine", "comfyui --offline"),
    ("recipes plan", "--replay"): ("recording", "comfyui --offline"),
    ("recipes plan", "-r"): ("list", f"comfyui --offline {RX}"),
    ("fit", "--config"): ("shape", RX),
    ("fit", "--machine"): ("machine", "--parameters 8B"),
    ("fit", "--replay"): ("recording", "--parameters 8B"),
    ("bundle make", "--machines"): ("machines", "{new} --offline"),
    ("bundle make", "--machine"): ("machine", "{new} --offline"),
    ("diagnose", "log"): ("log", "--replay linux-arch-rx6700xt-directml"),
    ("diagnose", "--batch"): ("logs", ""),
    ("diagnose", "--machine"): ("machine", "{log}"),
    ("diagnose", "--replay"): ("recording", "{log}"),
    ("doctor", "--replay"): ("recording", ""),
    ("apply", "config"): ("config", RX),
    ("apply", "--replay"): ("recording", "{config}"),
    ("check", "config"): ("config", f"--no-verify {RX}"),
    ("check", "--replay"): ("recording", "{config} --no-verify"),
}
NO_TEXT = {  # written, or no text
    ("detect", "--record"),
    ("diagnose", "--report"),
    ("bundle make", "folder"),
    ("bundle check", "folder"),
    ("bundle serve", "folder"),
    ("bundle install", "folder"),
    ("diagnose", "--share"),
    ("onnx check", "model"),
    ("onnx convert", "model"),
    ("onnx convert", "--to"),
    ("onnx convert", "--inputs"),
    ("onnx try", "model"),
    ("onnx try", "--against"),
    ("onnx try", "--inputs"),
    ("labs check", "folder"),
    ("labs notebooks", "folder"),
}
PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.15.0", python="3.12")
ABOUT = {"title": "CPU", "lock": "pylock.toml", "python": "3.12", "platform": "linux-x86_64"}
CPU = Kind(key="cpu", machines=("pc",), plan=PLAN, machine=Machine(), **ABOUT)
NO_FILE = {"key", "name", "table", "formats", "jupyter_arguments"}  # arguments that name something else


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs a command in a home of its own, with the files that it is given beside the others."""
    for name in ("log", "config"):
        (tmp_path / name).write_text(TEXTS[name], encoding="utf-8")
    homes = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    files = {name: tmp_path / name for name in ("log", "config", "new", "bundle")}
    files["bundle"].mkdir()
    write_bundle(files["bundle"], Bundle(kinds=(CPU,)))

    def runner(command: str, option: str, file: str, more: str) -> subprocess.CompletedProcess[str]:
        named = [option, file] if option.startswith("-") else [file]
        words = [*command.split(), *(word.format(**files) for word in more.split()), *named]
        return forked.run(*words, env={**kept, **homes, **nowhere, "LANGUAGE": "en", "COLUMNS": "300"}, cwd=tmp_path)

    return runner


def parameters(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield each command with each of its arguments, and with each option that says that it takes a file."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from parameters(command, f"{before}{name} ")
            continue
        for one in command.params:
            if isinstance(one, click.Argument) and one.name not in NO_FILE:
                yield f"{before}{name}", str(one.name)
            elif isinstance(one, click.Option) and re.search(r"FILE|\.\w+$", one.metavar or ""):
                yield f"{before}{name}", one.opts[0]


def test_no_option_is_forgotten() -> None:
    """A new option that takes a file is read in every encoding, or it is said why not."""
    assert sorted(parameters()) == sorted({*READ, *NO_TEXT})


@pytest.mark.process
@pytest.mark.parametrize("encoding", sampled(ENCODINGS, len(ENCODINGS)))
@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(*row, marks=pytest.mark.full if row[0] == "recipes plan" else ()) for row in READ],  # plan's own
)
def test_a_file_is_read_in_any_encoding(run: Run, tmp_path: Path, command: str, option: str, encoding: str) -> None:
    """The answer is the same as to UTF-8; what PowerShell writes stands for all encodings in the usual run."""
    which, more = READ[command, option]
    text = TEXTS[which].replace("\n", "\r\n")
    name = "given.json" if which == "machine" else "given.txt"
    (tmp_path / name).write_bytes(text.encode())
    whole = run(command, option, name, more)
    assert "given" not in whole.stderr, whole.stderr
    assert whole.stdout or "Resolving for" in whole.stderr
    (tmp_path / name).write_bytes(text.encode(encoding))
    done = run(command, option, name, more)
    assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, whole.stderr)
