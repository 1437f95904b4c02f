"""A real environment that is broken in every way that issue trackers know: torch twice, ONNX Runtime twice, NumPy 2."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from install.faults import picture
from loopback import LoopbackIndex

KEYS = ["numpy2-abi", "onnxruntime-packages-conflict", "package-installed-twice", "requirement-broken"]


class BrokenEnvironment:
    """The environment, and what mends it on an index: an older NumPy, newer typing-extensions, whole wheels."""

    def __init__(self, index: LoopbackIndex, target: Path) -> None:
        self.target = target
        add = index.add
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--no-project", "--python", sys.executable, target], check=True)
        needs = ("numpy", "typing-extensions>=4.10")
        wheels = [
            add("torch", "2.2.2", requires=needs),
            add("numpy", "2.1.0"),
            add("typing-extensions", "4.5.0"),
            add("onnxruntime", "1.20", requires=("numpy",)),
            add("other", "1.0"),
        ]
        words = [*uv, "pip", "install", "-q", "--no-deps", "--no-index", "--python", target / "bin" / "python"]
        told = {**os.environ, "UV_LINK_MODE": "copy"}
        subprocess.run([*words, *named(wheels)], check=True, env=told)
        site = next(target.glob("lib/*/site-packages"))
        for name in ("torch", "onnxruntime"):  # what is there twice: another version, another flavour
            info = next(site.glob(f"{name}-*.dist-info"))
            info.rename(info.with_name(f"{name}-aside"))
        older = [add("torch", "2.1.0", requires=needs), add("onnxruntime-gpu", "1.20", requires=("numpy",))]
        subprocess.run([*words, *named(older)], check=True, env=told)
        for name, version in (("torch", "2.2.2"), ("onnxruntime", "1.20")):
            (site / f"{name}-aside").rename(site / f"{name}-{version}.dist-info")
        add("numpy", "1.26.4")
        add("typing-extensions", "4.16.0")

    def picture(self) -> dict[str, tuple[object, ...]]:
        """Describe every file but what Python compiled."""
        seen = picture(self.target).items()
        return {name: told for name, told in seen if "__pycache__" not in name}


def named(wheels: Iterable[Path]) -> list[str]:
    """Name wheels and their folders for pip, so that they are installed as from an index and not as files."""
    requirements = ["==".join(wheel.name.split("-")[:2]) for wheel in wheels]
    return [*(f"--find-links={wheel.parent}" for wheel in wheels), *requirements]
