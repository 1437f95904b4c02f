"""The documentation's links lead somewhere, and its commands do what they say."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import forked
import onnx
import pytest
from addons.onnx.traps import trap

from assistant.detect import detect
from assistant.diagnose.rules import load_rules
from assistant.host.base import ReplayHost
from assistant.machines import load
from assistant.model.record import to_json

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"  # written when the site is built, which follows its links
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if REFERENCE not in path.parents)
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
TEXTS = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CHANGELOG.md", *PAGES]
HOMES = ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")
ADDRESS = r"https?://[^\s;,)>]+"
# What another test runs, or this run is; each is named with the file that does it.
BUNDLE, WHEEL = "tests/addons/classroom/test_bundle.py", "tests/addons/test_wheel.py"
PROJECT = "tests/addons/projects/test_project_option.py"
ENVIRONMENTS, COLLECTION = "tests/session/test_environments.py", "tests/collection/test_collection.py"
ELSEWHERE = {
    "python3 start.py": "tests/browser/test_lab_opens.py",
    "python3 start.py test": ".ci/run",
    "python3 start.py bench detect_speed": "tests/start/test_bench.py",
    "python -m sphinx -W docs site": "tests/addons/test_site.py",
    **dict.fromkeys(
        (
            "assistant labs start render-group --learner ann",
            "cd labs-work/render-group && . ./activate",
            "python container.py",
            'assistant labs cause --is group-missing --because "the device has group 992"',
            "assistant labs hint",
            "assistant labs check",
            "assistant labs table results",
        ),
        "tests/addons/labs/test_play.py",
    ),
    "assistant guard ~/ComfyUI/venv": "tests/install/test_guards.py",
    "assistant guard ~/ComfyUI/venv --off": "tests/install/test_guards.py",
    "assistant guard ~/my-project": "tests/install/test_projects.py",
    "assistant plan --into ~/ComfyUI/venv --pin whisperx": "tests/install/test_guards.py",
    "assistant bundle make stick --machines class.jsonl": BUNDLE,
    "assistant bundle make stick --machine windows11-rtx3060 --here": BUNDLE,
    "assistant bundle check stick": BUNDLE,
    "assistant bundle serve stick --host 192.168.1.10": BUNDLE,
    "pip install --index-url http://192.168.1.10:8080/simple/ --trusted-host 192.168.1.10 numpy": BUNDLE,
    "sh start.sh": "tests/addons/classroom/test_start.py",
    "pip install ansible-core": COLLECTION,
    "ansible-galaxy collection install ./ansible/ansible_collections/torch_setup/assistant": COLLECTION,
    "ansible-playbook -i hosts.ini torch_setup.assistant.table -e torch_setup_table=hosts.csv": COLLECTION,
    "ansible-doc -t module torch_setup.assistant.assistant_setup": COLLECTION,
    "uvx torch-setup-assistant plan": WHEEL,
    "uvx torch-setup-assistant doctor error.log": WHEEL,
    'uvx "torch-setup-assistant[lab]" lab': WHEEL,
    "uv run release/make.py dist": "tests/addons/test_release.py",
    "assistant setup --yes --backend cpu --target torch-env --to exported": "tests/conftest.py",
    "assistant envs --all": ENVIRONMENTS,
    "assistant envs --check ~/webui/venv": ENVIRONMENTS,
    "assistant envs --mend ~/webui/venv": ENVIRONMENTS,
    "assistant envs --undo ~/webui/venv": ENVIRONMENTS,
    "assistant install -r path/to/project --target ~/torch": PROJECT,
    "assistant setup -r pyproject.toml --extra train -r notebook.ipynb": PROJECT,
}
# 1 is the answer of a command that found something: a check, an index that cannot be asked.
MAY_FAIL = ("assistant doctor",)


def commands(text: str) -> list[str]:
    """List the lines that a reader is asked to type."""
    typed = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for block in typed for line in block.splitlines()]


@pytest.fixture(scope="module")
def place(large_folder: Callable[[str], Path], cpu_setup: dict[str, Any]) -> Path:
    """Make the folder in which the pages' commands run, with the files that they name, as `setup` has left it."""
    folder = large_folder("reader")
    exported = Path(cpu_setup["exported"][0]).parent
    shutil.copytree(exported, folder / "exported")
    (folder / "torch-env").symlink_to(cpu_setup["environment"]["path"])
    for home in filter(Path.exists, (exported.parent / name for name in HOMES)):
        shutil.copytree(home, folder / home.name)
    machine = to_json(detect(ReplayHost(load("linux-ubuntu2404-rtx4090"))).machine)
    (folder / "machine.json").write_text(machine)
    (folder / "machines.jsonl").write_text(f"{machine}\n{machine}\n")
    (folder / "requirements.txt").write_text("torch>=2.6\ntorchvision\n")
    (folder / "failure.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    onnx.save(trap("tiny epsilon"), folder / "model.onnx")
    return folder


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one command as a reader does, in a home of the folder's own."""
    place = {"torch-env": str((folder / "torch-env").resolve())}  # environments are known by where they are
    words = [place.get(word, word) for word in shlex.split(line)]
    assert words[0] == "assistant", f"{line}: name in ELSEWHERE which test runs it"
    homes = {name: str(folder / name) for name in HOMES}
    return forked.run(*words[1:], cwd=folder, env={**os.environ, **homes, "LANGUAGE": "en"})


def test_every_command_of_the_pages_runs(place: Path) -> None:
    """The tutorial's, then those of each page in its order; each line ends with 0, or with 1 where it reports."""
    first = ROOT / "docs" / "tutorial.md"
    lines: dict[str, Path] = {}
    for page in (first, *PAGES):
        for line in commands(page.read_text("utf-8")):
            lines.setdefault(line, page)
    pages = {
        page: [line for line in lines if lines[line] == page and line not in ELSEWHERE] for page in {first, *PAGES}
    }
    assert len(lines) > 30
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())

    def typed(page: Path) -> list[tuple[str, subprocess.CompletedProcess[str]]]:
        return [(line, run(line, place)) for line in pages[page]]

    answers = typed(first)
    with ThreadPoolExecutor() as pool:
        answers += itertools.chain(*pool.map(typed, pages.keys() - {first}))
    for line, done in answers:
        allowed = {0, 1} if line.startswith(MAY_FAIL) else {0}
        assert done.returncode in allowed, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr


def prose_of(path: Path) -> str:
    """Read a page, or what a notebook says between its code."""
    text = path.read_text("utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def anchors(text: str) -> set[str]:
    """List the names under which a page's headings are reached."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    headings = re.findall(r"^#{1,6} +(.+?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_into_the_project_lead_somewhere() -> None:
    """Every relative link, heading, picture and named file is there, or of the reference that the build writes."""
    keys = {rule.key for rule in load_rules().rules}
    missing = []
    for path in (*TEXTS, *NOTEBOOKS):
        prose = prose_of(path)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            name, _sign, heading = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            if "://" in link or REFERENCE in target.parents or (not name and heading in keys):
                continue
            if not target.exists() or (heading and heading not in anchors(target.read_text("utf-8"))):
                missing.append(f"{path.name}: {link}")
        named = re.findall(r"`((?:assistant|notebooks|docs|tests)/[\w./-]+)`", prose)
        missing += [f"{path.name}: {file}" for file in named if not (ROOT / file).exists()]
    assert missing == []
