"""pyproject, Poetry, setup scripts, conda environments and lock files: what they declare, and nothing of it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomli_w
from project_files import read_text, told

from assistant.i18n import render
from assistant.model.errors import BadInput
from assistant.model.plan import Request
from assistant.model.project import ProjectKind
from assistant.project import read_project, with_project

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
    assert "setup.py works out what it needs" in told(found)


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
    for words in ("cudatoolkit was left out", "not Python packages: ffmpeg, libgcc-ng.", "whl/cu113"):
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
    poetry = {"dependencies": {"ours": {"version": "*", "source": "company"}, "numpy": "*"}, "source": uv["index"]}
    assert read_text("pyproject.toml", tomli_w.dumps({"tool": {"poetry": poetry}})).requires == ("numpy",)


def test_a_lock_names_places_other_than_pypi(tmp_path: Path) -> None:
    """A private index, a wheel's address under its condition, and a folder, whose own needs count."""
    (tmp_path / "sib").mkdir()
    (tmp_path / "sib" / "pyproject.toml").write_text('[project]\nname="sib"\ndependencies=["einops"]\n')
    address = "https://h.example/w-1-py3-none-any.whl"
    needed = [
        {"name": "ours", "index": "https://company.example/simple"},
        {"name": "torch", "index": "https://company.example/simple"},
        {"name": "w", "url": address, "marker": "sys_platform == 'linux'"},
        {"name": "sib", "directory": "sib"},
    ]
    root = {"name": "mine", "source": {"virtual": "."}, "metadata": {"requires-dist": needed}}
    (tmp_path / "uv.lock").write_text(tomli_w.dumps({"version": 1, "package": [root, {"name": ["a"]}]}))
    found = read_project(str(tmp_path / "uv.lock"))
    assert found.requires == ("torch", f'w @ {address} ; sys_platform == "linux"', "einops")
    assert "ours was left out: it comes from an unknown index." in told(found)
    assert "`pip install --no-deps -e sib`" in told(found)
    wheel = {
        "name": "ours-1-py3-none-any.whl",
        "url": "https://c.example/ours-1-py3-none-any.whl",
        "hashes": {"a": "0"},
    }
    package = {"name": "ours", "version": "1", "index": "https://company.example/simple", "wheels": [wheel]}
    lock = tomli_w.dumps({"lock-version": "1.0", "created-by": "tests", "packages": [package]})
    assert read_text("pylock.toml", lock).requires == ()
    trusted = read_text("pylock.toml", lock, trusted=["https://company.example/simple"])
    assert trusted.requires == ("ours==1",)


def test_each_place_of_a_package_keeps_its_condition(tmp_path: Path) -> None:
    """Uv may state several, of which one holds on a machine."""
    (tmp_path / "c-1-py3-none-any.whl").write_bytes(b"")
    wheels = [f"https://h.example/a-1-{tag}-{tag}-linux_x86_64.whl" for tag in ("cp310", "cp311")]
    tens = [f"python_version == '3.{minor}'" for minor in (10, 11)]
    sources = {
        "a": [{"url": wheel, "marker": marker} for wheel, marker in zip(wheels, tens, strict=True)],
        "c": {"path": "c-1-py3-none-any.whl", "marker": "sys_platform == 'linux'"},
    }
    whole = {"project": {"name": "x", "dependencies": ["a", "c[e]"]}, "tool": {"uv": {"sources": sources}}}
    (tmp_path / "pyproject.toml").write_text(tomli_w.dumps(whole))
    assert read_project(str(tmp_path / "pyproject.toml")).requires == (
        f'a @ {wheels[0]} ; python_version == "3.10"',
        f'a @ {wheels[1]} ; python_version == "3.11"',
        f'c[e] @ {(tmp_path / "c-1-py3-none-any.whl").as_uri()} ; sys_platform == "linux"',
    )


def test_poetry_states_places_with_conditions(tmp_path: Path) -> None:
    """A wheel's address and its path keep markers and extras; PyPI may be named as a source."""
    (tmp_path / "c-1-py3-none-any.whl").write_bytes(b"")
    address = "https://h.example/a-1-py3-none-any.whl"
    needs = {
        "a": {"url": address, "markers": "sys_platform == 'linux'"},
        "c": {"path": "c-1-py3-none-any.whl", "extras": ["e"], "python": ">=3.11"},
        "numpy": {"version": "*", "source": "PyPI"},
    }
    (tmp_path / "pyproject.toml").write_text(tomli_w.dumps({"tool": {"poetry": {"dependencies": needs}}}))
    assert read_project(str(tmp_path / "pyproject.toml")).requires == (
        f'a @ {address} ; sys_platform == "linux"',
        f'c[e] @ {(tmp_path / "c-1-py3-none-any.whl").as_uri()} ; python_version >= "3.11"',
        "numpy",
    )


PARTS = {
    "dependency-groups": {"dev": ["pytest", {"include-group": "lint"}], "lint": ["ruff"]},
    "tool": {
        "poetry": {
            "dependencies": {"numpy": "*", "wandb": {"version": "*", "optional": True}},
            "extras": {"Train_It": ["wandb"]},
            "group": {"docs": {"dependencies": {"sphinx": "^8"}}},
        },
        "uv": {"dev-dependencies": ["tox"]},
    },
}


def test_groups_of_dependencies_are_optional_parts() -> None:
    """Those of the standard, of uv and of Poetry; by whatever spelling of the name."""
    found = read_text("pyproject.toml", tomli_w.dumps(PARTS))
    assert found.requires == ("numpy",)
    assert "optional parts, which were left out: Train_It, dev, docs, lint" in told(found)
    found = read_text("pyproject.toml", tomli_w.dumps(PARTS), extras=["train-it", "DEV", "docs"])
    assert set(found.requires) == {"numpy", "wandb", "pytest", "ruff", "tox", "sphinx<9,>=8"}
    assert found.left_out == ()


SETUP = 'from setuptools import setup\nsetup(install_requires=["numpy"], extras_require={"train": ["wandb"]})\n'


def test_an_extra_is_looked_for_in_all_that_is_read(tmp_path: Path) -> None:
    """Also in a setup.py beside a pyproject.toml that declares nothing; one that nobody offers is told."""
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\n')
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "x.ipynb").write_text('{"cells": []}')
    found = read_project(str(tmp_path), str(tmp_path / "x.ipynb"), extras=["Train"])
    assert (found.requires, found.left_out) == (("numpy", "wandb"), ())
    with pytest.raises(BadInput, match=r"setup\.py has no optional part \(extra\) called 'nope'"):
        read_project(str(tmp_path / "setup.py"), extras=["nope"])
    dynamic = '[project]\nname = "x"\ndependencies = ["numpy"]\ndynamic = ["optional-dependencies"]\n'
    found = read_text("pyproject.toml", dynamic, extras=["train"])
    assert "not found, so they were left out: train" in told(found)


def test_the_extras_of_a_folder_are_looked_for_in_it(tmp_path: Path) -> None:
    """`-e .[train]` stands for what the first of its files gives, also one that was read before without the part."""
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\n')
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "r.txt").write_text("-e .[train]\n")
    assert read_project(str(tmp_path / "r.txt")).requires == ("numpy", "wandb")
    (tmp_path / "r.txt").write_text("-e .[nope]\n")
    assert "not found, so they were left out: nope" in told(read_project(str(tmp_path / "r.txt")))
    (tmp_path / "r.txt").write_text("-e .[train]\n")
    both = (tmp_path / name for name in ("pyproject.toml", "r.txt"))
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname="x"\ndependencies=["numpy"]\n[dependency-groups]\ntrain=["timm"]\n'
    )
    assert read_project(*map(str, both)).requires == ("numpy", "timm")
    (tmp_path / "r.txt").write_text("numpy\n-e .\n")
    (tmp_path / "setup.py").write_text(SETUP.replace("numpy", "of-long-ago"))
    assert read_project(str(tmp_path / "r.txt")).requires == ("numpy",)


@pytest.mark.parametrize(
    ("name", "command"),
    [("Pipfile", "pipenv requirements"), ("pixi.toml", "pixi workspace export"), ("pdm.lock", "pdm")],
)
def test_a_file_of_another_tool_is_named_with_its_command(name: str, command: str, tmp_path: Path) -> None:
    """Where it is named it is refused; in a folder the imports stand in for it."""
    (tmp_path / name).write_text("[packages]\n")
    with pytest.raises(BadInput) as refused:
        read_project(str(tmp_path / name))
    assert command in render(refused.value.hint)
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops"]
    assert command in told(found)
    pixi = read_text("pyproject.toml", "[tool.pixi.dependencies]\nnumpy = '*'\n")
    assert "pixi workspace export" in told(pixi)


@pytest.mark.parametrize(
    "text",
    [
        "reqs = ['numpy']\nreqs.append('x')\nsetup(install_requires=reqs)",
        "reqs = ['numpy']\nreqs += ['x']\nsetup(install_requires=reqs)",
        "reqs = ['numpy']\nif x:\n    reqs = []\nsetup(install_requires=reqs)",
        "k = {'install_requires': ['numpy']}\nsetup(**k)",
    ],
)
def test_part_of_a_computed_list_is_not_the_list(text: str, tmp_path: Path) -> None:
    """What is added to later is computed."""
    (tmp_path / "setup.py").write_text(text)
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert (found.requires, [guess.distribution for guess in found.guesses]) == ((), ["einops"])
    assert "setup.py works out what it needs" in told(found)


def test_files_in_place_of_a_list_are_read_or_told(tmp_path: Path) -> None:
    """Several in setup.cfg, one that is not there, and a list that is none."""
    (tmp_path / "a.txt").write_text("numpy\n")
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires = file: a.txt, b.txt\n")
    found = read_project(str(tmp_path / "setup.cfg"))
    assert found.requires == ("numpy",)
    assert "b.txt was left out: it does not exist." in told(found)
    dynamic = (
        '[project]\nname="x"\ndynamic=["dependencies"]\n[tool.setuptools.dynamic]\ndependencies={file="gone.txt"}\n'
    )
    assert "gone.txt was left out: it does not exist." in told(read_text("pyproject.toml", dynamic))
    text = '[project]\nname="x"\ndependencies="numpy"\n'
    assert "dependencies in" in told(read_text("pyproject.toml", text))


def test_code_of_the_project_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The list that names its folder counts all the same."""
    (tmp_path / "setup.py").write_text("print 'Python 2'\n")
    (tmp_path / "requirements.txt").write_text("numpy\n-e .\n")
    found = read_project(str(tmp_path / "requirements.txt"))
    assert found.requires == ("numpy",)
    assert "setup.py cannot be read: this version of Python cannot read it" in told(found)


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements/test.txt", "environment.yml", "uv.lock"]
)
def test_a_file_of_a_folder_that_gives_nothing_gives_way(name: str, tmp_path: Path) -> None:
    """An empty list, one for developers, and a file that cannot be read hide no code."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text({"environment.yml": "name: x\n", "requirements.txt": ""}.get(name, "version = 1\n"))
    (tmp_path / "run.py").write_text("import einops\n")
    found = read_project(str(tmp_path))
    assert [guess.distribution for guess in found.guesses] == ["einops"]
    assert ("cannot be read" in told(found)) is (name in {"environment.yml", "uv.lock"})
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
    with pytest.raises(BadInput, match="not in its folder"):
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
        {"tool": {"poetry": {"dependencies": {"x": "^" + "1" * 5000, "python": "1" * 5000}}}},
        {"dependency-groups": {"a": [{"include-group": "a"}, 1]}, "tool": {"poetry": {"group": {"a": 1}}, "pixi": 1}},
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


def test_several_names_are_one_project(tmp_path: Path) -> None:
    """All that each requires, and the Pythons that suit all; a request takes it on behind its own pins."""
    (tmp_path / "environment.yml").write_text("dependencies: ['python>=3.10', numpy, einops]\n")
    found = read_project(b"numpy\nscipy\n", str(tmp_path / "environment.yml"))
    asked = with_project(Request(pins=("torch==2.9.1",), pythons="<3.13"), found, ())
    assert asked.pins == ("torch==2.9.1", "numpy", "scipy", "einops")
    assert asked.pythons == "<3.13,>=3.10"
