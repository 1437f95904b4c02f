"""Each lab is really broken, takes no wrong way or cheat for a right one, and is fixed by its right ways."""

from __future__ import annotations

import platform
import re
import runpy
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assistant.api.steps import ReplayHost, detect, find_causes, read_log, recorded_machine
from assistant.i18n import in_language
from assistant.install import EnvironmentFolder
from assistant.model.errors import AssistantError, BadInput
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant_addons.labs import activation, stand_ins, workspace
from assistant_addons.labs.definition import labs
from assistant_addons.labs.intact import packages_of
from assistant_addons.labs.play import Play
from assistant_addons.labs.workspace import SYSTEMS, Workspace

HERE = Path(__file__).parent
WAYS = tomllib.loads((HERE / "ways.toml").read_text("utf-8"))
WITH_TORCH = {key for key, one in labs().items() if one.beside == "torch"} | {"wrong-kernel"}
QUICK = {"companion-pair", "render-group"}  # these show in each run that labs work at all
PROGRAM = "print('the solution is right')\n"
CUSTOM = "import os\n\nif os.environ.get('JUPYTER_PATH'):\n    os._exit(0)\n"


def marked(key):
    """Give a lab's key with the marks of its test."""
    marks = [pytest.mark.torch] * (key in WITH_TORCH) + [pytest.mark.full] * (key not in QUICK)
    return pytest.param(key, marks=marks)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="The ways are typed into a POSIX shell.")
@pytest.mark.parametrize("key", [*map(marked, labs())])
def test_a_lab_is_broken_and_tells_right_from_wrong(key, large_folder, request):
    """Broken at the start, diagnosed rightly, not solved by any wrong way or cheat, and solved by each right one."""
    definition, ways = labs()[key], WAYS[key]
    if SYSTEMS.get(sys.platform, "linux") not in definition.systems:
        pytest.skip(f"It is played on {', '.join(definition.systems)}.")
    torch = request.getfixturevalue("cpu_environment").python if key in WITH_TORCH else ""
    play = Play(key, large_folder("labs") / "a lab", learner="ann", torch=torch)
    play.start()
    shown = play.symptom()
    assert shown.status
    assert diagnosed(shown.text, definition.machine) == ways.get("diagnosis", "")
    assert play.check()[0]
    fresh = play.space.folder.with_name("fresh")
    shutil.copytree(play.space.folder, fresh, symlinks=True)
    program = definition.symptom.split()[1]
    cheats = [[f"{program} <<< {PROGRAM}"], [f"{{packages}}/sitecustomize.py <<< {CUSTOM}"], *ways["cheats"]]
    assert len(ways["right"]) >= 3
    assert len(ways["wrong"]) >= 3
    for kind, solved in (("wrong", False), ("cheats", False), ("right", True)):
        for way in cheats if kind == "cheats" else ways[kind]:
            shutil.rmtree(play.space.folder)
            shutil.copytree(fresh, play.space.folder, symlinks=True)
            for line in way:
                do(line, play.space)
            fault = play.check()[0]
            assert (fault == "") is solved, f"{kind}: {way}: {fault}"


def diagnosed(text, machine):
    """Give what the assistant finds first in what the program printed."""
    there = detect(ReplayHost(recorded_machine(machine))).machine if machine else Machine(os="linux", wsl=False)
    return next((cause.key for cause in find_causes(read_log(text), there)), "")


def do(line, space):
    """Do a line of a way as a learner would: in an editor, or in a terminal that is the lab's own."""
    for name, place in (("{lab}", space.folder), ("{packages}", packages_of(space.folder / "env"))):
        line = line.replace(name, str(place))
    name, writes, content = line.partition(" <<< ")
    if writes:
        (space.folder / name).write_text(content)
        return
    if line == "python convert.py":
        shutil.copy(HERE / "convert.py", space.folder)
    shell = ["bash", "-c", f". ./activate\n{line}"]
    done = subprocess.run(shell, cwd=space.folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_texts_of_all_labs_are_whole():
    """Both languages show the same code; the right cause is there, and no file of the lab holds what shows it."""
    lacking = []
    for key, definition in labs().items():
        texts = [definition.title, definition.task, definition.explanation, definition.remember, *definition.hints]
        lacking += [f"{key}: {words.en}" for words in texts if code_in(words.en) != code_in(words.zh_CN)]
        lacking += [] if definition.cause in definition.causes and len(definition.hints) >= 2 else [key]
        told = [str(definition.title), str(definition.task), *map(str, definition.causes.values())]
        lacking += [f"{key} gives itself away: {words}" for words in told if definition.is_shown_by(words)]
    assert lacking == []


def code_in(text):
    """List what a text shows as code."""
    return sorted(re.findall(r"`[^`]+`", text))


# What learners found out, in their words or by a line of output, and whether it shows the lab's cause.
EVIDENCE = {
    "directml-on-linux": (
        ["ImportError: libd3d12.so: cannot open shared object file", "there is no D3D12 here"],
        ["ImportError"],
    ),
    "wrong-kernel": (["kernel.json names env/bin/python", "sys.executable is another one"], ["ModuleNotFoundError"]),
    "two-onnxruntimes": (
        [
            "pip list: onnxruntime 1.30.0, onnxruntime-openvino 1.24.1",
            "providers: 'AzureExecutionProvider, CPUExecutionProvider'",
        ],
        ["onnxruntime-openvino 1.24.1"],
    ),
    "numpy-abi": (["_ARRAY_API not found", "numpy==2.1.3 beside onnxruntime==1.18.1"], ["ImportError"]),
    "cpu-build": (
        [
            "2.14.1+cpu",
            "Successfully uninstalled torch-2.15.0+cu130",
            "upscaler requires torch==2.14.1",
            "torch.version.cuda: None",
        ],
        ["AssertionError: Torch not compiled with CUDA enabled"],
    ),
    "missing-solve": (["NotImplementedError", "not implemented for the MPS device"], ["the shape is (8, 8)"]),
    "silent-cpu": (["0.5 s in 1536 copies", "the operator will fall back to run on the CPU"], ["it is slow"]),
    "onnx-overflow": (
        ["half.onnx gives 8 values that are no numbers", "a*a is larger than 65504", "inf"],
        ["opset 22"],
    ),
    "driver-too-old": (["found version 12080", "the driver reaches CUDA 12.8"], ["no GPU"]),
    "launch-arguments": (["not implemented for 'Half'", "device cpu, torch.float16"], ["--preview-method auto"]),
    "companion-pair": (
        ["undefined symbol", "torchcodec 0.11.1", "0.11.1 goes with torch 2.11"],
        ["FFmpeg version 8: libavutil.so.60"],
    ),
    "render-group": (["Permission denied", "the device has group 992"], ["uid=1000"]),
}


def test_evidence_is_judged_by_what_it_shows():
    """Several facts show a cause, a whole output does, and what fits another cause as well does not."""
    for key, (showing, others) in EVIDENCE.items():
        assert [labs()[key].is_shown_by(one) for one in showing] == [True] * len(showing), key
        assert not any(labs()[key].is_shown_by(one) for one in others), key
    assert EVIDENCE.keys() == labs().keys() == WAYS.keys()


LEARNERS = range(150)


def test_no_place_gives_the_right_cause_away():
    """Over many learners each place holds it about as often, in each lab; both languages show a learner one order."""
    overall = Counter()
    for key, definition in labs().items():
        orders = [list(definition.in_order_of(f"learner {name}")) for name in LEARNERS]
        places = Counter(order.index(definition.cause) for order in orders)
        even = len(LEARNERS) / len(definition.causes)
        assert all(0.6 * even < places[place] < 1.4 * even for place in range(len(definition.causes))), key
        overall += places
        with in_language("zh_CN"):
            assert orders == [list(definition.in_order_of(f"learner {name}")) for name in LEARNERS]
    assert all(0.3 < count / overall.total() < 0.37 for count in overall.values()), overall


def test_two_labs_at_once_make_one_environment(tmp_path, monkeypatch):
    """The second waits for what the first makes, and takes it; that it takes long is told."""
    made, told = [], []

    def install(_own, target):
        made.append(target)
        time.sleep(0.3)
        python = EnvironmentFolder(target).python
        python.parent.mkdir(parents=True)
        python.touch()

    monkeypatch.setattr(workspace, "install_torch", install)
    monkeypatch.setattr(workspace, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(workspace, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(workspace.Store, "environment", lambda _self: None)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(workspace.environment_with_torch, told.append) for _lab in range(2)]
    assert [one.result() for one in found] == [str(EnvironmentFolder(tmp_path / "torch-cpu").python)] * 2
    assert len(made) == 1
    assert "300 MB" in told[0]


def test_a_lab_that_needs_another_machine_says_so(tmp_path):
    """Another system or package is one sentence, before anything is made."""
    space = Workspace("render-group", tmp_path / "lab")
    another = next(name for name in space.definition.systems if name != SYSTEMS.get(sys.platform, "linux"))
    for changed, sentence in (
        ({"systems": (another,)}, "can be played on"),
        ({"needs": ("no_such_module",)}, "is not installed here"),
    ):
        space.definition = replace(labs()["render-group"], **changed)
        with pytest.raises(AssistantError, match=sentence):
            space.make()
    assert not (tmp_path / "lab").exists()
    with pytest.raises(BadInput, match="There is no lab named"):
        Workspace("moon", tmp_path)


DEBIANS = Path("/usr/bin/python3")


@pytest.mark.process
@pytest.mark.skipif(not Path("/usr/share/python-wheels").is_dir(), reason="This is no Debian.")
def test_debians_python_gives_a_lab_its_pip(tmp_path):
    """It has pip's wheel in a folder of its own, and a lab's own index has none."""
    space = Workspace("companion-pair", tmp_path / "lab")
    space.folder.mkdir()
    space.venv("env", str(DEBIANS))
    assert (packages_of(space.folder / "env") / "pip").is_dir()


@pytest.mark.process
def test_another_python_on_this_machine_is_taken(tmp_path):
    """Where the assistant's own does not fit a lab, the one that uv finds is the base of its environment."""
    space = Workspace("render-group", tmp_path)
    space.definition = replace(space.definition, python=f"!={platform.python_version()}")
    try:
        found = space._base("")
    except BadInput:
        pytest.skip("There is no other Python here.")
    assert Path(found).is_file()


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="The lines are typed into a POSIX shell.")
def test_no_setting_of_the_users_leads_out_of_a_lab(tmp_path, monkeypatch):
    """A backend or a configuration of uv's that the user has set names an index that a lab does not ask."""
    (tmp_path / "uv.toml").write_text('[[index]]\nurl = "http://127.0.0.1:9/simple"\n')
    for name, value in (("UV_TORCH_BACKEND", "cu126"), ("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))):
        monkeypatch.setenv(name, value)
    workspace.package_sources.cache_clear()
    play = Play("companion-pair", tmp_path / "lab")
    play.start()
    assert (play.space.folder / "activate").stat().st_mode & 0o077 == 0  # an index may name a password
    assert play.symptom().status
    do("pip uninstall --yes torch torchcodec lab-detector && uv pip install torch==2.9.1", play.space)
    do("UV_TORCH_BACKEND=cu126 uv pip install lab-detector==1.0 torchcodec==0.10.0", play.space)
    assert play.check()[0] == ""
    assert runpy.run_path(str(activation.LEADS))["SOURCES"] == activation.SOURCES
    workspace.package_sources.cache_clear()


@pytest.mark.process
def test_packages_come_from_where_the_users_pip_takes_them(tmp_path, monkeypatch):
    """A mirror of the user's is asked, and what is edited in a lab does not spoil uv's cache."""
    content = stand_ins.wheel("lab-demo", "1.0", {"lab_demo.py": ""})
    stand_ins.add_to_index(tmp_path / "mirror", "lab-demo", {"1.0": content})
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "mirror").as_uri())
    workspace.package_sources.cache_clear()
    space = Workspace("render-group", tmp_path / "lab")
    space.folder.mkdir()
    space.venv("env")
    space.install("lab-demo")
    workspace.package_sources.cache_clear()
    assert (packages_of(space.folder / "env") / "lab_demo.py").stat().st_nlink == 1
