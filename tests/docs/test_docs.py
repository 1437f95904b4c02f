"""The documentation's links lead somewhere, and its commands do what they say."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import forked
import onnx
import pytest
from onnx import TensorProto, helper

from assistant.catalog.tables import data_files, shipped_text
from assistant.detect import detect
from assistant.diagnose.rules import load_rules
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped
from assistant.model.record import to_json

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "written" not in path.parts)
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
ADDRESS = r"https?://[^\s;,)>]+"
TEXTS = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CHANGELOG.md", *PAGES]
HUB, CLUSTERS = "tests/browser/test_hub.py", "tests/export/test_clusters.py"
COURSE = "tests/labs/test_course.py"
HOSTS = "tests/collection/test_hosts.py"
# What another test runs, or this run is; each is named with the file that does it.
BUNDLE = "tests/bundle/test_bundle.py"
RELEASE, WHEEL = "tests/shipping/test_release.py", "tests/shipping/test_wheel.py"
ELSEWHERE = {
    "assistant bundle make stick --machines class.jsonl": BUNDLE,
    "assistant bundle make stick --machine windows11-rtx3060 --here": BUNDLE,
    "assistant bundle check stick": BUNDLE,
    "assistant bundle serve stick --host 192.168.1.10": BUNDLE,
    "pip install --index-url http://192.168.1.10:8080/simple/ --trusted-host 192.168.1.10 numpy": BUNDLE,
    "sh start.sh": "tests/bundle/test_start.py",
    'pip install "torch-setup-assistant[course,onnxruntime]"': COURSE,
    "assistant labs prepare --shared /srv/labs --labs cpu-build --labs numpy-abi": COURSE,
    "assistant labs course gpu-course --roster roster.csv --labs cpu-build --labs numpy-abi": COURSE,
    "cd gpu-course": COURSE,
    'nbgrader generate_assignment "*"': COURSE,
    'nbgrader autograde "*"': COURSE,
    'nbgrader generate_feedback "*"': COURSE,
    "nbgrader export": COURSE,
    "assistant labs course gpu-course --roster roster.csv --exchange /srv/exchange": COURSE,
    "pip install ansible-core": HOSTS,
    "ansible-galaxy collection install ./ansible/ansible_collections/torch_setup/assistant": HOSTS,
    "ansible-playbook -i hosts.ini torch_setup.assistant.site -e @many.yml": HOSTS,
    "ansible-doc -t module torch_setup.assistant.assistant_setup": "tests/collection/test_modules.py",
    "uvx torch-setup-assistant plan": WHEEL,
    "uvx torch-setup-assistant diagnose error.log": WHEEL,
    'uvx "torch-setup-assistant[lab]" lab': WHEEL,
    "uv run release/make.py dist": RELEASE,
    "assistant install --target /opt/pytorch --prefix-kernel": HUB,
    'pip install "torch-setup-assistant[lab]"': HUB,
    'sudo /opt/tljh/user/bin/pip install "torch-setup-assistant[lab]"': HUB,
    "sudo /opt/tljh/user/bin/assistant install --target /opt/pytorch --prefix-kernel /opt/tljh/user": HUB,
    "assistant export lmod slurm apptainer pylock.toml report.md --to cluster": CLUSTERS,
    "module use cluster/modulefiles": CLUSTERS,
    "module load pytorch": CLUSTERS,
    "cd cluster": CLUSTERS,
    "apptainer build torch-cu130.sif apptainer.def": "tests/export/test_tools.py",
    "apptainer run --nv torch-cu130.sif train.py": "tests/export/test_tools.py",
    "python3 start.py": "tests/browser/test_lab_opens.py",
    "python3 start.py test": ".ci/run",
    "python3 start.py test --quick": "tests/conftest.py",
    "python3 start.py bench detect_speed": "tests/start/test_bench.py",
    "uv run docs/lite/build.py site": "tests/browser/test_lite.py",
    "python3 start.py setup --yes --target ~/torch": "tests/test_journey.py",
    "python3 start.py plan --pin whisperx": "tests/session/test_joint.py",
    "python3 start.py plan -r path/to/project": "tests/cli/test_project_option.py",
    "python3 start.py recipes list": "tests/cli/test_cli_recipes.py",
    "python3 start.py install --for ultralytics": "tests/plan/test_recipes.py",
    "python3 start.py fit --parameters 8B --bits 4": "tests/cli/test_cli_recipes.py",
    **dict.fromkeys(
        (
            "assistant detect --replay linux-ubuntu2404-rtx4090 --record classroom-pc.json",
            "assistant machines test classroom-pc.json",
            "assistant rules new vpn-cuts-downloads",
            "assistant rules test vpn-cuts-downloads.toml",
            "assistant diagnose vpn.log --rules vpn-cuts-downloads.toml",
            "assistant doctor --replay linux-ubuntu2404-rtx4090 --rules vpn-cuts-downloads.toml",
        ),
        "tests/docs/test_worked_examples.py",
    ),
    "assistant envs --all": "tests/session/test_environments.py",
    "assistant envs --check ~/webui/venv": "tests/session/test_environments.py",
    "assistant envs --mend ~/webui/venv": "tests/session/test_environments.py",
    "assistant envs --undo ~/webui/venv": "tests/session/test_environments.py",
    "assistant install -r path/to/project --target ~/torch": "tests/cli/test_project_option.py",
    "assistant setup -r pyproject.toml --extra train -r notebook.ipynb": "tests/cli/test_project_option.py",
}


def commands(text):
    """List the lines that a reader is told to type."""
    typed = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    plain = re.findall(r"^(python3 start\.py\b[^#\n]*)", text, re.MULTILINE)
    return [line.removeprefix("$ ") for block in typed for line in block.splitlines()] + [
        line.strip() for line in plain
    ]


@pytest.fixture(scope="module")
def place(large_folder):
    """Make the folder in which the pages' commands run, with the files that they name."""
    folder = large_folder("reader")
    machine = to_json(detect(ReplayHost(load("linux-ubuntu2404-rtx4090"))).machine)
    (folder / "machine.json").write_text(machine)
    (folder / "machines.jsonl").write_text(f"{machine}\n{machine}\n")
    (folder / "requirements.txt").write_text("torch>=2.6\ntorchvision\n")
    (folder / "failure.log").write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    (folder / "learners").mkdir()
    learner = (ROOT / "notebooks" / "labs" / "10-driver-too-old.ipynb").read_text("utf-8")
    (folder / "learners" / "ann.ipynb").write_text(learner)
    shape = ["batch", 3, "height", "width"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", values[:1], values[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )
    return folder


def run(line, folder):
    """Run one command as a reader does, in a home of the folder's own."""
    words = shlex.split(line)
    assert words[0] == "assistant", f"{line}: name in ELSEWHERE which test runs it"
    homes = {name: str(folder / "home") for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    return forked.run(*words[1:], cwd=folder, env={**os.environ, **homes, "LANGUAGE": "en"})


# 1 is the answer of a command that found something: a plan that no index confirms, a check, a lab not mended yet.
MAY_FAIL = ("assistant doctor", "assistant labs check", "assistant catalog check")


@pytest.mark.process
def test_every_command_of_the_pages_runs(place):
    """The tutorial's, then those of each page in its order; each line ends with 0, or with 1 where it reports."""
    first = ROOT / "docs" / "tutorial.md"
    lines: dict[str, Path] = {}
    for page in (first, *TEXTS):
        lines |= dict.fromkeys((line for line in commands(page.read_text("utf-8")) if line not in lines), page)
    pages = {
        page: [line for line in lines if lines[line] == page and line not in ELSEWHERE] for page in {first, *TEXTS}
    }
    assert len(lines) > 30
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())

    def typed(page):
        return [(line, run(line, place)) for line in pages[page]]

    answers = typed(first)
    with ThreadPoolExecutor() as pool:
        answers += itertools.chain(*pool.map(typed, pages.keys() - {first}))
    for line, done in answers:
        allowed = {0, 1} if line.startswith(MAY_FAIL) else {0}
        assert done.returncode in allowed, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr


def prose_of(path):
    """Read a page, or what a notebook says between its code."""
    text = path.read_text("utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def anchors(text):
    """List the names under which a page's headings are reached."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    headings = re.findall(r"^#{1,6} +(.+?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_into_the_project_lead_somewhere(path):
    """Every relative link, heading, picture and named file is there, or of the reference that the build writes."""
    written = ROOT / "docs" / "reference" / "written"
    prose = prose_of(path)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        name, _sign, heading = link.partition("#")
        if "://" not in link:
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target.exists() or written in target.parents, link
            if heading and written not in target.parents:  # the build looks into what it writes
                assert heading in anchors(target.read_text("utf-8")), link
    for named in re.findall(r"`((?:assistant|notebooks|docs|tests)/[\w./-]+)`", prose):
        assert (ROOT / named).exists(), named


def test_external_addresses_are_well_formed_and_named_once():
    """In prose, tables, rules and machines each is https with a host of several words; no source names it twice."""
    tables = [table for name in data_files() for table in json.loads(shipped_text(name)).values()]
    groups = [
        *((path.name, [prose_of(path)]) for path in (*TEXTS, *NOTEBOOKS)),
        *((table["source"][:30], [table["source"]]) for table in tables),
        *((rule.key, rule.sources) for rule in load_rules().rules),
        *((name, [load(name).source]) for name in shipped()),
    ]
    for name, sources in groups:
        found = [address for source in sources for address in re.findall(ADDRESS, re.sub(r"`[^`]*`", "", source))]
        for address in found:
            parts = urlsplit(address)
            assert parts.scheme == "https", f"{name}: {address}"
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), f"{name}: {address}"
            assert not re.search(r"[\s\"<>{}|\\^]|[.,;:]$", address), f"{name}: {address}"
        assert name.endswith((".md", ".ipynb")) or len(set(found)) == len(found), name


@pytest.mark.heavy
def test_no_server_says_that_a_page_is_gone(tmp_path):
    """Every external address of the documentation is asked; where none can be, that is said, and nothing is claimed."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "sphinx",
        "-q",
        "-b",
        "linkcheck",
        str(ROOT / "docs"),
        str(tmp_path),
    ]
    subprocess.run(command, capture_output=True, check=False)
    asked = [json.loads(line) for line in (tmp_path / "output.json").read_text("utf-8").splitlines()]
    checked = [link for link in asked if link["uri"].startswith("http") and link["status"] != "unchecked"]
    assert len(checked) > 100
    gone = [f"{link['uri']}: {link['info']}" for link in checked if re.match(r"(404|410) ", link["info"])]
    assert not gone, "\n".join(gone)
    answered = [link for link in checked if link["status"] != "broken" or re.match(r"\d{3} ", link["info"])]
    if not answered:
        pytest.xfail(f"There is no network: none of {len(checked)} addresses could be asked.")
