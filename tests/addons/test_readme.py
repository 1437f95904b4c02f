"""The README is short and true: its commands work, its table is the planner's, and the Chinese one shows the same."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import forked
import onnx
import pytest
from addons.onnx.traps import trap
from loopback import LoopbackIndex
from support import SYSTEMS, Cell, matrix
from tables import each

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = ((ROOT / name).read_text("utf-8") for name in ("README.md", "README.zh-CN.md"))
PREFIX = "python3 start.py "
# What runs elsewhere: `start.py` and uv in tests/start and tests/browser, `setup` in the fixture `cpu_setup`.
ELSEWHERE = ["python3 start.py", "uv run start.py", f"{PREFIX}setup --yes", f"{PREFIX}test"]


def commands(text: str) -> list[str]:
    """List what a reader is asked to type."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.partition("  #")[0].rstrip() for block in blocks for line in block.splitlines()]


def pictures(text: str) -> list[str]:
    """List the pictures."""
    return re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)


def builds(text: str) -> list[list[str]]:
    """Return the rows of the table of cards: the card, then a build for each system."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in rows if len(row) == len(SYSTEMS) + 1][2:]


@each("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_it_is_short_and_begins_with_a_picture(text: str) -> None:
    """At most 120 lines, and a picture among the first 20."""
    lines = text.splitlines()
    assert len(lines) <= 120
    assert pictures("\n".join(lines[:20]))
    assert all((ROOT / picture).is_file() for picture in pictures(text))


def test_both_readmes_show_the_same() -> None:
    """The same commands, pictures and builds, and each leads to the other."""
    assert commands(CHINESE) == commands(ENGLISH)
    assert [picture.replace("-zh.png", ".png") for picture in pictures(CHINESE)] == pictures(ENGLISH)
    assert [row[1:] for row in builds(CHINESE)] == [row[1:] for row in builds(ENGLISH)]
    assert "(README.zh-CN.md)" in ENGLISH
    assert "(README.md)" in CHINESE


def build(cell: Cell) -> str:
    """Write a build as the table does."""
    if cell.plan is None:
        return ""
    named = {"directml": " DirectML", "amd-index": " ROCm", "pypi": " MPS"}
    return cell.plan.torch + named.get(cell.plan.variant, f"+{cell.plan.variant}")


def test_the_table_is_the_planners() -> None:
    """Each family of cards, named in brackets, is in one row and gets what the planner says."""
    planned: dict[str, set[tuple[str, ...]]] = {}
    for family, cells in itertools.groupby(matrix(), key=lambda cell: cell.family.family):
        planned.setdefault(family.partition(" (")[0], set()).add(tuple(map(build, cells)))
    shown = [
        (family, {tuple(row[1:])})
        for row in builds(ENGLISH)
        for family in re.search(r"\((.+)\)$", row[0])[1].split(", ")
    ]
    assert sorted(family for family, _builds in shown) == sorted(planned)
    assert dict(shown) == planned


def test_each_command_has_a_test() -> None:
    """The two for everybody are parsed as such; uv's own lines are those that a job on GitHub runs."""
    typed = [line for line in commands(ENGLISH) if not line.startswith(PREFIX) or line in ELSEWHERE]
    job = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    assert [line for line in typed if line not in ELSEWHERE] == [line for line in typed if f"{line}\n" in job]
    assert sorted(line for line in typed if line in ELSEWHERE) == sorted(ELSEWHERE)


def test_the_setup_ends_verified(cpu_setup: dict) -> None:
    """The environment of the tests was made by `setup --yes`, which wrote the files, too."""
    assert {check["status"] for check in cpu_setup["report"]["checks"]} == {"passed"}
    assert cpu_setup["exported"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a reader's log and model."""
    folder = tmp_path_factory.mktemp("reader")
    said = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
    (folder / "error.log").write_text(said, encoding="utf-8")
    onnx.save(trap("tiny epsilon"), folder / "model.onnx")
    return folder


ANSWERS = {
    "doctor": "Python",
    "doctor error.log": "The NVIDIA driver is too old",
    "plan --pin whisperx": "whisperx 3.8.6 needs torch",
    "onnx check model.onnx": "DirectML",
    "onnx convert model.onnx": "FP16",
}


@pytest.mark.process
@pytest.mark.parametrize(
    "line", [line for line in commands(ENGLISH) if line.startswith(PREFIX) and line not in ELSEWHERE]
)
def test_a_command_answers(line: str, place: Path, loopback_index: LoopbackIndex) -> None:
    """In a home of its own, with an index of small wheels and nothing else to be reached."""
    for name, version in {"torch": "2.8.0", "numpy": "2.0", "onnx": "1.23", "onnxruntime": "1.31"}.items():
        loopback_index.add(name, version)
    loopback_index.add("whisperx", "3.8.6", requires=("torch~=2.8.0",))
    env = forked.at_home(place / "home", loopback_index.url, HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1")
    typed = line.removeprefix(PREFIX)
    done = forked.run(*typed.split(), cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    assert ANSWERS[typed] in done.stdout
