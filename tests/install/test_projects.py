"""Environments of other tools: projects of uv and pixi, and what conda owns; with the real uv."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.workbench import Bench, install
from loopback import LoopbackIndex

from assistant.host.live import LiveHost
from assistant.install.conflicts import (
    find_conflicts,
    find_project,
    project_environment,
    project_toml_lines,
    project_undo_findings,
)
from assistant.install.site import Site
from assistant.install.target import find_plan_target
from assistant.install.uv import resolve
from assistant.model.record import replace

pytestmark = pytest.mark.process

UV = Path(sys.executable).with_name("uv")
PYPROJECT = '[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = ["numpy"]\n'
BUILD = "9.0+cpu"


@pytest.fixture
def others(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve everything but torch's own builds, and a newer torch of no such build."""
    (tmp_path / "others").mkdir()
    index = LoopbackIndex(tmp_path / "others")
    for name, version in (("numpy", "1.0"), ("ipykernel", "7.0"), ("torch", "9.0"), ("torch", "10.0")):
        index.add(name, version)
    yield index
    index.close()


class Project:
    """A project of uv in a folder, where torch's own build is to stay."""

    def __init__(self, bench: Bench, others: LoopbackIndex, folder: Path) -> None:
        bench.index.add("torch", BUILD, requires=("numpy",))
        bench.plan = replace(bench.plan, requirements=(f"torch=={BUILD}",))
        self.bench, self.folder, self.file = bench, folder, folder / "pyproject.toml"
        caches = {"UV_CACHE_DIR": str(folder.parent / "cache"), "UV_DEFAULT_INDEX": others.url}
        usual = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "VIRTUAL_"))}
        self.told = {**usual, **caches}
        folder.mkdir()
        self.file.write_text(PYPROJECT, encoding="utf-8")

    def uv(self, *words: str) -> None:
        """Run the real uv in the project's folder."""
        done = subprocess.run([UV, *words], cwd=self.folder, env=self.told, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def torch(self) -> str | None:
        """Tell the version of torch that is installed."""
        return Site.ask(self.folder / ".venv", LiveHost()).versions.get("torch")

    def install(self) -> dict[str, str]:
        """Install the plan into the environment of the project, which is named by its folder."""
        host = LiveHost()
        target, site = find_plan_target(self.bench.plan, str(self.folder), host)
        assert target == self.folder / ".venv"
        assert site is not None
        uv = self.bench.uv()
        told = {**uv.environment, "UV_DEFAULT_INDEX": self.told["UV_DEFAULT_INDEX"]}
        uv = dataclasses.replace(uv, environment=told)
        resolution = resolve(self.bench.plan, uv, site.versions)
        install(self.bench.plan, resolution, target, site, uv, lambda _made, _lock: None)
        return resolution.versions


@pytest.fixture
def project(bench: Bench, others: LoopbackIndex, tmp_path: Path) -> Project:
    """Give a project whose environment uv has made."""
    made = Project(bench, others, tmp_path / "my project")
    made.uv("sync", "--python", sys.executable)
    return made


def test_uv_undoes_what_its_project_does_not_name(project: Project) -> None:
    """Without the lines that are offered, the next `uv sync` takes torch away: the warning is true."""
    project.install()
    assert project.torch() == BUILD
    project.uv("sync")
    assert project.torch() is None


def test_the_lines_that_are_offered_keep_the_build(project: Project) -> None:
    """Typed into a shell, with a space in the path: no sync, no upgrade, no installation brings another build."""
    (finding,) = project_undo_findings(project.folder / ".venv", project.bench.plan, project.install())
    lines, again = finding.remedies[0].commands[0], finding.remedies[1].commands[0]
    with project.file.open("a", encoding="utf-8") as file:
        file.write(f"\n{lines}")
    command = f'PATH="{UV.parent}:$PATH" {again}'
    subprocess.run(["sh", "-c", command], env=project.told, check=True, capture_output=True)
    assert f"torch=={BUILD}" in tomllib.loads(project.file.read_text())["project"]["dependencies"]
    for words in (("sync",), ("sync", "--upgrade"), ("pip", "install", "--upgrade", "torch")):
        project.uv(*words)
        assert project.torch() == BUILD, words
    assert {"torch", "numpy", "ipykernel"} <= {*Site.ask(project.folder / ".venv", LiveHost()).versions}


def test_a_project_of_pixi_is_known(bench: Bench, tmp_path: Path) -> None:
    """Its environment is found by the project's folder, and the lines name the build and its index."""
    inside = tmp_path / ".pixi" / "envs" / "default"
    (inside / "conda-meta").mkdir(parents=True)
    assert project_environment(tmp_path) == tmp_path
    (tmp_path / "pixi.toml").write_text("[workspace]\n", encoding="utf-8")
    assert project_environment(tmp_path) == inside
    project = find_project(inside)
    assert (project.tool, project.file) == ("pixi", str(tmp_path / "pixi.toml"))
    told = tomllib.loads(project_toml_lines(project, bench.plan, {"torch": BUILD, "numpy": "1.0"}))
    assert told == {"pypi-dependencies": {"torch": {"version": f"=={BUILD}", "index": bench.index.url}}}
    assert "pixi install" in str(project_undo_findings(inside, bench.plan, {"torch": BUILD})[0].text)


def test_an_environment_of_its_user_is_no_projects(tmp_path: Path) -> None:
    """A folder with a pyproject.toml of another tool, or with none, stands for itself."""
    assert project_environment(tmp_path) == tmp_path
    (tmp_path / "pyproject.toml").write_text("[tool.poetry]\n", encoding="utf-8")
    assert find_project(tmp_path / ".venv") is None
    (tmp_path / "pyproject.toml").write_text("not toml [", encoding="utf-8")
    assert project_environment(tmp_path) == tmp_path
    (tmp_path / "uv.lock").touch()
    assert project_environment(tmp_path) == tmp_path / ".venv"


def conda_environment(folder: Path) -> Path:
    """Make what conda makes as far as we look: a prefix with `conda-meta` and a Python, and a package of conda's."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    (folder / "conda-meta").mkdir()
    (folder / "conda-meta" / "numpy-0.9-0.json").write_text(json.dumps({"name": "numpy", "version": "0.9"}))
    info = next(folder.glob("lib/*/site-packages")) / "numpy-0.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.9\n")
    (info / "INSTALLER").write_text("conda")
    (info.parent / "numpy").mkdir()
    (info.parent / "numpy" / "__init__.py").write_text("__version__ = '0.9'\n")
    names = ("numpy/__init__.py", "numpy-0.9.dist-info/METADATA", "numpy-0.9.dist-info/INSTALLER")
    (info / "RECORD").write_text("\n".join(f"{name},," for name in (*names, "numpy-0.9.dist-info/RECORD")))
    return folder


def test_a_conda_environment_is_a_target_and_its_packages_are_told(bench: Bench, tmp_path: Path) -> None:
    """What conda owns and the plan keeps stays; what it would replace is named with conda's own way out."""
    folder = conda_environment(tmp_path / "conda env")
    target, site = find_plan_target(bench.plan, str(folder), LiveHost())
    assert {one.name: one.installer for one in site.own}["numpy"] == "conda"
    assert "conda-owned" not in [finding.key for finding in find_conflicts(site, {"torch": "9.0"})]
    found = next(
        finding for finding in find_conflicts(site, bench.resolution().versions) if finding.key == "conda-owned"
    )
    assert found.remedies[0].commands == (f"conda remove --force --prefix '{target}' numpy",)
    meta = {path.name: path.read_bytes() for path in (folder / "conda-meta").iterdir()}
    install(bench.plan, bench.resolution(), target, site, bench.uv(), lambda _made, _lock: None)
    assert Site.ask(folder, LiveHost()).versions["torch"] == "9.0"
    assert {path.name: path.read_bytes() for path in (folder / "conda-meta").iterdir()} == meta
