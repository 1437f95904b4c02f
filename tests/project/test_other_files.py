"""pyproject, Poetry, setup scripts, conda environments and lock files: what they declare, and nothing of it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomli_w

from assistant.i18n import render
from assistant.model.errors import BadInput
from assistant.model.plan import Request
from assistant.model.project import Project, ProjectKind
from assistant.project import joined, read_project, read_text, with_project


def told(project: Project) -> str:
    """Return all that was told, as one text."""
    return "\n".join(map(render, project.left_out))


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


def test_poetry_writes_versions_its_own_way() -> None:
    """Carets, tildes, wildcards, lists, markers and sources of Poetry become what packaging reads."""
    needs = {
        "python": "^3.10",
        "torch": "^2.9.0",
        "timm": "~0.6",
        "einops": "*",
        "scipy": "1.12.0",
        "pandas": ">=2,<3",
        "diffusers": {"version": "^0.30", "extras": ["torch"], "markers": "sys_platform == 'linux'"},
        "numpy": [{"version": "<2", "python": "<3.12"}, {"version": ">=2", "python": ">=3.12"}],
        "wandb": {"version": "*", "optional": True},
        "mine": {"path": "../mine"},
        "odd": "1 || 3",
    }
    found = read_text("pyproject.toml", tomli_w.dumps({"tool": {"poetry": {"dependencies": needs}}}))
    assert sorted(found.requires) == sorted(
        (  # tables of their own stand behind the rest
            "torch<3,>=2.9.0",
            "timm<0.7,>=0.6",
            "einops",
            "scipy==1.12.0",
            "pandas<3,>=2",
            'diffusers[torch]<0.31,>=0.30; sys_platform == "linux"',
            'numpy<2; python_version < "3.12"',
            'numpy>=2; python_version >= "3.12"',
        )
    )
    assert found.pythons == "<4,>=3.10"
    assert "odd 1 || 3" in told(found)


def test_a_setup_script_is_parsed_and_never_run(tmp_path: Path) -> None:
    """Literal lists count, by their name too; the script leaves no trace."""
    trace = tmp_path / "trace"
    (tmp_path / "setup.py").write_text(
        f"import setuptools\nopen({str(trace)!r}, 'w')\nNEEDS = ['numpy', 'torch>=2.5']\n"
        "setuptools.setup(name='x', install_requires=NEEDS, extras_require={'a': ['scipy']}, python_requires='>=3.9')\n"
    )
    found = read_project(str(tmp_path), extras=["a"])
    assert (found.requires, found.pythons) == (("numpy", "torch>=2.5", "scipy"), ">=3.9")
    assert not trace.exists()


def test_a_list_that_is_computed_gives_way_to_the_imports(tmp_path: Path) -> None:
    """What a script works out is not known, so what the code imports is looked at, and that is told."""
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=open('r').read().split())\n"
    )
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops"]
    assert "setup.py computes what it needs" in told(found)


def test_setup_cfg_is_read(tmp_path: Path) -> None:
    """Its lists are those of a requirement file."""
    (tmp_path / "setup.cfg").write_text(
        "[options]\npython_requires = >=3.9\ninstall_requires =\n    numpy\n    torch>=2\n"
    )
    assert read_project(str(tmp_path)).requires == ("numpy", "torch>=2")


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
    for words in ("cudatoolkit was not taken along", "no Python packages: ffmpeg, libgcc-ng.", "whl/cu113"):
        assert words in told(found)


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
    assert "no Python packages: readline." in told(found)


def test_a_package_of_an_unknown_index_is_not_looked_for_on_pypi() -> None:
    """Nor is another part of the workspace: whoever took the name there would be installed."""
    uv = {
        "sources": {"ours": {"index": "company"}, "sibling": {"workspace": True}},
        "index": [{"name": "company", "url": "https://company.example/simple"}],
    }
    text = tomli_w.dumps({"project": {"name": "x", "dependencies": ["ours", "sibling", "numpy"]}, "tool": {"uv": uv}})
    found = read_text("pyproject.toml", text)
    assert found.requires == ("numpy",)
    assert "ours was left out: it comes from an index that is not known." in told(found)
    assert "sibling was left out: it is another part of the project." in told(found)
    trusted = read_text("pyproject.toml", text, trusted=["https://company.example/simple"])
    assert (trusted.requires, trusted.indexes) == (("ours", "numpy"), ("https://company.example/simple",))
    poetry = {"dependencies": {"ours": {"version": "*", "source": "company"}, "numpy": "*"}, "source": uv["index"]}
    assert read_text("pyproject.toml", tomli_w.dumps({"tool": {"poetry": poetry}})).requires == ("numpy",)


def test_what_conda_alone_can_read_is_told() -> None:
    """A choice of versions, or a name with other signs, is left out."""
    found = read_text("environment.yml", 'dependencies: [numpy, "x=1|2", "a b c", "x=\\u00e9"]\n')
    assert found.requires == ("numpy",)
    assert len(found.left_out) == 3


@pytest.mark.parametrize(
    "text", ["a: [", "- x\n", "&a [*a]", "[" * 5000, "dependencies: !!python/object:os.system x\n", ""]
)
def test_a_broken_environment_file_is_refused(text: str) -> None:
    """One sentence; nothing that YAML can name is made."""
    with pytest.raises(BadInput, match=r"environment\.yml cannot be read"):
        read_text("environment.yml", text)


PYPI = {"registry": "https://mirror.example/simple"}
UV_LOCK = {
    "version": 1,
    "requires-python": ">=3.10",
    "package": [
        {
            "name": "mine",
            "source": {"virtual": "."},
            "dependencies": [{"name": "torch"}, {"name": "numpy"}, {"name": "tool"}],
            "metadata": {
                "requires-dist": [
                    {"name": "torch", "specifier": "==2.9.1+cu128"},
                    {"name": "numpy", "specifier": ">=1.26"},
                    {"name": "tool", "git": "https://h.example/tool"},
                    {"name": "pytest", "marker": "extra == 'test'"},
                ]
            },
        },
        {
            "name": "torch",
            "version": "2.9.1+cu128",
            "source": PYPI,
            "dependencies": [{"name": "nvidia-nccl-cu12"}, {"name": "sympy"}],
        },
        {"name": "numpy", "version": "1.26.4", "source": PYPI, "resolution-markers": ["python_version < '3.12'"]},
        {"name": "numpy", "version": "2.2.0", "source": PYPI, "resolution-markers": ["python_version >= '3.12'"]},
        {"name": "nvidia-nccl-cu12", "version": "2.27.5", "source": PYPI},
        {"name": "sympy", "version": "1.14.0", "source": PYPI},
        {"name": "tool", "version": "1", "source": {"git": "https://h.example/tool"}},
    ],
}


def test_a_uv_lock_bounds_what_torch_does_not_bring() -> None:
    """The root's own requirements and locked versions; torch's own libraries go with its build."""
    found = read_text("uv.lock", tomli_w.dumps(UV_LOCK))
    assert found.requires == ("torch==2.9.1", "numpy>=1.26")
    assert found.constraints == (
        "torch==2.9.1",
        'numpy==1.26.4; python_version < "3.12"',
        'numpy==2.2.0; python_version >= "3.12"',
    )
    assert "https://h.example/tool" in told(found)


def test_a_pylock_asks_for_all_but_torchs_libraries() -> None:
    """It names no roots (PEP 751)."""
    packages = [
        {"name": "torch", "version": "2.9.1+cu128"},
        {"name": "nvidia-nccl-cu12", "version": "2.27.5"},
        {"name": "numpy", "version": "2.2.0", "marker": "python_version >= '3.11'"},
        {"name": "pytest", "version": "8.0", "marker": "'dev' in dependency_groups"},
        {"name": "tool", "vcs": {"type": "git", "url": "https://h.example/tool", "commit-id": "1f"}},
    ]
    for package in packages[:4]:
        archive = {
            "name": f"{package['name']}-{package['version']}.tar.gz",
            "url": "https://h.example/x.tar.gz",
            "hashes": {"sha256": "0" * 64},
        }
        package["sdist"] = archive
    whole = {"lock-version": "1.0", "created-by": "tests", "requires-python": ">=3.10", "packages": packages}
    found = read_text("pylock.cuda.toml", tomli_w.dumps(whole))
    assert found.requires == ("torch==2.9.1", 'numpy==2.2.0; python_version >= "3.11"')
    assert found.pythons == ">=3.10"
    assert "`pip install 'tool @ git+https://h.example/tool'`" in told(found)


def test_a_poetry_lock_bounds_its_pyproject(tmp_path: Path) -> None:
    """Without the pyproject.toml nothing says what is wanted."""
    lock = tmp_path / "poetry.lock"
    lock.write_text('[[package]]\nname="numpy"\nversion="1.26.4"\n[[package]]\nname="nvidia-nccl-cu12"\nversion="2"\n')
    with pytest.raises(BadInput, match="not beside it"):
        read_project(str(lock))
    (tmp_path / "pyproject.toml").write_text('[tool.poetry.dependencies]\nnumpy = "^1.26"\n')
    found = read_project(str(lock))
    assert (found.requires, found.constraints) == (("numpy<2,>=1.26",), ("numpy==1.26.4",))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "= nonsense"),
        ("uv.lock", "version = 1\n"),
        ("pylock.toml", "x = 1\n"),
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
        {"tool": {"poetry": {"dependencies": {"x": {"extras": 1}, "y": [1]}, "source": [1]}}},
        {"package": [{"name": "a", "source": {"virtual": "."}, "metadata": {"requires-dist": [1, {}]}}]},
        {"packages": [1, {"name": 1, "version": 2}]},
    ],
)
def test_tables_of_other_shapes_break_nothing(whole: dict) -> None:
    """Files are written by hand; what is not of the expected shape is passed over."""
    for name in ("pyproject.toml", "uv.lock", "pylock.toml"):
        try:
            read_text(name, tomli_w.dumps(whole))
        except BadInput:
            continue


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


def test_dynamic_dependencies_come_from_their_file(tmp_path: Path) -> None:
    """As setuptools reads them."""
    (tmp_path / "needs.txt").write_text("numpy\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname="x"\ndynamic=["dependencies"]\n[tool.setuptools.dynamic]\ndependencies={file=["needs.txt"]}\n'
    )
    assert read_project(str(tmp_path / "pyproject.toml")).requires == ("numpy",)


def test_several_projects_are_joined() -> None:
    """All that each requires, and the Pythons that suit all; a request takes it on behind its own pins."""
    first = read_text("requirements.txt", "numpy\nscipy\n")
    found = joined([first, read_text("environment.yml", "dependencies: ['python>=3.10', numpy, einops]\n")])
    assert found
    asked = with_project(Request(pins=("torch==2.9.1",), pythons="<3.13"), found)
    assert asked.pins == ("torch==2.9.1", "numpy", "scipy", "einops")
    assert asked.pythons == "<3.13,>=3.10"
    assert joined([]) is None
