"""Setups that fail for real: what the first remedy says is done in them, and the same line works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from loopback import LoopbackIndex, with_code

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="drives and users are made as root"),
]
TABLE = tomllib.loads(Path(__file__).with_name("real_failures.toml").read_text(encoding="utf-8"))
TORCH = "https://download.pytorch.org/whl"
ORG = "org"  # a remedy that names this address is no link
STANDS_FOR = {"pypi": f"https://pypi.{ORG}/simple"}
STANDS_FOR |= {"torch": f"{TORCH}/cpu", "other": f"{TORCH}/cu118", "gone": f"{TORCH}/cu127"}
# How a remedy's commands are typed here, and what can be had in place of the torch and the Python that they name.
TYPED = ((r"^%pip", "python -m pip"), ("/data/", "$PWD/data/"), (r"\bsudo ", ""))
HAD = (
    (rf"\s--(?:default-|extra-)?index(?:-url)? {TORCH}\S*", ""),
    (r"(venv .*--python) 3[.\d]+", r"\1 3.11"),
    (r"((?:pip|uv add).*[\s\"])torch(?:==[\w.+]+)?(?=[\s\"]|$)", r"\1torch==2.13.0"),
    (r"(?<=\d)( \"?torch(?:vision|audio)==[\w.+]+\"?)+", ""),
)
LEFT_OUT = re.compile(r"(?:sudo )?(?:apt|apt-get|brew|winget|dnf|pacman|assistant)\b|.*pip show")
PROGRAMS = {f"pythons/{each.name}": each for each in Path(sys.base_prefix).parent.glob("*3.*/bin/python3.*[0-9]")}
PROGRAMS |= {f"tools/{name}": Path(sys.executable).with_name(name) for name in ("uv", "assistant")}
NEW = 'new() { uv venv -q --seed --clear --python 3.11 .venv; [ $# = 0 ] || uv pip install -q "$@"; }\n'
ENVIRONMENT = {
    "PATH": "{folder}/.venv/bin:{folder}/tools:{base}/bin:{folder}/pythons:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "{folder}/home",
    "VIRTUAL_ENV": "{folder}/.venv",
    "UV_CACHE_DIR": "{folder}/../uv-cache",
    "PIP_CACHE_DIR": "{folder}/pip-cache",
    "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
    "UV_PYTHON_DOWNLOADS": "never",
    "PIP_CONFIG_FILE": os.devnull,
    "COLUMNS": "200",
    "LC_ALL": "C.UTF-8",
}


class Place:
    """A folder with an environment `.venv`, a home, other Pythons, and indexes that stand for torch's and PyPI's."""

    def __init__(self, folder: Path, failure: dict[str, Any]) -> None:
        self.folder, self.failure = folder, defaultdict(str, failure)
        for name in ("tools", "pythons", "home", *(f"indexes/{name}" for name in STANDS_FOR)):
            (folder / name).mkdir(parents=True)
        for name, program in PROGRAMS.items():
            (folder / name).symlink_to(program)
        self.indexes = {name: LoopbackIndex(folder / "indexes" / name) for name in STANDS_FOR}
        not_here = ("UV_", "VIRTUAL_ENV", "XDG_", "JUPYTER_")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(not_here)}
        self.env |= {f"{name.upper()}_INDEX": index.url for name, index in self.indexes.items()}
        self.env |= {name: text.format(folder=folder, base=sys.base_prefix) for name, text in ENVIRONMENT.items()}
        has_wheels = "wheels" in failure
        self.stands_for = {self.indexes[name].url: known for name, known in STANDS_FOR.items() if has_wheels}
        if has_wheels:
            self.env |= {"LINKS": self.env["UV_FIND_LINKS"], "PIP_FIND_LINKS": "", "UV_FIND_LINKS": ""}
        for wheel in failure.get("wheels", ()):
            more = {key: wheel[key] for key in ("tag", "requires") if key in wheel}
            path = self.indexes[wheel["index"]].add(wheel["name"], wheel["version"], **more)
            if {"module", "code"} & set(wheel):
                with_code(path, wheel.get("module", wheel["name"].replace("-", "_")), wheel.get("code", ""))

    def run(self, script: str, wrap: str = "", **env: str) -> tuple[int, str]:
        """Run lines in one shell; give its exit code and what it printed, with the addresses it stands for."""
        for own, known in self.stands_for.items():
            script = script.replace(known, own)
        if self.stands_for:  # what a remedy names is there, too
            script = re.sub(rf"{TORCH}/\w+", self.indexes["torch"].url, script)
        (self.folder / "tools" / "script").write_text(NEW + script, encoding="utf-8")
        done = subprocess.run(
            ["sh", "-c", (wrap or "sh ./{}").format("tools/script")],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            cwd=self.folder,
            env=self.env | env,
        )
        text = (done.stdout + done.stderr).decode(errors="replace")
        for own, known in self.stands_for.items():
            text = text.replace(own, known)
        return done.returncode, text

    def answer(self) -> tuple[bool, str]:
        """Let the line fail, ask the assistant, do what its first remedy says; give whether it works then, and why."""
        line, proof, wrap = self.failure["line"], self.failure["proof"], self.failure["wrap"]
        shell = self.failure["shell"] + "\n"
        code, text = self.run("set -e\n" + self.failure["setup"])
        assert code == 0, text
        code, text = self.run(shell + line, wrap)
        assert code != 0, text
        assert not proof or self.run(shell + proof, wrap)[0] != 0, "it works already"
        (self.folder / "tools" / "line.log").write_text(f"$ {line}\n{text}", encoding="utf-8")
        answer = json.loads(self.run("assistant diagnose tools/line.log --json", PYTHONPATH="")[1])
        remedies = [cause["remedies"][0] for cause in answer["diagnoses"][:1]]
        unknown = answer.get("unexplained", {})  # without a cause, what is to be done next, or the best guess
        remedies += [unknown.get("question"), *(cause["remedies"][0] for cause in unknown.get("possible", ())[:1])]
        remedies = [remedy for remedy in remedies if remedy] or [None]
        commands = self.commands(remedies[0]) if remedies[0] else []
        self.run("set -e\n" + self.failure["after"])
        index = {}
        if self.failure["wheels"]:  # what a plan installs is there, too
            index = dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), self.indexes["pypi"].url)
            planned = (remedies[0] or {}).get("plan") or {"requirements": ()}
            pins = re.findall(r"[\w-]+==[\w.]+", "\n".join(commands)) if planned["requirements"] else []
            for name, _is, version in (each.partition("==") for each in (*planned["requirements"], *pins)):
                self.indexes["torch"].add(name, version or "1.0")
                self.indexes["pypi"].add(name, version or "1.0")
        mending = "\n".join([shell, "set -e", *commands, "set +e", proof or line])
        code, printed = self.run(mending, wrap, **index) if commands else (1, "nothing to do")
        said = [*(cause["key"] for cause in answer["diagnoses"]), str(remedies[0] and remedies[0]["text"])]
        return code == 0, "\n".join([f"$ {line}\n{text}", "=>", *said, "=>", *commands, "=>", printed])

    def commands(self, remedy: dict[str, Any]) -> list[str]:
        """Give what a remedy's reader types here, with the torch that can be had in the place of the one it names."""
        commands = [each for each in remedy["commands"] if not LEFT_OUT.match(each)]
        words = "\n".join([remedy["text"], *commands])
        by_hand = self.failure["words"] and re.search(self.failure["words"], words, re.IGNORECASE)
        if remedy["plan"] and not remedy["commands"]:
            packages, index = remedy["plan"]["requirements"], remedy["plan"]["index_url"]
            commands = [" ".join(["uv pip install", *packages, f"--default-index {index}" if index else ""])]
        for pattern, instead in TYPED if self.failure["wheels"] else TYPED + HAD:
            commands = [re.sub(pattern, instead, each) for each in commands]
        variables = [f"export {name}='{value}'" for name, value in remedy["env"].items()]
        return variables + ([self.failure["step"]] if by_hand else []) + commands


@pytest.mark.parametrize("name", TABLE)
def test_the_first_remedy_mends_it(name: str, tmp_path: Path) -> None:
    """What the first remedy says is done, and the line works."""
    place = Place(tmp_path, TABLE[name])
    mended, told = place.answer()
    for index in place.indexes.values():
        index.close()
    assert mended == ("unmended" not in TABLE[name]), told


def test_nine_in_ten_are_mended() -> None:
    """The table does not fill with what is not mended."""
    assert sum("unmended" not in row for row in TABLE.values()) >= 0.9 * len(TABLE)
