"""TorchCodec's newest release beside an older torch: its metadata names no torch, so an installer takes the newest."""

from collections.abc import Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet

from assistant.api.planning import find_companion
from assistant_addons.labs import stand_ins
from assistant_addons.labs.stand_ins import own_index as variables
from assistant_addons.labs.workspace import Workspace

__all__ = ["breaks", "files", "original", "variables"]
TORCH = ("2.9.1", "2.10.0", "2.11.0")
CODECS = ("0.8.1", "0.9.1", "0.10.0", "0.11.1")
DETECTORS = {"1.0": "torch==2.10.*", "2.0": "torch>=2.11"}
LOADER = Path(__file__).with_name("torchcodec.txt").read_text("utf-8")


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return the table of TorchCodec's README."""
    rows = [f"| `{_needs(version)}` | `{version}` |" for version in reversed(CODECS)]
    return {"compatibility.md": "\n".join(["| `torch` | `torchcodec` |", "| --- | --- |", *rows, ""])}


def breaks(space: Workspace) -> None:
    """Install a program with the torch that it needs, and later TorchCodec."""
    packages = [("torch", one, []) for one in TORCH] + [("torchcodec", one, []) for one in CODECS]
    packages += [("lab-detector", version, [needs]) for version, needs in DETECTORS.items()]
    for name in {name for name, _version, _needs in packages}:
        wheels = {
            version: stand_ins.wheel(name, version, _content(name, version), requires=needs)
            for one, version, needs in packages
            if one == name
        }
        stand_ins.add_to_index(space.folder / "pypi" / "simple", name, wheels)
    space.install("lab-detector==1.0")
    space.install("torchcodec")


def original(_space: Workspace, name: str, version: str) -> Mapping[str, str] | None:
    """Return the files of the stand-ins."""
    offered = {"torch": TORCH, "torchcodec": CODECS, "lab_detector": DETECTORS, "lab-detector": DETECTORS}
    return {} if name not in offered else _content(name, version) if version in offered[name] else None


def _needs(codec: str) -> str:
    """Return which torch a release of TorchCodec was built for, by the assistant's catalogue."""
    return next(one.torch[0] for one in find_companion("torchcodec").ranges if codec in SpecifierSet(one.versions))


def _content(name: str, version: str) -> dict[str, str]:
    if name == "torchcodec":
        text = LOADER.replace("BUILT_FOR", repr(_needs(version)[2:].removesuffix(".*")))
    else:
        text = f'__version__ = "{version}"\n'
    return {f"{name.replace('-', '_')}/__init__.py": text}
