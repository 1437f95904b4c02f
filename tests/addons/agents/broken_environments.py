"""Three real environments, broken as people's are: installed by uv from an index, with programs that fail in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from loopback import LoopbackIndex, with_code

NUMPY_2 = """
import numpy
if int(numpy.__version__.split(".")[0]) > 1:
    raise ImportError("A module that was compiled using NumPy 1.x cannot be run in NumPy " + numpy.__version__)
"""


class Broken:
    """An environment, the index that it comes from, and how its program is run there."""

    def __init__(self, index: LoopbackIndex, folder: Path, env: dict[str, str]) -> None:
        self.index, self.path, self.env = index, folder / "an environment", env
        self.program = ["-c", "import torch"]
        self.failed = ""
        self._uv("venv", "-q", "--no-project", "--python", sys.executable, str(self.path))

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.path / "bin" / "python"

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run its program."""
        return self._run([str(self.python), *self.program])

    def install(self, *requirements: str) -> str:
        """Install packages without what they require; give what uv printed."""
        done = self._run(
            [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--python", str(self.python), *requirements]
        )
        return f"$ uv pip install {' '.join(requirements)}\n{done.stdout}"

    def add(self, name: str, version: str, code: str = "", requires: tuple[str, ...] = ()) -> None:
        """Put a wheel on the index, with some code at the end of its module."""
        wheel, module = self.index.add(name, version, requires=requires), name.replace("-", "_")
        if code:
            module = {"onnxruntime_gpu": "onnxruntime"}.get(module, module)
            with_code(wheel, module, f"__version__ = {version!r}\n{code}")

    def _uv(self, *words: str) -> None:
        subprocess.run([sys.executable, "-m", "uv", *words], env=self.env, check=True, capture_output=True)

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )


def numpy_two(at: Broken) -> None:
    """Put a torch that was built for NumPy 1 beside NumPy 2."""
    at.add("torch", "2.2.2", NUMPY_2, requires=("numpy",))
    at.add("numpy", "2.1.0")
    at.install("torch", "numpy==2.1.0")
    at.add("numpy", "1.26.4")


def wrong_name(at: Broken) -> None:
    """Ask for a package by a name that is not its own."""
    at.add("scikit-learn", "1.7.0")
    at.failed = at.install("sklearn")
    at.program = ["-c", "import scikit_learn"]


def for_windows(at: Broken) -> None:
    """Install DirectML's flavour of ONNX Runtime, which loads on Windows alone."""
    at.add("onnxruntime-directml", "1.20", "raise ImportError('DLL load failed')\n")
    at.add("onnxruntime", "1.22")
    at.install("onnxruntime-directml")
    at.program = ["-c", "import onnxruntime"]


CASES: dict[str, Callable[[Broken], None]] = {made.__name__: made for made in (numpy_two, wrong_name, for_windows)}


def home(folder: Path, index_url: str) -> dict[str, str]:
    """Return the variables of a user whose home is a folder, and whose packages come from an index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "VIRTUAL_ENV"))}
    names = ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "JUPYTER_DATA_DIR", "UV_CACHE_DIR")
    places = {name: str(folder / name) for name in names}
    told = {"PIP_CONFIG_FILE": os.devnull, "UV_DEFAULT_INDEX": index_url, "UV_LINK_MODE": "copy", "UV_NO_CONFIG": "1"}
    python = {"UV_PYTHON_DOWNLOADS": "never", "PYTHONPATH": str(Path(__file__).parents[3])}
    return {**kept, **places, **told, **python, "HOME": str(folder), "LANGUAGE": "en", "PYTHONWARNINGS": "ignore"}
