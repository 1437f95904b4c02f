"""No code before consent, and no package from an index that was not meant: by the real uv."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import session.test_installing as grounds
from loopback import LoopbackIndex, make_wheel
from runners import asked

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.machines import load, shipped
from assistant.model.errors import AssistantError
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.model.report import Step
from assistant.plan import make_plans
from assistant.session.apply import unknown_requirements
from assistant.session.session import Session
from assistant.session.state import Phase, Planned, StepStatus, Task

pytestmark = pytest.mark.process

make = grounds.make
Given = Callable[..., Session]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Name the file that is there once code of a stranger has run."""
    return tmp_path / "it-ran"


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackIndex]:
    """Serve a second index, which pip's settings name as an extra one."""
    (tmp_path / "other").mkdir()
    index = LoopbackIndex(tmp_path / "other")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index.url)
    yield index
    index.close()


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve an index that only a project names."""
    (tmp_path / "projects").mkdir()
    index = LoopbackIndex(tmp_path / "projects")
    yield index
    index.close()


@pytest.fixture
def given(make: grounds.Make) -> Given:
    """Give a function that makes a session whose plan also asks for some more packages, and names more `indexes`."""

    def made(*needs: str, trust: tuple[str, ...] = (), indexes: tuple[str, ...] = (), **options: object) -> Session:
        session = make(**options)
        plan = session.state.plan
        plan = replace(plan, requirements=(*plan.requirements, *needs), indexes=indexes)
        session.state = replace(session.state, planned=Planned(planning=Planning(choice=plan, plans=(plan,))))
        session._sources.trust = trust
        return session

    return made


def prepared(session: Session) -> StepStatus:
    """Work out the packages, and tell how that ended."""
    return grounds.run(session, Task.PREPARE).status(Step.INSTALL)


@pytest.mark.parametrize(("by", "way"), [("setup.py", "needed"), ("backend", "asked for")])
def test_nothing_is_built_where_nobody_agrees(given, loopback_index, mark, by, way) -> None:
    """Whether it is asked for or needed by another: the sentence names the package, and its code never runs."""
    loopback_index.add_archive("evil", "1.5", mark, by=by)
    loopback_index.add("needs", "1.0", requires=("evil>=1",))
    status = prepared(given("evil" if way == "asked for" else "needs"))
    assert status.phase is Phase.FAILED
    assert "evil" in str(status.message)
    assert "source" in str(status.message)
    assert "--find-links" in status.hint.params["option"]
    assert not mark.exists()


def test_nobody_is_asked_to_agree_to_a_build(given, loopback_index, mark) -> None:
    """Who would say yes to anything is not asked, and nothing is built: a wheel made by hand is what helps."""
    archive = loopback_index.add_archive("evil", "1.5", mark)
    session = given("evil<2", asks=True)
    heard = asked(session, yes=True)
    assert prepared(session).phase is Phase.FAILED
    assert (heard, mark.exists()) == ([], False)
    make_wheel(archive.parent, "evil", "1.5", "py3-none-any")
    session = given("evil<2")
    assert prepared(session).phase is not Phase.FAILED
    assert session.state.preview.resolution.versions["evil"] == "1.5"


NO_BINARY = {"PIP_NO_BINARY": "evil", "UV_NO_BINARY_PACKAGE": "evil"}


@pytest.mark.parametrize(("variable", "also"), [("PIP_FIND_LINKS", {}), ("UV_FIND_LINKS", NO_BINARY)])
def test_a_folder_of_source_is_not_built_either(
    given, loopback_index, mark, tmp_path, monkeypatch, variable, also
) -> None:
    """Nor do the user's own variables for other work open the door."""
    (tmp_path / "links").mkdir()
    loopback_index.add_archive("evil", "1.5", mark).rename(tmp_path / "links" / "evil-1.5.tar.gz")
    for name, value in {variable: str(tmp_path / "links"), **also}.items():
        monkeypatch.setenv(name, value)
    assert prepared(given("evil")).phase is Phase.FAILED
    assert not mark.exists()


def test_an_address_in_a_wheels_metadata_is_not_built(given, loopback_index, mark) -> None:
    """Nor is it fetched."""
    archive = loopback_index.add_archive("evil", "1.5", mark)
    loopback_index.add("nice", "1.0", requires=(f"evil @ {archive.as_uri()}",))
    status = prepared(given("nice"))
    assert status.phase is Phase.FAILED
    assert "evil" in str(status.message)
    assert not mark.exists()


def test_git_is_not_started(given, loopback_index, tmp_path, monkeypatch) -> None:
    """A wheel may ask for a repository, too; its hooks and filters are code."""
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text(f"#!/bin/sh\ntouch {tmp_path}/git-ran\nexit 1\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    loopback_index.add("nice", "1.0", requires=("evil @ git+https://evil.example/evil.git",))
    status = prepared(given("nice"))
    assert status.phase is Phase.FAILED
    assert "evil" in str(status.message)
    assert not (tmp_path / "git-ran").exists()


def test_what_lies_in_the_folder_is_not_obeyed(given, loopback_index, mark, tmp_path, monkeypatch) -> None:
    """A cloned folder with a `uv.toml`, a `pyproject.toml` and a `pip` of its own changes nothing."""
    repository = tmp_path / "cloned"
    (repository / "pip").mkdir(parents=True)
    (repository / "evil-wheels").mkdir()
    loopback_index.add("borrowed", "99.0").rename(repository / "evil-wheels" / "borrowed-99.0-py3-none-any.whl")
    (repository / "uv.toml").write_text(f'find-links = ["{repository}/evil-wheels"]\n')
    (repository / "pyproject.toml").write_text(f'[tool.uv]\nfind-links = ["{repository}/evil-wheels"]\n')
    for name in ("pip/__init__.py", "pip/__main__.py", "json.py"):
        (repository / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(repository)
    session = given()
    assert prepared(session).phase is not Phase.FAILED
    assert session.state.preview.resolution.versions["borrowed"] == "1.0"
    assert not mark.exists()


def test_the_users_own_configuration_of_uv_counts(given, loopback_index, tmp_path, monkeypatch) -> None:
    """It is the folder's that does not."""
    (tmp_path / "config" / "uv").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    loopback_index.add("borrowed", "99.0").rename(tmp_path / "mine" / "borrowed-99.0-py3-none-any.whl")
    (tmp_path / "config" / "uv" / "uv.toml").write_text(f'find-links = ["{tmp_path}/mine"]\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    session = given()
    prepared(session)
    assert session.state.preview.resolution.versions["borrowed"] == "99.0"


def test_a_package_comes_from_the_first_index_that_has_its_name(given, loopback_index, other) -> None:
    """Whoever publishes a higher version of the name on a later index is not taken, and the user reads why."""
    loopback_index.add("corplib", "99.0")
    other.add("corplib", "1.0")
    session = given("corplib")
    assert prepared(session).phase is not Phase.FAILED
    assert session.state.preview.resolution.versions["corplib"] == "1.0"
    (finding,) = session.state.preview.findings
    assert (finding.key, finding.severity) == ("several-indexes", Severity.INFO)
    assert f"{other.url}, {loopback_index.url}. uv takes each package from the first" in str(finding.text)


@pytest.mark.parametrize("where", ["variable", "file"])
def test_where_the_best_version_counts_the_user_is_warned(
    given, loopback_index, other, tmp_path, monkeypatch, where
) -> None:
    """By a setting of uv any of the indexes can offer the file."""
    loopback_index.add("corplib", "99.0")
    other.add("corplib", "1.0")
    if where == "variable":
        monkeypatch.setenv("UV_INDEX_STRATEGY", "unsafe-best-match")
    elif where == "file":
        (tmp_path / "config" / "uv").mkdir(parents=True)
        (tmp_path / "config" / "uv" / "uv.toml").write_text('index-strategy = "unsafe-best-match"\n')
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    session = given("corplib")
    assert prepared(session).phase is not Phase.FAILED
    assert session.state.preview.resolution.versions["corplib"] == "99.0"
    (finding,) = session.state.preview.findings
    assert (finding.key, finding.severity) == ("several-indexes", Severity.WARNING)
    assert {loopback_index.url, other.url} <= {*str(finding.text).replace(",", " ").replace(". ", " ").split()}


def test_torchs_index_in_pips_settings_does_not_come_before_pypi(given, monkeypatch) -> None:
    """It holds old files of packages like numpy; torch's family comes from the plan's own index anyway."""
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://download.pytorch.org/whl/cu126")
    session = given("borrowed")
    assert prepared(session).phase is not Phase.FAILED
    assert session.state.preview.findings == ()
    assert "UV_INDEX" not in session._sources.environment


def test_what_the_first_index_lacks_is_said(given, loopback_index, other) -> None:
    """A later index that has the version is not asked, and the sentence names the one that went first."""
    loopback_index.add("corplib", "99.0")
    other.add("corplib", "1.0")
    status = prepared(given("corplib>=2"))
    assert status.phase is Phase.FAILED
    assert f"`corplib` was found on {other.url}, but not at the requested version" in str(status.message)


def test_a_name_of_a_projects_index_does_not_come_from_elsewhere(given, loopback_index, projects) -> None:
    """Whoever trusts the company's index for corplib is not given another's corplib, as its version is the higher."""
    loopback_index.add("corplib", "99.0")
    projects.add("corplib", "1.0")
    trusting = (projects.url,)
    session = given("corplib", indexes=(projects.url,), trust=trusting)
    assert prepared(session).phase is not Phase.FAILED
    (package,) = (one for one in session.state.preview.resolution.packages if one.name == "corplib")
    assert package.url.startswith(projects.url.removesuffix("simple"))
    (finding,) = session.state.preview.findings
    assert f"{projects.url}, {loopback_index.url}" in str(finding.text)


def test_the_source_of_a_projects_index_is_found(given, projects, mark) -> None:
    """What comes only as source there is named as such, as from any other index."""
    projects.add_archive("evil", "1.5", mark)
    status = prepared(given("evil", indexes=(projects.url,)))
    assert status.phase is Phase.FAILED
    assert re.search(r"evil.* only source", str(status.message))


def test_every_plan_of_ours_asks_for_known_names_only() -> None:
    """On every shipped machine, for every backend and both kinds of builds: nobody has to trust what we ask for."""
    catalog, unknown = load_catalog(), set()
    requests = [Request(backend=backend, nightly=late) for backend in (None, *Backend) for late in (False, True)]
    machines = [detect(ReplayHost(load(name))).machine for name in shipped()]
    for machine, request in itertools.product(machines, requests):
        with suppress(AssistantError):
            for plan in make_plans(machine, catalog, request).plans:
                unknown |= set(unknown_requirements(plan, catalog))
    assert unknown == set()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("numpyy", "numpyy"),
        ("Torch_Vision", "torch-vision"),
        ("pytorch==2.9", "pytorch"),
        ("torch[evil]==2.9", "torch[evil]"),
        ("numpy[extra]", "numpy[extra]"),
        ("onnxruntime-gpuu", "onnxruntime-gpuu"),
    ],
)
def test_a_name_that_looks_alike_is_unknown(line: str, name: str) -> None:
    """Names count letter by letter, extras included; only that very name makes it trusted."""
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="2.9.0", python="3.12", requirements=("torch==2.9.0", line))
    catalog = load_catalog()
    assert unknown_requirements(plan, catalog) == (name,)
    assert unknown_requirements(plan, catalog, ["numpy", "torch"]) == (name,)
    assert unknown_requirements(plan, catalog, [line.partition("==")[0]]) == ()


def test_known_names_count_however_they_are_spelt() -> None:
    """As installers read them."""
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="2.9.0", python="3.12", requirements=("Torch==2.9", "NumPy"))
    assert unknown_requirements(plan, load_catalog()) == ()
