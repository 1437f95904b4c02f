"""Setups that fail for real: what the first remedy says is done in them, and the same line works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from loopback import LoopbackIndex, with_code

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="drives and users are made as root"),
]
TORCH = "https://download.pytorch.org/whl"
ORG = "org"  # a remedy that names this address is no link
STANDS_FOR = {
    "pypi": f"https://pypi.{ORG}/simple",
    "torch": f"{TORCH}/cpu",
    "other": f"{TORCH}/cu118",
    "gone": f"{TORCH}/cu127",
}
HAD = "2.13.0"  # the release of torch that stands for whichever a remedy names


class Failure(NamedTuple):
    """A line that fails, and how it comes to that.

    `looked_up` tells what mends it by public documentation, written down before our answer was seen. `setup` makes the
    place; `shell` (exports, limits) holds for the line, the remedy and the repeated line, but is not in the log. `wrap`
    runs the whole in a namespace or as another user; `wheels` are put on indexes of our own, for what cannot be had.
    `step` is what following a remedy's words amounts to, where they match `words`; `proof` stands for the line where the
    remedy replaces it, and `after` is what changes outside, as a server that is well again. `unmended` tells why the
    first remedy does not mend it.
    """

    name: str
    looked_up: str
    line: str
    setup: str = ""
    shell: str = ""
    wrap: str = "sh ./{}"
    wheels: tuple[dict[str, str], ...] = ()
    words: str = ""
    step: str = ""
    proof: str = ""
    after: str = ""
    unmended: str = ""


class Place:
    """A folder with an environment `.venv`, a home, and indexes that stand for torch's and PyPI's where wheels are made."""

    def __init__(self, folder: Path, failure: Failure) -> None:
        self.folder, self.failure = folder, failure
        tools = folder / "tools"
        for made in (tools, folder / "pythons", folder / "home", *(folder / "indexes" / name for name in STANDS_FOR)):
            made.mkdir(parents=True)
        for tool in ("uv", "assistant"):
            (tools / tool).symlink_to(Path(sys.executable).parent / tool)
        for python in sorted(Path(sys.base_prefix).parent.glob("*3.*/bin/python3.*[0-9]")):
            if not (folder / "pythons" / python.name).exists():
                (folder / "pythons" / python.name).symlink_to(python)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV"))}
        self.env |= {
            "PATH": f"{folder}/.venv/bin:{tools}:{sys.base_prefix}/bin:{folder}/pythons:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(folder / "home"),
            "VIRTUAL_ENV": str(folder / ".venv"),
            "UV_CACHE_DIR": str(folder.parent / "real-failures-cache"),
            "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_HTTP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_RETRIES": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
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
            if {"module", "code"} & set(wheel):
                with_code(path, wheel.get("module", wheel["name"].replace("-", "_")), wheel.get("code", ""))

    def close(self) -> None:
        """Stop serving, and leave nothing behind: an environment with torch takes a gigabyte."""
        for index in self.indexes.values():
            index.close()
        shutil.rmtree(self.folder)

    def run(self, script: str, wrap: str = "sh ./{}", **env: str) -> tuple[int, str]:
        """Run lines in one shell; give its exit code and what it printed, with the addresses it stands for."""
        for own, known in self.stands_for.items():
            script = script.replace(known, own)
        prelude = 'new() { uv venv -q --seed --clear --python 3.11 .venv; [ $# = 0 ] || uv pip install -q "$@"; }\n'
        (self.folder / "tools" / "script").write_text(prelude + script, encoding="utf-8")
        done = subprocess.run(
            ["sh", "-c", wrap.format("tools/script")],
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

    def answer(self) -> tuple[bool, str]:
        """Let the line fail, ask the assistant, do what its first remedy says, repeat the line; give whether that works.

        The text tells what was printed, said and done.
        """
        failure, shell = self.failure, self.failure.shell + "\n"
        code, text = self.run("set -e\n" + failure.setup)
        assert code == 0, text
        code, text = self.run(shell + failure.line, failure.wrap)
        assert code != 0, text
        assert not failure.proof or self.run(shell + failure.proof, failure.wrap)[0] != 0, "works already"
        log = f"$ {failure.line}\n{text}"
        (self.folder / "tools" / "line.log").write_text(log, encoding="utf-8")
        code, said = self.run("assistant diagnose tools/line.log --json", PYTHONPATH="")
        assert code == 0, said
        answer = json.loads(said)
        step = answer.get("unexplained", {}).get("question")  # without a cause, what is to be done next
        remedy = next((cause["remedies"][0] for cause in answer["diagnoses"][:1]), step)
        commands = self.commands(remedy) if remedy else []
        if failure.after:
            self.run("set -e\n" + failure.after)
        pypi = self.indexes["pypi"].url
        index = {"PIP_INDEX_URL": pypi, "UV_DEFAULT_INDEX": pypi} if failure.wheels else {}
        mending = "\n".join([shell, "set -e", *commands, "set +e", failure.proof or failure.line])
        code, printed = self.run(mending, failure.wrap, **index) if commands else (1, "nothing to do")
        key = next((cause["key"] for cause in answer["diagnoses"]), "no cause")
        words = [log, f"=> {key}", remedy["text"] if remedy else said, *commands, "=>", printed]
        return code == 0, "\n".join(words)

    def commands(self, remedy: dict) -> list[str]:
        """Give what a remedy's reader types here, with the torch that can be had in the place of the one it names."""
        commands = [re.sub(r"^%pip", "python -m pip", each).replace("/data/", "$PWD/data/") for each in remedy["commands"]]
        if remedy["plan"] and not commands:
            index = remedy["plan"]["index_url"]
            packages = " ".join(f'"{one}"' for one in remedy["plan"]["requirements"])
            commands = [f"uv pip install {packages}" + (f" --default-index {index}" if index else "")]
        if not self.failure.wheels:
            commands = [re.sub(rf"\s--(?:default-|extra-)?index(?:-url)? {TORCH}\S*", "", each) for each in commands]
            named = re.compile(r"((?:pip|uv add).*[\s\"])torch(?:==[\w.+]+)?(?=[\s\"]|$)")
            companions = re.compile(r"(?<=\d)( \"?torch(?:vision|audio)==[\w.+]+\"?)+")
            commands = [companions.sub("", named.sub(rf"\1torch=={HAD}", each)) for each in commands]
        words = "\n".join([remedy["text"], *commands])
        by_hand = bool(self.failure.words) and re.search(self.failure.words, words, re.IGNORECASE)
        left_out = re.compile(r"(?:sudo )?(?:apt|apt-get|brew|winget|dnf|pacman)\b|.*pip show")
        typed = [each.replace("sudo ", "") for each in commands if not left_out.match(each)]
        variables = [f"export {name}='{value}'" for name, value in remedy["env"].items()]
        return variables + typed + ([self.failure.step] if by_hand else [])


TABLE = tomllib.loads(Path(__file__).with_name("real_failures.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """Give a folder that other users may read, as pytest's own may not be."""
    with tempfile.TemporaryDirectory(prefix="real-failures-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("failure", [Failure(name, **row) for name, row in TABLE.items()], ids=lambda each: each.name)
def test_the_first_remedy_mends_it(failure: Failure, shared_folder: Path) -> None:
    """What the first remedy says is done, and the line works."""
    place = Place(shared_folder / failure.name, failure)
    mended, told = place.answer()
    place.close()
    assert mended == (not failure.unmended), told


def test_nine_in_ten_are_mended() -> None:
    """The table does not fill with what is not mended."""
    assert len([row for row in TABLE.values() if "unmended" not in row]) >= 0.9 * len(TABLE)
