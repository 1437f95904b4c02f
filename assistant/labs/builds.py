"""What the labs about builds of torch share: a recorded machine, indexes of stand-ins for torch, and a real install."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import assistant.machines
from assistant.catalog import load_catalog
from assistant.i18n import say
from assistant.labs.scene import MARKER, Outcome, Scene
from assistant.labs.stand_ins import CODE, PLATFORM, torch_files, torch_indexes
from assistant.labs.wheels import add_to_index

ADDRESS = "https://download.pytorch.org/whl"  # for which the folder whl stands
_MACHINES = Path(assistant.machines.__file__).parent
_SETTINGS = "env/pip.ini" if sys.platform == "win32" else "env/pip.conf"
_PROGRAM = "on_gpu.py"
_INSTALLED = "import importlib.metadata as m; print(m.version('torch'), m.distribution('torch').locate_file(''))"
# What would ask the user's own indexes; empty is as good as not set, for pip and for uv.
_OWN = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"),
)


def install_torch(scene: Scene, *, extra: str = "") -> None:
    """Set up the recorded machine of the lab, where `pip install torch` has put a stand-in into the environment.

    pip is configured, in the environment alone, with an index that stands for PyPI and with `extra`, one of PyTorch's.
    """
    for index, wheels in torch_indexes(load_catalog()).items():
        add_to_index(scene.folder / ("pypi/simple" if index == "pypi" else f"whl/{index}"), "torch", wheels)
    scene.venv(seed=True)
    settings = {"index-url": _pypi(scene), "extra-index-url": "", "find-links": "", "no-index": "false"}
    if extra:
        settings["extra-index-url"] = (scene.folder / "whl" / extra).as_uri()
    scene.write(_SETTINGS, "\n".join(["[global]", *(f"{name} = {value}" for name, value in settings.items()), ""]))
    _put(scene)
    scene.variables = {**scene.variables, **variables(scene)}
    scene.need(scene.run("pip install torch"))


def _pypi(scene: Scene) -> str:
    return (scene.folder / "pypi" / "simple").as_uri()


def variables(scene: Scene) -> Mapping[str, str]:
    """Return what keeps the user's own indexes out, once the environment is configured with the lab's.

    A file for all settings, here an empty one, takes the place of the user's own; the environment's own still counts:
    https://pip.pypa.io/en/stable/topics/configuration/
    """
    if not (scene.folder / _SETTINGS).exists():
        return {}
    own = {"PIP_CONFIG_FILE": str(scene.folder / MARKER), "UV_NO_CONFIG": "1", "UV_INDEX_URL": _pypi(scene)}
    return {**dict.fromkeys(_OWN, ""), **own}


def names(scene: Scene) -> Mapping[str, str]:
    """Return what a learner may type for the lab's indexes: the address of PyTorch's."""
    return {ADDRESS: (scene.folder / "whl").as_uri()}


def _put(scene: Scene) -> None:
    """Write the recorded machine and the program, whatever has become of the files."""
    scene.write("machine.json", (_MACHINES / f"{scene.machine}.json").read_bytes())
    scene.write(_PROGRAM, (CODE / _PROGRAM).read_bytes())


def compute_on_gpu(scene: Scene) -> Outcome:
    """Run the program that computes on the GPU of the recorded machine."""
    _put(scene)
    return scene.call(scene.python(), _PROGRAM)


def build_fault(scene: Scene) -> str:
    """Return why the program does not compute there with what the lab's indexes offer; "" where it does."""
    found = scene.call(scene.python(), "-c", _INSTALLED)
    if found.status:
        return say("torch is not installed.")
    version, _, folder = found.last.partition(" ")
    catalog = load_catalog()
    build = version.partition("+")[2] or catalog.build_of(version, "pypi", PLATFORM)
    for name, text in torch_files(version, build, catalog).items():
        path = Path(folder, name)
        if not path.is_file() or path.read_bytes() != text.encode():
            return say("{file} is not as the index offers it: install torch anew.", file=name)
    return scene.fails(compute_on_gpu(scene))
