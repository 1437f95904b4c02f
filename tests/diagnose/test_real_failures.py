"""Sixty setups that fail for real: what the first remedy says is done in them, and the same line works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from loopback import LoopbackIndex, with_code

TORCH = "https://download.pytorch.org/whl"
ORG = "org"  # a remedy that names this address is no link
PYPI = f"https://pypi.{ORG}/simple"
STANDS_FOR = {"pypi": PYPI, "torch": f"{TORCH}/cpu", "other": f"{TORCH}/cu118", "gone": f"{TORCH}/cu127"}
HAD = "2.13.0"  # the release of torch that stands for whichever a remedy names


class Failure(NamedTuple):
    """A line that fails, and how it comes to that.

    `looked_up` tells what mends it by public documentation, written down before our answer was seen. `setup` makes the
    place; `shell` (exports, limits) holds for the line, the remedy and the repeated line, but is not in the log. `wrap`
    runs the whole in a namespace or as another user; `wheels` are put on indexes of our own, for what cannot be had.
    `step` is what following a remedy's words amounts to, where they match `words`; `proof` stands for the line where the
    remedy replaces it, and `after` is what changes outside, as a server that is well again.
    """

    name: str
    looked_up: str
    line: str
    setup: str = ""
    shell: str = ""
    wrap: str = "sh ./{}"
    wheels: tuple[dict, ...] = ()
    words: str = ""
    step: str = ""
    proof: str = ""
    after: str = ""


class Answer(NamedTuple):
    """What the assistant said to a failure, and what came of its first remedy."""

    log: str
    key: str
    text: str
    commands: str
    mended: bool
    printed: str


class Place:
    """A folder with an environment `.venv`, a home, and indexes that stand for torch's and PyPI's where wheels are made."""

    def __init__(self, folder: Path, cache: Path, failure: Failure) -> None:
        self.folder, self.failure = folder, failure
        tools = folder / "tools"
        for made in (tools, folder / "home", *(folder / "indexes" / name for name in STANDS_FOR)):
            made.mkdir(parents=True)
        for tool in ("uv", "assistant"):
            (tools / tool).symlink_to(Path(sys.executable).parent / tool)
        base = Path(os.path.realpath(sys.executable)).parent
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV"))}
        self.env |= {
            "PATH": f"{folder}/.venv/bin:{tools}:{base}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(folder / "home"),
            "VIRTUAL_ENV": str(folder / ".venv"),
            "UV_CACHE_DIR": str(cache),
            "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_RETRIES": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "UV_HTTP_RETRIES": "0",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
        }
        self.indexes = {name: LoopbackIndex(folder / "indexes" / name) for name in STANDS_FOR}
        self.env |= {f"{name.upper()}_INDEX": index.url for name, index in self.indexes.items()}
        self.stands_for = {}
        if failure.wheels:
            self.stands_for = {self.indexes[name].url: known for name, known in STANDS_FOR.items()}
            self.env |= {"PIP_FIND_LINKS": "", "UV_FIND_LINKS": ""}
        for wheel in failure.wheels:
            more = {key: wheel[key] for key in ("tag", "requires") if key in wheel}
            path = self.indexes[wheel["index"]].add(wheel["name"], wheel["version"], **more)
            module = wheel.get("module", wheel["name"].replace("-", "_"))
            if {"module", "code"} & set(wheel):
                with_code(path, module, wheel.get("code", ""))

    def run(self, script: str, wrap: str = "sh ./{}", **env: str) -> tuple[int, str]:
        """Run lines in one shell; give its exit code and what it printed, with the addresses it stands for."""
        for own, known in self.stands_for.items():
            script = script.replace(known, own)
        prelude = 'new() { uv venv -q --seed --clear --python 3.11 .venv; [ $# = 0 ] || uv pip install -q "$@"; }\n'
        (self.folder / "tools" / "script").write_text(prelude + script, encoding="utf-8")
        command = wrap.format("tools/script")
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self.env | env,
            timeout=400,
            stdin=subprocess.DEVNULL,
        )
        text = (done.stdout + done.stderr).decode(errors="replace")
        for own, known in self.stands_for.items():
            text = text.replace(own, known)
        return done.returncode, text

    def answer(self) -> Answer:
        """Let the line fail, ask the assistant, do what its first remedy says, and repeat the line."""
        failure = self.failure
        code, text = self.run("set -e\n" + failure.setup)
        assert code == 0, text
        shell = failure.shell + "\n"
        code, text = self.run(shell + failure.line, failure.wrap)
        assert code != 0, text
        log = f"$ {failure.line}\n{text}"
        (self.folder / "tools" / "line.log").write_text(log, encoding="utf-8")
        code, said = self.run("assistant diagnose tools/line.log --json", PYTHONPATH="", COLUMNS="80")
        causes = json.loads(said)["diagnoses"] if code == 0 else []
        if not causes or not causes[0]["remedies"]:
            return Answer(log, "", said, "", mended=False, printed="")
        remedy = causes[0]["remedies"][0]
        commands = self.commands(remedy)
        if failure.after:
            self.run("set -e\n" + failure.after)
        pypi = self.indexes["pypi"].url
        index = {"PIP_INDEX_URL": pypi, "UV_DEFAULT_INDEX": pypi} if failure.wheels else {}
        mending = shell + "set -e\n" + "\n".join(commands) + "\nset +e\n" + (failure.proof or failure.line)
        code, printed = self.run(mending, failure.wrap, **index)
        return Answer(log, causes[0]["key"], remedy["text"], "\n".join(commands), code == 0 and bool(commands), printed)

    def commands(self, remedy: dict) -> list[str]:
        """Give what a remedy's reader types here, with the torch that can be had in the place of the one it names."""
        commands = list(remedy["commands"])
        if remedy["plan"] and not commands:
            index = remedy["plan"]["index_url"]
            packages = " ".join(f'"{one}"' for one in remedy["plan"]["requirements"])
            commands = [f"uv pip install {packages}" + (f" --default-index {index}" if index else "")]
        if not self.failure.wheels:
            commands = [re.sub(rf"\s--(?:default-|extra-)?index(?:-url)? {TORCH}\S*", "", each) for each in commands]
            commands = [re.sub(r"(?<![\w-])torch(==[\w.+]+)?(?=[\s\"]|$)(?<! -c \"import torch)", r"torch", each) for each in commands]
            commands = [re.sub(r"((?:pip|uv add).*\s\"?)torch(?=[\s\"]|$)", rf"\1torch=={HAD}", each) for each in commands]
        commands = [re.sub(r"\bsudo ", "", each) for each in commands if "pip show" not in each]
        variables = [f"export {name}='{value}'" for name, value in remedy["env"].items()]
        words = "\n".join([remedy["text"], *commands])
        by_hand = bool(self.failure.words) and re.search(self.failure.words, words, re.IGNORECASE)
        kept = [each for each in commands if not re.match(r"(?:apt|apt-get|brew|winget)\b", each)]
        return variables + kept + ([self.failure.step] if by_hand else [])


FAILURES = tomllib.loads((Path(__file__).parent / "real_failures.toml").read_text(encoding="utf-8"))
