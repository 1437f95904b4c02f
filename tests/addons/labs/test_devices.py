"""The labs' devices: the pretended one counts and times what crosses, the stand-in for torch judges as the planner."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import assistant.machines
from assistant.api.system import RUNTIME
from assistant.catalog import load_catalog, number
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.machines import load, shipped
from assistant.model.plan import Backend
from assistant.plan import make_plans
from assistant_addons.labs.stand_ins import CODE, OLDEST, torch_files

MACHINES = Path(assistant.machines.__file__).parent
PLATFORM = "linux_x86_64"
CHILD = Path(__file__).with_name("pretended.py")
pytestmark = [pytest.mark.process, pytest.mark.full]


def run(python: str, *arguments: str | Path, **variables: str) -> str:
    """Run a Python that finds the device; answer what it prints."""
    places = {"PYTHONPATH": f"{CODE}{':' if sys.platform != 'win32' else ';'}{RUNTIME}", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, env={**places, **variables}
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["mps", "mps with fallback", "directml"])
def told(request, cpu_environment):
    """Tell what each way of working gives on the device, which plays MPS or DirectML."""
    device, falls_back, _ = request.param.partition(" ")
    variables = {"LAB_DEVICE": device, **({"PYTORCH_ENABLE_MPS_FALLBACK": "1"} if falls_back else {})}
    return request.param, json.loads(run(cpu_environment.python, CHILD, **variables))


@pytest.mark.torch
def test_what_crosses_is_counted_and_takes_time(told):
    """The textbook's way and the product's fallback are right on either device, and each copy really takes its time."""
    _, ways = told
    for name, copies in (("textbook", 3), ("fallback", 6)):
        way = ways[name]
        assert (way["device"], way["right"], way["copies"]) == ("pretend", True, copies)
        assert way["least"] <= way["slept"] <= way["took"]
    assert (ways["inverse"]["copies"], ways["inverse"]["right"]) == (0, True)


@pytest.mark.torch
def test_a_device_that_lacks_an_operator_refuses_it_or_pays_for_each_call(told):
    """Playing MPS it refuses, unless its fallback is on; else it pays for whatever operator is called."""
    device, ways = told
    calls = [ways[name] for name in ("solve", "named like the fallback", "loop")]
    if device == "mps":
        assert {(call["error"], "for the MPS device" in call["says"]) for call in calls} == {
            ("NotImplementedError", True)
        }
        return
    assert [call["copies"] for call in calls] == [6, 6, 6 * 32]
    assert ways["explained"]["given"] == ["aten::_linalg_solve_ex"]


@pytest.mark.torch
def test_a_tensor_on_the_device_behaves_like_one(told):
    """Tensors of two devices do not mix; values can be made, changed, read and shown."""
    _, ways = told
    assert "two devices" in ways["mixed"]["says"]
    assert (ways["in place"]["given"], ways["in place"]["copies"]) == (12.0, 1)
    assert ways["listed"]["given"] == [1.0, 2.0]
    assert ways["made"]["given"] == [2.0]
    assert ways["shown"]["given"] == "tensor([0.], device='pretend:0')"


@pytest.mark.torch
def test_a_torch_without_the_private_function_is_named(cpu_environment):
    """What the device needs of torch is private to it: without it, one sentence says from which torch on it works."""
    code = """
import pretend
del pretend.backend_registration._setup_privateuseone_for_python_backend
try:
    pretend.offer()
except ImportError as error:
    print(error)"""
    assert "needs torch 2.10 or newer; this is torch" in run(cpu_environment.python, "-c", code)


JUDGE = """
import json, sys
from pathlib import Path
verdicts = {}
for place in sorted(Path(sys.argv[1]).iterdir()):
    sys.path.insert(0, str(place))
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        del sys.modules[name]
    import torch
    for machine in sorted(Path(sys.argv[2]).iterdir()):
        torch.cuda.RECORDING = machine
        try:
            torch.ones(2, device="cuda")
            verdicts[f"{machine.stem} {place.name}"] = ""
        except (AssertionError, RuntimeError) as error:
            verdicts[f"{machine.stem} {place.name}"] = str(error)
    sys.path.pop(0)
print(json.dumps(verdicts))
"""


def test_the_stand_in_runs_where_the_planner_says_so(tmp_path):
    """On recorded Linux machines the planned CUDA build runs; where driver or card do not fit, torch's words say so."""
    catalog, planned, chosen = load_catalog(), {}, set()
    for name in shipped():
        machine = detect(ReplayHost(load(name))).machine
        best = make_plans(machine, catalog).choice
        there = machine.os == "linux" and machine.arch == "x86_64" and '"devices"' in str(load(name).said)
        if there and best and best.backend is Backend.CUDA and number(best.torch) >= OLDEST:
            planned[name] = f"{best.torch}+{catalog.build_of(best.torch, best.variant, PLATFORM)}"
            (tmp_path / "machines").mkdir(exist_ok=True)
            shutil.copy(MACHINES / f"{name}.json", tmp_path / "machines")
    chosen = {*planned.values(), "2.15.0+cu130", "2.14.1+cu126"}
    for version in chosen:
        for name, text in torch_files(version, version.partition("+")[2], catalog, PLATFORM).items():
            path = tmp_path / "builds" / version / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    said = json.loads(run(sys.executable, "-c", JUDGE, tmp_path / "builds", tmp_path / "machines"))
    assert len(planned) > 10
    assert {f"{name} {version}": "" for name, version in planned.items()}.items() <= said.items()
    old = "linux-ubuntu2404-rtx5070ti-driver570"
    assert "driver on your system is too old (found version 12080)" in said[f"{old} 2.15.0+cu130"]
    assert "no kernel image is available" in said[f"{old} 2.14.1+cu126"]
