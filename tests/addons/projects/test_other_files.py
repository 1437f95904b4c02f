"""pyproject and conda environments: what they declare, and what stands in files that are not read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w
from addons.projects.project_files import read_text, told

from assistant.i18n import render
from assistant.model.errors import BadInput
from assistant.model.plan import Request
from assistant_addons.projects.project import ProjectKind
from assistant_addons.projects.read import read_project, with_project

FLUX = {
    "project": {
        "name": "flux",
        "requires-python": ">=3.10,<3.14",
        "dependencies": ["einops", "torch==2.9.1", "kernels"],
        "optional-dependencies": {
            "gradio": ["gradio"],
            "Torch_Parts": ["torchvision"],
            "all": ["flux[gradio,torch-parts]"],
        },
    },
    "tool": {
        "uv": {
            "constraint-dependencies": ["grpcio<1.70"],
            "override-dependencies": ["protobuf>=4"],
            "sources": {
                "torch": [{"index": "cu", "marker": "sys_platform == 'linux'"}],
                "kernels": {"git": "https://h.example/kernels", "rev": "1f"},
            },
            "index": [{"name": "cu", "url": "https://download.pytorch.org/whl/cu128", "explicit": True}],
        }
    },
}


def test_pyproject_declares_the_project() -> None:
    """Dependencies, Pythons, uv's bounds, and what uv takes from a repository."""
    found = read_text("pyproject.toml", tomli_w.dumps(FLUX))
    assert found.kind is ProjectKind.PYPROJECT
    assert found.requires == ("einops", "torch==2.9.1")
    assert (found.constraints, found.overrides) == (("grpcio<1.70",), ("protobuf>=4",))
    assert found.pythons == "<3.14,>=3.10"
    assert "`pip install 'kernels @ git+https://h.example/kernels@1f'`" in told(found)
    assert "optional parts, which were left out: Torch_Parts, all, gradio" in told(found)


def test_extras_may_name_one_another() -> None:
    """`all` of the project itself stands for the extras that it names; one that is not offered is refused."""
    found = read_text("pyproject.toml", tomli_w.dumps(FLUX), extras=["all"])
    assert {"gradio", "torchvision"} <= set(found.requires)
    with pytest.raises(BadInput) as refused:
        read_text("pyproject.toml", tomli_w.dumps(FLUX), extras=["nonsense"])
    assert "all, gradio, torch-parts" in render(refused.value.hint)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("pytorch=1.11.0", "torch==1.11.0"),
        ("pytorch::pytorch=2.1=py3.10_cuda12.1_cudnn8.9.2_0", "torch==2.1.*"),
        ("conda-forge::pytorch[version='>=2.1', build='*cuda*']", "torch>=2.1"),
        ("numpy >=1.20,<2", "numpy<2,>=1.20"),
        ("numpy 1.26.*", "numpy==1.26.*"),
        ("opencv", "opencv-python"),
        ("scikit-learn==1.2.2", "scikit-learn==1.2.2"),
        ("PyYAML", "pyyaml"),
    ],
)
def test_conda_spells_packages_its_own_way(spec: str, expected: str) -> None:
    """Names and versions become those of PyPI."""
    assert read_text("environment.yml", f"dependencies:\n  - {json.dumps(spec)}\n").requires == (expected,)


def test_conda_names_more_than_python_packages() -> None:
    """Python bounds the Pythons, what is the plan's to choose or the system's to have is told, pip's part is pip's."""
    text = (
        "name: x\ndependencies:\n  - python=3.8.5\n  - pip\n  - cudatoolkit=11.3\n  - ffmpeg\n  - mkl\n  - libgcc-ng\n"
        "  - pip:\n    - einops==0.3\n    - --extra-index-url https://download.pytorch.org/whl/cu113\n"
    )
    found = read_text("environment.yaml", text)
    assert (found.requires, found.pythons) == (("einops==0.3",), "==3.8.*")
    for words in ("cudatoolkit was left out", "not Python packages: ffmpeg, libgcc-ng."):
        assert words in told(found)
    assert found.builds == ("cu113",)


def test_an_exported_environment_tells_python_packages_by_their_builds() -> None:
    """What was built without Python is a library of the system."""
    lines = (
        "readline=8.2=h5eee18b_0",
        "numpy=1.26.4=py311h64a7726_0",
        "jinja2=3.1.4=pyhd8ed1ab_0",
        "librosa",
        "tzdata=2024a=h1",
    )
    found = read_text("environment.yml", f"dependencies: {json.dumps(lines)}\n")
    assert found.requires == ("numpy==1.26.4", "jinja2==3.1.4", "librosa")
    assert "not Python packages: readline." in told(found)


def test_a_package_of_an_unknown_index_is_not_looked_for_on_pypi() -> None:
    """Nor is another part of the workspace: whoever took the name there would be installed."""
    uv = {
        "sources": {"ours": {"index": "company"}, "sibling": {"workspace": True}},
        "index": [{"name": "company", "url": "https://company.example/simple"}],
    }
    text = tomli_w.dumps({"project": {"name": "x", "dependencies": ["ours", "sibling", "numpy"]}, "tool": {"uv": uv}})
    found = read_text("pyproject.toml", text)
    assert found.requires == ("numpy",)
    assert "ours was left out: it comes from an unknown index." in told(found)
    assert "sibling was left out: it is another part of the project." in told(found)
    trusted = read_text("pyproject.toml", text, trusted=["https://company.example/simple"])
    assert (trusted.requires, trusted.indexes) == (("ours", "numpy"), ("https://company.example/simple",))


PARTS = {
    "project": {"name": "x", "dependencies": ["numpy"], "optional-dependencies": {"Train_It": ["wandb"]}},
    "dependency-groups": {"dev": ["pytest", {"include-group": "lint"}], "lint": ["ruff"], "docs": ["sphinx<9,>=8"]},
    "tool": {"uv": {"dev-dependencies": ["tox"]}},
}


def test_groups_of_dependencies_are_optional_parts() -> None:
    """Those of the standard and of uv, by whatever spelling of the name."""
    found = read_text("pyproject.toml", tomli_w.dumps(PARTS))
    assert found.requires == ("numpy",)
    assert "optional parts, which were left out: Train_It, dev, docs, lint" in told(found)
    found = read_text("pyproject.toml", tomli_w.dumps(PARTS), extras=["train-it", "DEV", "docs"])
    assert set(found.requires) == {"numpy", "wandb", "pytest", "ruff", "tox", "sphinx<9,>=8"}
    assert found.left_out == ()


def test_an_extra_is_looked_for_in_all_that_is_read(tmp_path: Path) -> None:
    """One that nobody offers is refused where all parts are known, and told where a build fills them in."""
    (tmp_path / "pyproject.toml").write_text(tomli_w.dumps(PARTS))
    (tmp_path / "x.ipynb").write_text('{"cells": []}')
    found = read_project(str(tmp_path), str(tmp_path / "x.ipynb"), extras=["Train-It"])
    assert found.requires == ("numpy", "wandb")
    with pytest.raises(BadInput, match=r"pyproject\.toml has no optional part \(extra\) called 'nope'"):
        read_project(str(tmp_path), extras=["nope"])
    dynamic = '[project]\nname = "x"\ndependencies = ["numpy"]\ndynamic = ["optional-dependencies"]\n'
    found = read_text("pyproject.toml", dynamic, extras=["train"])
    assert "not found, so they were left out: train" in told(found)


def test_the_extras_of_a_folder_are_looked_for_in_it(tmp_path: Path) -> None:
    """`-e .[train]` stands for what its pyproject.toml gives, also one that was read before without the part."""
    whole = '[project]\nname="x"\ndependencies=["numpy"]\n[dependency-groups]\ntrain=["timm"]\n'
    (tmp_path / "pyproject.toml").write_text(whole)
    (tmp_path / "r.txt").write_text("-e .[train]\n")
    assert read_project(str(tmp_path / "r.txt")).requires == ("numpy", "timm")
    both = (tmp_path / name for name in ("pyproject.toml", "r.txt"))
    assert read_project(*map(str, both)).requires == ("numpy", "timm")
    (tmp_path / "r.txt").write_text("-e .[nope]\n")
    assert "not found, so they were left out: nope" in told(read_project(str(tmp_path / "r.txt")))


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("uv.lock", "version = 1\n", "uv export --format requirements.txt"),
        ("poetry.lock", "", "poetry export"),
        ("pylock.toml", "", "pip freeze > requirements.txt"),
        ("pylock.cuda.toml", "", "pip freeze > requirements.txt"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['numpy'])\n", "uv pip compile setup.py"),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n", "uv pip compile setup.cfg"),
        ("Pipfile", "[packages]\n", "pipenv requirements"),
        ("pixi.toml", "", "pixi workspace export"),
        ("pdm.lock", "", "pdm"),
        ("pyproject.toml", "[tool.poetry.dependencies]\nnumpy = '*'\n", "poetry export"),
        ("pyproject.toml", "[tool.pixi.dependencies]\nnumpy = '*'\n", "pixi workspace export"),
        ("requirements.txt", "numpy=1.26.4=py311h64_0\nreadline=8.2=h5_0\n", "conda env export"),
        ("requirements.txt", "@EXPLICIT\nhttps://h.example/numpy-1.26.4-py311.conda\n", "conda env export"),
    ],
)
def test_a_file_of_another_tool_is_named_with_its_command(name: str, text: str, command: str, tmp_path: Path) -> None:
    """Named or alone in a folder it is refused; imports do not stand in for its versions, a list beside it does."""
    (tmp_path / name).write_text(text)
    (tmp_path / "run.py").write_text("import einops\n")
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(BadInput) as refused:
            read_project(str(path))
        assert f"{name} is not read here." in render(refused.value.message)
        assert command in render(refused.value.hint)
    (tmp_path / "environment.yml").write_text("dependencies: [scipy]\n")
    assert read_project(str(tmp_path)).requires == ("scipy",)


def test_a_pyproject_counts_beside_other_tools_files(tmp_path: Path) -> None:
    """A lock says no more than it does; what another tool's table adds to it is told."""
    (tmp_path / "uv.lock").write_text("version = 1\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname="x"\ndependencies=["numpy"]\n[tool.poetry.dependencies]\nnumpy={source="company"}\n'
    )
    found = read_project(str(tmp_path))
    assert found.requires == ("numpy",)
    assert "[tool.poetry] in" in told(found)
    assert "poetry export" in told(found)
    assert len(found.left_out) == 1


def test_files_of_setuptools_that_list_nothing_hide_no_code(tmp_path: Path) -> None:
    """Many a project has them for building alone, or for a linter."""
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 120\n")
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops"]
    assert found.left_out == ()


def test_what_stands_in_place_of_a_list_is_told() -> None:
    """Nothing is taken for no packages."""
    text = '[project]\nname="x"\ndependencies="numpy"\n'
    assert "dependencies in" in told(read_text("pyproject.toml", text))


def test_code_of_the_project_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The list that names its folder counts all the same."""
    (tmp_path / "setup.py").write_text("setup(install_requires=['einops'])\n")
    (tmp_path / "requirements.txt").write_text("numpy\n-e .\n")
    found = read_project(str(tmp_path / "requirements.txt"))
    assert found.requires == ("numpy",)
    assert "setup.py is not read here. Run `uv pip compile setup.py" in told(found)


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements/test.txt", "environment.yml"]
)
def test_a_file_of_a_folder_that_gives_nothing_gives_way(name: str, tmp_path: Path) -> None:
    """An empty list, one for developers, and a file that cannot be read hide no code."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text({"environment.yml": "name: x\n", "requirements.txt": ""}.get(name, "version = 1\n"))
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops"]
    assert ("cannot be read" in told(found)) is (name == "environment.yml")
    if name != "requirements.txt":
        (tmp_path / "run.py").unlink()
        with pytest.raises(BadInput, match=r"cannot be read|contains neither"):
            read_project(str(tmp_path))


def test_a_file_is_known_by_its_name_however_it_is_written(tmp_path: Path) -> None:
    """Windows and macOS do not tell the cases apart."""
    (tmp_path / "PyProject.toml").write_text('[project]\nname="x"\ndependencies=["einops"]\n')
    assert read_project(str(tmp_path / "PyProject.toml")).requires == ("einops",)


def test_what_conda_alone_can_read_is_told() -> None:
    """A choice of versions, or a name with other signs, is left out."""
    found = read_text("environment.yml", 'dependencies: [numpy, "x=1|2", "a b c", "x=\\u00e9"]\n')
    assert found.requires == ("numpy",)
    assert len(found.left_out) == 3


@pytest.mark.parametrize(
    "text",
    ["a: [", "- x\n", "&a [*a]", "[" * 5000, "dependencies: !!python/object:os.system x\n", "", "dependencies:\n"],
)
def test_a_broken_environment_file_is_refused(text: str) -> None:
    """One sentence; nothing that YAML can name is made."""
    with pytest.raises(BadInput, match=r"environment\.yml cannot be read"):
        read_text("environment.yml", text)


def test_yaml_is_read_as_text() -> None:
    """3.10 is no number, a date that is none is a name, and lists that stand for lists do not grow."""
    text = "a: &a [x, x]\nb: &b [*a, *a]\ndependencies:\n- python=3.10\n- !!timestamp abc\n- pip: [*b, *b, numpy]\n"
    found = read_text("environment.yml", text)
    assert (found.requires, found.pythons) == (("abc", "numpy"), "==3.10.*")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "= nonsense"),
        ("pyproject.toml", "a=" + "[" * 5000),
    ],
)
def test_a_broken_file_is_refused(name: str, text: str) -> None:
    """One sentence that names the file."""
    with pytest.raises(BadInput, match=f"{name} cannot be read"):
        read_text(name, text)


@pytest.mark.parametrize(
    "whole",
    [
        {"project": {"dependencies": "numpy", "optional-dependencies": [], "requires-python": 3}},
        {"project": [], "tool": {"uv": {"sources": {"x": 1}, "index": [1], "find-links": {}}, "poetry": []}},
        {"dependency-groups": {"a": [{"include-group": "a"}, 1]}, "tool": {"poetry": {"group": {"a": 1}}, "pixi": 1}},
    ],
)
def test_tables_of_other_shapes_break_nothing(whole: dict) -> None:
    """Files are written by hand; what is not of the expected shape is passed over."""
    with suppress(BadInput):
        read_text("pyproject.toml", tomli_w.dumps(whole))


def test_the_best_file_of_a_folder_counts(tmp_path: Path) -> None:
    """pyproject.toml before requirements.txt before the rest, but only where it declares something."""
    (tmp_path / "environment.yml").write_text("dependencies: [scipy]\n")
    assert read_project(str(tmp_path)).requires == ("scipy",)
    (tmp_path / "requirements_versions.txt").write_text("numpy==1.26.2\n")
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    found = read_project(str(tmp_path))
    assert (found.requires, [Path(path).name for path in found.paths]) == (
        ("numpy==1.26.2",),
        ["requirements_versions.txt"],
    )
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert read_project(str(tmp_path)).requires == ("numpy",)
    (tmp_path / "pyproject.toml").write_text('[project]\nname="x"\ndependencies=["einops"]\n')
    assert read_project(str(tmp_path)).requires == ("einops",)


def test_dependencies_that_a_build_fills_in_are_not_taken_for_none(tmp_path: Path) -> None:
    """The command that lists them is named; beside it the list counts that the build would read."""
    text = '[project]\nname="x"\ndynamic=["dependencies"]\n[project.optional-dependencies]\ntrain=["einops"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(BadInput) as raised:
        read_project(str(tmp_path))
    assert "uv pip compile pyproject.toml" in str(raised.value.hint)
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert read_project(str(tmp_path)).requires == ("numpy",)


def test_several_names_are_one_project(tmp_path: Path) -> None:
    """All that each requires, and the Pythons that suit all; a request takes it on behind its own pins."""
    (tmp_path / "environment.yml").write_text("dependencies: ['python>=3.10', numpy, einops]\n")
    found = read_project(b"numpy\nscipy\n", str(tmp_path / "environment.yml"))
    asked = with_project(Request(pins=("torch==2.9.1",), pythons="<3.13"), found, ())
    assert asked.pins == ("torch==2.9.1", "numpy", "scipy", "einops")
    assert asked.pythons == "<3.13,>=3.10"
