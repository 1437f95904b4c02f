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
from assistant.install import EnvironmentFolder
from assistant.install.conflicts import find_conflicts
from assistant.install.environments import find_plan_target
from assistant.install.projects import (
    find_project,
    project_environment,
    project_tables,
    project_undo_findings,
    tables_text,
    with_tables,
    without_tables,
)
from assistant.install.site import Site
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
        self.bench, self.others, self.folder, self.file = bench, others, folder, folder / "pyproject.toml"
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


def test_a_project_of_uv_keeps_the_build_until_the_guard_is_off(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No sync, run, upgrade or addition brings another build; afterwards the file is as it was, to the byte."""
    index = project.bench.index.url  # in place of PyTorch's own for "+cpu"
    monkeypatch.setattr("assistant.install.environment_folder.find_torch_index", lambda _site: index)
    project.others.add("wants-ten", "1.0", requires=("torch>=10",))
    project.others.add("wants-any", "1.0", requires=("torch",))
    (finding,) = project_undo_findings(project.folder / ".venv", project.bench.plan, project.install())
    (guard,), (again,) = finding.remedies[0].commands, finding.remedies[1].commands
    assert guard == f"assistant guard '{project.folder}'"
    environment, before = EnvironmentFolder.at(str(project.folder)), project.file.read_bytes()
    (left,) = environment.guard(Site.ask(environment.path, LiveHost()))
    assert left.remedies[0].commands[0].startswith("uv add ")  # it is in no list of the project's yet
    environment.guard(Site.ask(environment.path, LiveHost()))
    environment.unguard()
    assert project.file.read_bytes() == before
    environment.guard(Site.ask(environment.path, LiveHost()))
    subprocess.run(["sh", "-c", f'PATH="{UV.parent}:$PATH" {again}'], env=project.told, check=True, capture_output=True)
    assert environment.guard(Site.ask(environment.path, LiveHost())) == ()
    for words in (
        ("sync",),
        ("sync", "--upgrade"),
        ("run", "python", "-c", "0"),
        ("add", "wants-any"),
        ("pip", "install", "--upgrade", "torch"),
    ):
        project.uv(*words)
        assert project.torch() == BUILD, words
    add = [UV, "add", "wants-ten"]
    refused = subprocess.run(add, cwd=project.folder, env=project.told, capture_output=True, check=False)
    assert (refused.returncode, project.torch()) == (1, BUILD)
    assert b"torch>=10" in refused.stderr


FILES = {
    "plain": "[project]\nname = 'p'\n",
    "no end": "[project]\nname = 'p'",
    "windows": "[project]\r\nname = 'p'\r\n\r\n[tool.uv]\r\npackage = false\r\n",
    "comments": "# mine\n[tool.uv]  # theirs\nconstraint-dependencies = ['numpy<3'] # old\n[tool.uv.sources]\n# none\n",
    "long list": "[tool.uv.sources]\n[tool.uv]\nconstraint-dependencies = [\n  # why\n  'numpy<3',\n]\n",
    "an index": "[[tool.uv.index]]\nname='i'\nurl='u'\n\n\n",
    "empty list": "[tool.uv]\nconstraint-dependencies = []\n[tool.other]\nconstraint-dependencies = [\n]\n",
    "another's list": "[tool.uv]\n[tool.other]\nconstraint-dependencies = [\n]\n",
}
LEFT = {
    "inline": "[tool]\nuv = { package = false }\n",
    "dotted": "[tool]\nuv.constraint-dependencies = []\n",
    "spread": "[tool.uv]\nconstraint-dependencies =   [ ]\n",
    "an inline index": "[tool.uv]\nindex = [{ name = 'i', url = 'u' }]\n",
    "in a text": "[project]\ntext = '''\n[tool.uv]\n'''\n",
}


def test_a_projects_file_of_any_form_gets_lines_and_loses_them_whole() -> None:
    """What was there stays, and where a form is not known nothing is written: the lines are the user's to paste."""
    needs = ["constraint-dependencies = [", "    \"torch==9.0+cpu ; sys_platform == 'linux'\",", "]"]
    index = ['name = "torch"', 'url = "https://a.example"', "explicit = true"]
    tables = {"[tool.uv]": needs, "[tool.uv.sources]": ["torch = { index = 'torch' }"], "[[tool.uv.index]]": index}
    for form, text in FILES.items():
        changed = with_tables(text, tables)
        assert "torch==9.0+cpu" in str(tomllib.loads(changed)["tool"]["uv"]["constraint-dependencies"]), form
        assert without_tables(changed) == text, form
        assert ("\r" in changed) == ("\r" in text), form
        more = without_tables(changed.replace("torch = {", "x.path = 'x'\ntorch = {"))  # as `uv add ./x` does
        assert tomllib.loads(more)["tool"]["uv"]["sources"] == {"x": {"path": "x"}}, form
    assert {form: with_tables(text, tables) for form, text in LEFT.items()} == dict.fromkeys(LEFT, "")


def test_a_project_of_pixi_is_known(bench: Bench, tmp_path: Path) -> None:
    """Its environment is found by the project's folder, and the lines name the build and its index."""
    inside = tmp_path / ".pixi" / "envs" / "default"
    (inside / "conda-meta").mkdir(parents=True)
    assert project_environment(tmp_path) == tmp_path
    (tmp_path / "pixi.toml").write_text("[workspace]\n", encoding="utf-8")
    assert project_environment(tmp_path) == inside
    project = find_project(inside)
    assert (project.tool, project.file) == ("pixi", str(tmp_path / "pixi.toml"))
    told = tomllib.loads(tables_text(project_tables(project, bench.plan, {"torch": BUILD, "numpy": "1.0"})))
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
