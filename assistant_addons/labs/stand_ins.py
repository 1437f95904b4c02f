"""What labs install in place of the real: small wheels and indexes, stand-ins for torch, and a pretended device.

A stand-in for torch has its names and versions, a few kilobytes, and makes torch's own checks: which build it is,
whether the machine's driver is new enough for it, and whether it holds code for the card. What the builds hold is the
catalogue's.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from assistant.api import BadInput, _
from assistant.api.records import to_json
from assistant.api.steps import Catalog, ReplayHost, TorchWheel, detect, load_catalog, number, recorded_machine
from assistant.api.system import RUNTIME, write_temporary
from assistant_addons.labs.activation import SOURCES
from assistant_addons.labs.workspace import Workspace


def wheel(name: str, version: str, files: Mapping[str, str], *, requires: Sequence[str] = ()) -> bytes:
    """Return a wheel for any Python with these files; the same content gives the same bytes."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    fields = [("Metadata-Version", "2.1"), ("Name", name), ("Version", version)]
    fields += [("Requires-Dist", one) for one in requires]
    contents = {
        **files,
        f"{about}/METADATA": "".join(f"{field}: {value}\n" for field, value in fields),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
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


OLDEST = (2, 7)  # the release line from which on the indexes hold torch
CODE = Path(__file__).with_name("programs")
ADDRESS = "https://download.pytorch.org/whl"  # for which the folder whl stands
_PLATFORMS = {"linux": "linux_x86_64", "windows": "windows_amd64"}


def torch_files(version: str, build: str, catalog: Catalog, platform: str) -> dict[str, str]:
    """Return the stand-in's files by name for a version and the build that it is, such as "cu130" or "cpu"."""
    files = {
        f"torch/{path.name}": path.read_text("utf-8") for path in sorted((CODE / "stand_in" / "torch").glob("*.py"))
    }
    release = version.partition("+")[0]
    held = next((one for one in catalog.wheels(platform, None) if (one.version, one.variant) == (release, build)), None)
    driver = catalog.driver(build) if build.startswith("cu") else None
    oldest = driver and (driver.windows if platform.startswith("windows") else driver.linux)
    cuda = f"{build[2:-1]}.{build[-1]}" if driver else None
    files["torch/version.py"] = f"__version__ = {f'{release}+{build}'!r}\ncuda = {cuda!r}\nhip = None\n"
    files["torch/build.py"] = (
        '"""What the build holds: the oldest driver that runs it, code for cards, and PTX for newer ones."""\n\n'
        f"LEAST_DRIVER = {oldest!r}\nCODE = {list(held.sm) if held else []}\n"
        f"PTX = {held.ptx if held else None}\n"
    )
    return files


def _builds(catalog: Catalog, platform: str) -> Iterator[tuple[str, str, str]]:
    """Yield the index, the version and the build of each wheel for the CPU and for CUDA."""
    for one in catalog.wheels(platform, None):
        if one.minor >= OLDEST and _offered(one):
            yield one.variant, f"{one.version}+{one.variant}", one.variant
    for release in catalog.releases:
        if number(release.version) >= OLDEST:
            yield "pypi", release.version, catalog.build_of(release.version, "pypi", platform)


def _offered(one: TorchWheel) -> bool:
    return one.variant == "cpu" or (one.variant.startswith("cu") and bool(one.sm))


def offer_torch(space: Workspace) -> None:
    """Write the indexes of PyTorch and PyPI for the recorded machine of the lab."""
    catalog, platform = load_catalog(), platform_of(space)
    found: dict[str, dict[str, bytes]] = {}
    for index, version, build in _builds(catalog, platform):
        content = wheel("torch", version, torch_files(version, build, catalog, platform))
        found.setdefault("pypi/simple" if index == "pypi" else f"whl/{index}", {})[version] = content
    for index, wheels in found.items():
        add_to_index(space.folder / index, "torch", wheels)


def platform_of(space: Workspace) -> str:
    """Return for which platform the recorded machine of the lab takes wheels."""
    return _PLATFORMS[detect(ReplayHost(recorded_machine(space.definition.machine))).machine.os or "linux"]


def own_index(space: Workspace) -> dict[str, str]:
    """Return the variables by which pip and uv ask the lab's own index, and none of the user's."""
    pypi = (space.folder / "pypi" / "simple").as_uri()
    own = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": pypi, "UV_NO_CONFIG": "1", "UV_INDEX_URL": pypi}
    return {**dict.fromkeys(SOURCES, ""), "PYTHONPATH": "", **own}


def machine_file(space: Workspace) -> dict[str, str | bytes]:
    """Return the recorded machine as a file of the lab, with the program that computes on its GPU."""
    return {
        "machine.json": to_json(recorded_machine(space.definition.machine)),
        "on_gpu.py": (CODE / "on_gpu.py").read_bytes(),
    }


def original_torch(space: Workspace, name: str, version: str) -> Mapping[str, str] | None:
    """Return the files of a stand-in for torch, `None` for a version that the lab does not offer."""
    if name != "torch":
        return {}
    catalog, platform = load_catalog(), platform_of(space)
    for _index, offered, build in _builds(catalog, platform):
        if offered == version:
            return torch_files(version, build, catalog, platform)
    return None


_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


def check_torch(space: Workspace) -> None:
    """Raise `BadInput` where the torch at hand is too old for the pretended device."""
    version = space.call(space.torch, "-c", _VERSION).last
    if number(version) < (2, 10):
        raise BadInput(
            _("This lab needs torch 2.10 or newer, and {version} is installed.", version=version),
            hint=_("Run `assistant setup`, which installs the newest, and start the lab again."),
        )


def device_files(solved: str) -> dict[str, str | bytes]:
    """Return a model that solves in this way on the pretended device, with the programs that run and judge it."""
    device = "device/pretend-1.0.dist-info"
    return {
        "model.py": f"import torch\n\n\ndef solve(systems, sides):\n    return {solved}\n",
        "solve.py": (CODE / "solve.py").read_bytes(),
        "apply.py": (CODE / "apply.py").read_bytes(),
        "fallback.py": (RUNTIME / "fallback.py").read_bytes(),
        "device/pretend.py": (CODE / "pretend.py").read_bytes(),
        f"{device}/METADATA": "Metadata-Version: 2.1\nName: pretend\nVersion: 1.0\n",
        f"{device}/entry_points.txt": "[torch.backends]\npretend = pretend:offer\n",
    }


def device_variables(plays: str) -> dict[str, str]:
    """Return the variables by which torch finds the pretended device, which plays "mps" or "directml"."""
    return {"PYTHONPATH": "device", "LAB_DEVICE": plays}
