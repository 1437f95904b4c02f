"""Notebooks and folders of code: their imports are guesses, and nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from addons.projects.project_files import read_text, told

from assistant.model.errors import BadInput
from assistant.model.plan import Request
from assistant_addons.projects import imports
from assistant_addons.projects.project import ProjectKind
from assistant_addons.projects.read import read_project, with_project


def notebook(*cells: str) -> str:
    """Write a notebook of code cells."""
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "!pip install no"}, *made], "nbformat": 4})


@pytest.mark.parametrize(
    ("cell", "expected", "installs"),
    [
        ("!pip install opencv-python-headless\nimport cv2", ["opencv-python"], True),
        ("%pip install torch>=2.6 2>&1 | tail -1\nimport timm", ["timm"], True),
        ("if colab:\n    !uv pip install \\\n  einops\nimport timm", ["timm"], True),
        ("%%bash\npip install einops\nimport timm", [], True),
        ("%%capture\n%conda install -y opencv\nimport timm", ["timm"], True),
        ("%%html\nimport timm", [], False),
        ("!ls\n%matplotlib inline\ntimm.create_model?\nimport timm", ["timm"], False),
        ("print('pip install einops')\n# pip install einops", [], False),
        ("\n" * 100_000 + "import timm", ["timm"], False),
    ],
)
def test_a_notebooks_imports_count_and_its_commands_are_named(cell: str, expected: list[str], installs: bool) -> None:  # noqa: FBT001 - a column
    """What it installs by commands is not read, and that is told."""
    found = read_text("x.ipynb", notebook(cell))
    assert (found.kind, found.requires) == (ProjectKind.NOTEBOOK, ())
    assert [guess.distribution for guess in found.guesses] == expected
    assert ("installs packages by commands, which are not read" in told(found)) is installs
    assert len(found.left_out) == installs


def test_an_import_is_named_with_its_cell() -> None:
    """Also where a cell cannot be read."""
    found = read_text("x.ipynb", notebook("import cv2", "from PIL import Image", "x ="))
    assert [(guess.module, guess.distribution, guess.where) for guess in found.guesses] == [
        ("cv2", "opencv-python", "x.ipynb[1]:1"),
        ("PIL", "pillow", "x.ipynb[2]:1"),
    ]
    assert "x.ipynb[3]" in told(found)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cell": 1}', "[" * 100_000])
def test_a_broken_notebook_is_refused(text: str) -> None:
    """One sentence that names it."""
    with pytest.raises(BadInput, match=r"x\.ipynb cannot be read"):
        read_text("x.ipynb", text)


def test_a_notebook_of_odd_cells_holds_nothing() -> None:
    """What is no cell is passed over."""
    text = '{"cells": [1, {"cell_type": "code"}, {"cell_type": "code", "source": 3}]}'
    assert read_text("x.ipynb", text).requires == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import cv2", ["opencv-python"]),
        ("import numpy as np, PIL.Image", ["numpy", "pillow"]),
        ("from google.protobuf import message", ["protobuf"]),
        ("from google.cloud import storage", ["google-cloud-storage"]),
        ("from ruamel.yaml import YAML", ["ruamel.yaml"]),
        ("import pyannote.audio", ["pyannote-audio"]),
        ("def f():\n    import einops", ["einops"]),
        ("import torch, torchvision", ["torchvision"]),
        ("import os, sys, __future__", []),
        ("from . import own\nfrom .own import it", []),
        ("try:\n    import xformers\nexcept ImportError:\n    xformers = None", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\nelse:\n    import scipy", ["scipy"]),
        ("import whisper", ["openai-whisper"]),
        ("'\\d'\nimport einops", ["einops"]),
    ],
)
def test_imports_stand_for_distributions(line: str, expected: list[str], tmp_path: Path) -> None:
    """By the table, also below a namespace; what Python has, torch itself, and what may be missing are none."""
    (tmp_path / "run.py").write_text(line)
    found = read_project(str(tmp_path / "run.py"))
    assert [guess.distribution for guess in found.guesses] == expected
    assert found.requires == ()


def test_a_name_is_no_evidence() -> None:
    """A module that no table has is asked about; one whose authors publish nothing is told as such."""
    found = read_text("run.py", "import never_heard_of\nimport detectron2\nimport clip\n")
    assert found.guesses == ()
    assert "never_heard_of (run.py:1)" in told(found)
    assert "no official package for these imports: detectron2 (run.py:2), clip (run.py:3)" in told(found)


def test_several_distributions_may_be_meant() -> None:
    """The others are named beside the guess, and an agreed guess is a requirement."""
    found = read_text("run.py", "import cv2\n")
    assert "opencv-python-headless" in found.guesses[0].others
    assert with_project(Request(), found, found.guesses).pins == ("opencv-python",)


def test_a_folders_own_modules_are_no_imports(tmp_path: Path) -> None:
    """Files and folders beside a file, above it, in `src`, and for unknown names anywhere."""
    for name, text in {
        "run.py": "import utils, mine.deep, einops, faraway, datasets\n",
        "utils.py": "import timm\n",
        "src/mine/deep.py": "import utils\n",
        "third/party/faraway.py": "",
        "datasets/own.py": "",
        "tests/test_it.py": "import pytest\n",
        ".venv/lib/x.py": "import flask\n",
        "env2/pyvenv.cfg": "",
        "env2/lib/y.py": "import django\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_project(str(tmp_path))
    assert [(guess.distribution, guess.where) for guess in found.guesses] == [
        ("einops", "run.py:1"),
        ("timm", "utils.py:1"),
    ]
    assert found.left_out == ()


@pytest.mark.parametrize(
    "data", [b"print 'old'", b"x = 1\0", b"(" * 9000, b"\xff\xfe\xff", b"# coding: nonsense\nimport einops"]
)
def test_code_that_cannot_be_read_is_told(data: bytes, tmp_path: Path) -> None:
    """The other files count all the same."""
    (tmp_path / "a.py").write_bytes(b"import einops\n" + data if data[:1] != b"#" else data)
    (tmp_path / "b.py").write_text("import timm\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["timm"]
    assert "a.py" in told(found)


@pytest.mark.parametrize(("bound", "most"), [("MOST_FILES", 2), ("MOST_FOLDERS", 3), ("MOST_BYTES", 30)])
def test_within_bounds_the_nearest_files_are_read(
    bound: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deep folder that comes first by its name does not push out the project's own code; what was read is told."""
    monkeypatch.setattr(imports, bound, most)
    for name, text in {"a/b/c/d/e.py": "x = 1", "src/run.py": "import timm\n", "z.py": "import einops\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops", "timm"]
    assert "Only the first 2 code files" in told(found)


def test_what_one_folder_has_for_its_own_may_be_a_package_in_another(tmp_path: Path) -> None:
    """A local module hides a package only from the code beside it."""
    for name, text in {"a/run.py": "import datasets\n", "a/datasets.py": "", "b/run.py": "import datasets\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [(one.module, one.where) for one in read_project(str(tmp_path)).guesses] == [("datasets", "b/run.py:1")]


def test_notebooks_are_read_with_the_code_beside_them(tmp_path: Path) -> None:
    """The code's modules are none to install; a broken notebook is told, and so are those beyond the bound."""
    (tmp_path / "helper.py").write_text("import timm\n")
    for number in range(25):
        (tmp_path / f"{number:02}.ipynb").write_text(notebook("import einops, helper") if number else "{")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["timm", "einops"]
    assert "00.ipynb cannot be read" in told(found)
    assert "Only the first 20 notebooks" in told(found)


def test_what_one_name_requires_another_need_not_guess(tmp_path: Path) -> None:
    """The imports are judged once, when all is read."""
    (tmp_path / "run.py").write_text("import cv2\n")
    assert read_project(str(tmp_path / "run.py"), b"opencv-python-headless==4.10\n").guesses == ()


def test_code_that_needs_torch_alone_needs_nothing_more(tmp_path: Path) -> None:
    """It is a project all the same."""
    (tmp_path / "run.py").write_text("import torch\n")
    found = read_project(str(tmp_path))
    assert (found.kind, found.requires, found.guesses, found.left_out) == (ProjectKind.CODE, (), (), ())


def test_a_folder_that_contains_itself_ends(tmp_path: Path) -> None:
    """Links are not followed."""
    (tmp_path / "run.py").write_text("import einops\n")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert len(read_project(str(tmp_path)).guesses) == 1
