"""Imports that fail for real with packages of PyPI; the first remedy's commands are typed, then the import works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from stage import HERE

from assistant.diagnose import read_log
from assistant.session.diagnosis import diagnosed

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(sys.platform != "linux", reason="these failures are made on Linux"),
    pytest.mark.full,
]


class Failure(NamedTuple):
    """A program that fails beside some packages, and the key of the cause."""

    packages: str
    program: str
    key: str


OLD = "numpy==2.1.3 --no-deps"
FAILURES = {
    "pandas": Failure(f"{OLD} pandas==2.1.4 python-dateutil pytz tzdata six", "import pandas", "numpy2-abi"),
    "scipy": Failure(f"{OLD} scipy==1.11.4", "import scipy.sparse", "numpy2-abi"),
    "matplotlib": Failure(
        f"{OLD} matplotlib==3.7.5 contourpy cycler fonttools kiwisolver packaging pillow pyparsing python-dateutil six",
        "import matplotlib.pyplot",
        "numpy2-abi",
    ),
    "opencv": Failure(f"{OLD} opencv-python-headless==4.8.1.78", "import cv2", "numpy2-abi"),
    "no numpy": Failure(
        "--no-deps torch==2.13.0 typing_extensions sympy mpmath jinja2 networkx fsspec filelock markupsafe setuptools",
        "import torch; torch.ones(2).numpy()",
        "numpy2-abi",
    ),
    "scikit-learn": Failure(
        f"{OLD} scikit-learn==1.3.2 joblib threadpoolctl cloudpickle scipy==1.13.1",
        "import sklearn.cluster",
        "numpy2-abi",
    ),
    "pyarrow": Failure(f"{OLD} pyarrow==14.0.2", "import pyarrow", "numpy2-abi"),
    "h5py": Failure(f"{OLD} h5py==3.10.0", "import h5py", "numpy2-abi"),
    "shapely": Failure(f"{OLD} shapely==2.0.3", "import shapely", "numpy2-abi"),
    "numexpr": Failure(f"{OLD} numexpr==2.8.8", "import numexpr", "numpy2-abi"),
    "bottleneck": Failure(f"{OLD} bottleneck==1.3.7", "import bottleneck", "numpy2-abi"),
    "pywavelets": Failure(f"{OLD} pywavelets==1.5.0", "import pywt", "numpy2-abi"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_what_the_first_remedy_types_mends_the_import(tmp_path: Path, failure: Failure) -> None:
    """The program fails, its cause is named, and after the first remedy's commands the same program runs."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    path = os.pathsep.join([str(tmp_path / "env" / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(tmp_path / "env"), "LC_ALL": "C.UTF-8"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f"{command} 2>&1"], capture_output=True, text=True, check=False, cwd=tmp_path, env=env
        )

    made = run(f"python -m pip install -q {failure.packages}")
    assert made.returncode == 0, made.stdout
    failed = run(f'python -W error -c "{failure.program}"')
    assert failed.returncode != 0, failed.stdout
    found = diagnosed(read_log(failed.stdout), HERE)
    assert found, failed.stdout
    assert found[0].key == failure.key
    assert found[0].remedies[0].commands
    for command in found[0].remedies[0].commands:
        done = run(command)
        assert done.returncode == 0, done.stdout
    again = run(f'python -c "{failure.program}"')
    assert again.returncode == 0, again.stdout
