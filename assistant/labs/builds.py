"""What the labs about builds of torch share: a recorded machine, indexes of stand-ins for torch, and a real install."""

from __future__ import annotations

import sys
from pathlib import Path

import assistant.machines
from assistant.catalog import load_catalog
from assistant.i18n import say
from assistant.labs.scene import Outcome, Scene
from assistant.labs.stand_ins import PLATFORM, torch_files, torch_indexes
from assistant.labs.wheels import add_to_index

_MACHINES = Path(assistant.machines.__file__).parent
_INSTALLED = (
    "import importlib.metadata as about; print(about.version('torch'), about.distribution('torch').locate_file(''))"
)


def install_torch(scene: Scene, machine: str, *, extra: str = "") -> None:
    """Set up a recorded machine, where `pip install torch` has put a stand-in into the environment.

    pip is configured, in the environment alone, with an index that stands for PyPI and with `extra`, one of PyTorch's.
    """
    for index, wheels in torch_indexes(load_catalog()).items():
        add_to_index(scene.folder / ("pypi/simple" if index == "pypi" else f"whl/{index}"), "torch", wheels)
    scene.venv(seed=True)
    settings = {"index-url": (scene.folder / "pypi" / "simple").as_uri(), "find-links": "", "no-index": "false"}
    if extra:
        settings["extra-index-url"] = (scene.folder / "whl" / extra).as_uri()
    lines = ["[global]", *(f"{name} = {value}" for name, value in settings.items()), ""]
    scene.write("env/pip.ini" if sys.platform == "win32" else "env/pip.conf", "\n".join(lines))
    put_machine(scene, machine)
    scene.need(scene.run("pip install torch"))


def put_machine(scene: Scene, machine: str) -> None:
    """Write the recorded machine anew, whatever has become of the file."""
    scene.write("machine.json", (_MACHINES / f"{machine}.json").read_text("utf-8"))


def compute_on_gpu(scene: Scene) -> Outcome:
    """Run the program that computes on the GPU."""
    return scene.program("on_gpu.py")


def build_fault(scene: Scene, machine: str) -> str:
    """Return why the program does not compute on the recorded machine with what its indexes offer; "" where it does."""
    put_machine(scene, machine)
    found = scene.call(scene.python(), "-c", _INSTALLED)
    if found.status:
        return say("torch is not installed.")
    version, _, folder = found.last.partition(" ")
    catalog = load_catalog()
    build = version.partition("+")[2] or catalog.build_of(version, "pypi", PLATFORM)
    for name, text in torch_files(version, build, catalog).items():
        path = Path(folder, name)
        if not path.is_file() or path.read_text("utf-8") != text:
            return say("{file} is not as the index offers it: install torch anew.", file=name)
    done = compute_on_gpu(scene)
    return say("The program still fails: {reason}", reason=done.last) if done.status else ""
