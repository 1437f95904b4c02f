"""A Python whose torch is the fake of this folder."""

import os
import shutil
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest


def make_python(folder: Path) -> tuple[Path, Path]:
    """Make an environment that borrows NumPy; give its interpreter and its site-packages."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    paths = {
        name: Path(sysconfig.get_path(name, "venv", vars={"base": str(folder)})) for name in ("scripts", "purelib")
    }
    (paths["purelib"] / "borrowed.pth").write_text(str(Path(np.__file__).parents[1]), "utf-8")
    return paths["scripts"] / "python", paths["purelib"]


@pytest.fixture(scope="session")
def fake_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the interpreter of an environment with the fake torch."""
    python, packages = make_python(tmp_path_factory.mktemp("fake") / "environment")
    shutil.copytree(Path(__file__).with_name("faketorch") / "torch", packages / "torch")
    return python
