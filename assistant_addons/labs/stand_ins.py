"""What labs install in place of the real: small wheels and indexes, stand-ins for torch, and a pretended device.

A stand-in for torch has its names and versions, a few kilobytes, and makes torch's own checks: which build it is,
whether the machine's driver is new enough for it, and whether it holds code for the card. What the builds hold is the
catalogue's.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from assistant.api import BadInput, _, say
from assistant.api.records import to_json
from assistant.api.steps import Catalog, TorchWheel, load_catalog, number, recorded_machine
from assistant.api.system import RUNTIME, write_temporary
from assistant_addons.labs.scene import MARKER, Outcome, Scene


def wheel(
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    summary: str = "",
    requires: Sequence[str] = (),
    entry_points: str = "",
) -> bytes:
    """Return a wheel for any Python with these files; the same content gives the same bytes."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    told = [("Name", name), ("Version", version), *([("Summary", summary)] if summary else [])]
    told += [("Requires-Dist", one) for one in requires]
    contents = {
        **files,
        f"{about}/METADATA": "".join(f"{field}: {value}\n" for field, value in [("Metadata-Version", "2.1"), *told]),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        contents[f"{about}/entry_points.txt"] = entry_points
    rows = [f"{path},sha256={_digest(text.encode())},{len(text.encode())}" for path, text in contents.items()]
    contents[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,", ""])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in contents.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return packed.getvalue()


def file_of(name: str, version: str) -> str:
    """Return the name of the file of such a wheel."""
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _digest(content: bytes) -> str:
    """Return a hash in the form of RECORD: https://packaging.python.org/specifications/recording-installed-packages/."""
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add_to_index(index: Path, name: str, wheels: Mapping[str, bytes]) -> None:
    """Write a project's wheels, by version, into an index, which each start of a lab makes anew, with their hashes."""
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for version, content in wheels.items():
        file = file_of(name, version)
        write_temporary(folder / file, content)
        sha256 = hashlib.sha256(content).hexdigest()
        links.append(f'<a href="{file.replace("+", "%2B")}#sha256={sha256}">{file}</a>')
    write_temporary(folder / "index.html", "\n".join(["<!DOCTYPE html>", *links, ""]))


PLATFORM = "linux_x86_64"
OLDEST = (2, 7)  # the release line from which on the indexes hold torch
CODE = Path(__file__).with_name("programs")
_SUMMARY = "A stand-in for torch in a lab: it checks build, driver and card as torch does, and computes nothing else"


def torch_files(version: str, build: str, catalog: Catalog) -> dict[str, str]:
    """Return the stand-in's files by name for a version and the build that it is, such as "cu130" or "cpu"."""
    files = {
        f"torch/{path.name}": path.read_text("utf-8") for path in sorted((CODE / "stand_in" / "torch").glob("*.py"))
    }
    known = {one.variant: one for one in catalog.wheels(PLATFORM, None) if one.version == version.partition("+")[0]}
    held = known.get(build)
    driver = catalog.driver(build) if build.startswith("cu") else None
    cuda = f"{build[2:-1]}.{build[-1]}" if driver else None
    files["torch/version.py"] = f"__version__ = {version!r}\ncuda = {cuda!r}\nhip = None\n"
    files["torch/build.py"] = (
        '"""What the build holds: the oldest driver that runs it, code for cards, and PTX for newer ones."""\n\n'
        f"LEAST_DRIVER = {driver and driver.linux!r}\nCODE = {list(held.sm) if held else []}\n"
        f"PTX = {held.ptx if held else None}\n"
    )
    return files


def torch_indexes(catalog: Catalog) -> dict[str, dict[str, bytes]]:
    """Return the wheels of PyTorch's indexes ("cpu", "cu130", …) and of PyPI ("pypi") by index and version."""
    found: dict[str, dict[str, bytes]] = {}
    for index, version, build in _builds(catalog):
        content = wheel("torch", version, torch_files(version, build, catalog), summary=_SUMMARY)
        found.setdefault(index, {})[version] = content
    return found


def _builds(catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield the index, the version and the build of each wheel for the CPU and for CUDA."""
    for one in catalog.wheels(PLATFORM, None):
        if one.minor >= OLDEST and _offered(one):
            yield one.variant, f"{one.version}+{one.variant}", one.variant
    for release in catalog.releases:
        if number(release.version) >= OLDEST:
            yield "pypi", release.version, catalog.build_of(release.version, "pypi", PLATFORM)


def _offered(one: TorchWheel) -> bool:
    return one.variant == "cpu" or (one.variant.startswith("cu") and bool(one.sm))


ADDRESS = "https://download.pytorch.org/whl"  # for which the folder whl stands
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
    scene.write("machine.json", to_json(recorded_machine(scene.machine)))
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


MODEL = "import torch\n\n\ndef solve(systems, sides):\n    return {solved}\n"
_PLAYS = {"mps": "as_mps", "directml": "as_directml"}
_WHEEL = "pretend-1.0-py3-none-any.whl"
_NEEDED = """
import torch
from torch.utils import backend_registration
print(torch.__version__, hasattr(backend_registration, "_setup_privateuseone_for_python_backend"))"""


def offer_device(scene: Scene, plays: str) -> None:
    """Make an environment where `import torch` brings the device, with the program and the fallback beside the model.

    The device plays "mps" or "directml". Raises `BadInput` where the torch at hand is too old for it.
    """
    version, _space, able = scene.call(scene.torch, "-c", _NEEDED).last.partition(" ")
    if able != "True":
        raise BadInput(
            _("This lab needs torch 2.10 or newer, and {version} is installed.", version=version),
            hint=_("Run `assistant setup`, which installs the newest, and start the lab again."),
        )
    scene.venv(beside_torch=True)
    scene.write("fallback.py", (RUNTIME / "fallback.py").read_bytes())
    _put_device(scene, plays)


def _put_device(scene: Scene, plays: str) -> None:
    """Install the device and write the program, whatever has become of their files."""
    files = {"pretend.py": (CODE / "pretend.py").read_text("utf-8")}
    entry_points = f"[torch.backends]\npretend = pretend:{_PLAYS[plays]}\n"
    scene.write(_WHEEL, wheel("pretend", "1.0", files, entry_points=entry_points))
    scene.install("--no-deps", "--reinstall", f"./{_WHEEL}")
    scene.write("solve.py", (CODE / "solve.py").read_bytes())


def solve(scene: Scene, plays: str, *most: str) -> Outcome:
    """Run the program with the learner's model; `most` copies are allowed, any number by default."""
    _put_device(scene, plays)
    return scene.call(scene.python(), "solve.py", "model.py", *most)


def solve_fault(scene: Scene, plays: str, *most: str) -> str:
    """Return what is still wrong with the model; "" when nothing is."""
    done = solve(scene, plays, *most)
    right = not done.status and done.last == "the solution is right"
    return "" if right else say("The program still fails: {reason}", reason=done.last)
