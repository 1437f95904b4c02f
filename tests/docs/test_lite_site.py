"""What the demo in the browser is made of, looked at without a browser; tests/browser/test_lite*.py open it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, parser
from packaging.utils import canonicalize_name

from assistant.host.live import LiveHost
from assistant.model.errors import BadInput
from assistant.model.record import with_words
from assistant.onnx import check_model
from assistant.onnx.targets import ordered
from assistant.session.actions import Simulate
from assistant.session.runner import LoopRunner
from assistant.session.session import Session
from assistant.session.state import Task

LITE = Path(__file__).parents[2] / "docs" / "lite"
LOADED = """
import json, sys
from assistant.session.gallery import exhibits
from assistant.wizard import open_wizard
open_wizard("linux-arch-rx9070xt")
from assistant.session.kits import package_for
exhibit = next(one for one in exhibits() if one.planning.choice)
package_for(exhibit.machine, exhibit.planning.choice, "a PC")
from pathlib import Path
from assistant.labs.in_page import run_in_page
run_in_page([sys.executable, "-m", "assistant", "plan", "--replay", "linux-arch-rx9070xt", "--why"], {}, Path.cwd())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""

# What the page for ONNX models does, with the same stand-ins for NumPy and the same protobuf, written in Python.
CHECKED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import no_numpy
no_numpy.stand_in()
import page
ways = [(file, target) for file in sys.argv[3:] for target in json.loads(page.targets())]
answers = [(file, target, json.loads(page.check(file, sys.argv[2], target, "en"))) for file, target in ways]
print(json.dumps([answers, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
# What a lesson's page does with the lines that a reader runs there.
TYPED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import typed
answers = [typed.answer(line, "en") for line in sys.argv[2:]]
print(json.dumps([answers, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
# Constants of every sort, sparse ones among them, a function to be opened and pads that decide where a node runs.
CONSTANTS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2, 3] x) => (float[2, 7] y)
<float[1] one = {1.5}, int64[4] pads = {0, -1, 0, 5}>
{
    two = Constant <value_float = 2.0> ()
    shape = Constant <value_ints = [2, 3]> ()
    a = Mul (x, two)
    b = Reshape (a, shape)
    c = Pad (b, pads)
    d = Celu (c)
    y = Mul (d, one)
}"""


def named(lines):
    """Give the names of packages that lines begin with."""
    return {canonicalize_name(found[0]) for line in lines if (found := re.match(r"[\w.-]+", line))}


@pytest.mark.process
def test_everything_that_the_demo_loads_is_in_its_list(tmp_path):
    """Those of the assistant's packages that the wizard and a lab's lines import, the site brings."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    owners = packages_distributions()
    loaded = {canonicalize_name(name) for module in json.loads(done.stdout) for name in owners.get(module, ())}
    listed = named((LITE / "requirements.txt").read_text("utf-8").splitlines())
    own = named(requires("torch-setup-assistant"))
    assert own & loaded == own & listed


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Give a folder of models: of constants, with sparse weights, networks that onnx brings, and what is no model."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(parser.parse_model(CONSTANTS), folder / "constants.onnx")
    model = parser.parse_model(CONSTANTS)
    held = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.5])
    model.graph.initializer.remove(next(one for one in model.graph.initializer if one.name == "one"))
    place = helper.make_tensor("", TensorProto.INT64, [1, 1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(held, place, [1]))
    onnx.save(model, folder / "sparse.onnx")
    for name in ("light_squeezenet.onnx", "light_inception_v1.onnx"):
        shutil.copy(Path(onnx.__file__).parent / "backend/test/data/light" / name, folder)
    (folder / "none.onnx").write_text("<!doctype html>")
    return folder


@pytest.fixture(scope="module")
def in_the_page(models):
    """Give what the page's Python answers for each model and target, and the modules that it has loaded by then."""
    names = sorted(file.name for file in models.glob("*.onnx"))
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    command = [sys.executable, "-c", CHECKED, LITE / "onnx", models, *names]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.process
def test_a_check_in_the_page_answers_as_the_command_does(models, in_the_page, monkeypatch):
    """Without NumPy, and with protobuf written in Python, the same comes out."""
    monkeypatch.chdir(models)
    told = {(name, target): answer for name, target, answer in in_the_page[0]}
    refused = {key: told.pop(key) for key in list(told) if key[0] == "none.onnx"}
    assert {target for _name, target in told} == set(ordered(None))
    for (name, target), answer in told.items():
        expected = json.loads(json.dumps(with_words(check_model(name, target))))
        assert answer["answer"] == expected, (name, target)
    with pytest.raises(BadInput) as refusal:
        check_model("none.onnx")
    for answer in refused.values():
        assert answer == {"error": str(refusal.value), "hint": str(refusal.value.hint)}


@pytest.mark.process
def test_everything_that_the_page_for_onnx_loads_is_in_its_lists(in_the_page):
    """The packages that a check imports are what the site brings and a start loads; NumPy's is the stand-in."""
    owners = packages_distributions()
    loaded = {canonicalize_name(owner) for module in in_the_page[1] for owner in owners.get(module, ())}
    listed = named((LITE / "onnx" / "requirements.txt").read_text("utf-8").splitlines())
    assert loaded & (named(requires("torch-setup-assistant")) | listed | {"protobuf"}) == listed | {"numpy"}
    started = re.search(r"const PACKAGES = (\[.+?\])", (LITE / "onnx" / "worker.js").read_text("utf-8"))
    assert json.loads(started[1]) == sorted(listed | {"torch-setup-assistant"})


def tables(texts):
    """Give the words of a page in English and in Chinese, by key."""
    found = re.findall(r"^  (?:en|zh_CN|\"zh-CN\"): \{\n(.*?)^  \},", texts, re.MULTILINE | re.DOTALL)
    return [dict(re.findall(r"^    (\w+):\s+\"(.+)\",$", table, re.MULTILINE)) for table in found]


@pytest.mark.parametrize(("page", "folder"), [("index.html", "start"), ("onnx.html", "onnx"), ("", "lessons")])
def test_each_page_has_all_its_words_in_both_languages(page, folder):
    """Each text that a page shows or its programs name is there in English and in Chinese, with the same values."""
    english, chinese = tables((LITE / folder / "texts.js").read_text("utf-8"))
    assert english
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key
    text, script = (LITE / page).read_text("utf-8") if page else "", (LITE / folder / "page.js").read_text("utf-8")
    shown = dict(re.findall(r"data-text=\"(\w+)\">([^<]+)<", text))
    assert {key: english[key] for key in shown} == shown
    assert set(re.findall(r"(?:\b(?:words|say)\(\"|\b(?:words|texts)\.(?!js\b))(\w+)", script)) <= set(english)


@pytest.fixture(scope="module")
def lesson_lines():
    """Give the lines of the lessons that can be run in their pages, by the pages' own pattern."""
    offered = re.search(r"^const RUNS_HERE = /(.+)/;$", (LITE / "lessons" / "page.js").read_text("utf-8"), re.MULTILINE)
    pages = sorted((LITE.parent / "lessons").glob("*.md"))
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines()]
    return [found[1] for line in lines if (found := re.match(offered[1], line))]


@pytest.mark.process
def test_the_lines_of_the_lessons_run_in_their_pages(lesson_lines, tmp_path):
    """Each one that is offered answers, and nothing but the packages that the page loads is needed for it."""
    assert len(lesson_lines) > 15
    command = [sys.executable, "-c", TYPED, LITE.parent, *lesson_lines]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    answers, modules = json.loads(done.stdout)
    for line, (status, printed) in zip(lesson_lines, answers, strict=True):
        assert status in {0, 1}, printed
        assert printed, line
    owners = packages_distributions()
    loaded = {canonicalize_name(owner) for module in modules for owner in owners.get(module, ())}
    brought = named((LITE / "requirements.txt").read_text("utf-8").splitlines()) | {"markupsafe", "pyyaml"}
    started = re.search(r"const PACKAGES = (\[.+?\])", (LITE / "lessons" / "worker.js").read_text("utf-8"))
    assert json.loads(started[1]) == sorted(loaded & brought | {"torch-setup-assistant"})


def test_a_session_without_threads_returns_first_and_then_works():
    """In an event loop a task begins after its start has returned, and the recorded machine gets its plan."""

    async def walk() -> Session:
        session = Session(LiveHost(), LoopRunner())
        session.dispatch(Simulate(machine="linux-arch-rx6700xt-directml"))
        for task in (Task.DETECT, Task.PLAN):
            session.begin(task)
            assert session.state.running is task
            await asyncio.sleep(0)
            assert session.state.running is None
        return session

    with ThreadPoolExecutor(1) as pool:  # the browser's tests may have a loop of their own running here
        plan = pool.submit(asyncio.run, walk()).result().state.plan
    assert plan.env == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
