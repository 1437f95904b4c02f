"""A stranger's configuration, by the real command: no code runs and nothing is fetched before somebody agreed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import tomli_w
from export.setups import ENVIRONMENT, REPORT
from forked import Run
from loopback import LoopbackIndex
from refused import refused
from tables import sampled

from assistant.detect import detect
from assistant.export.config import config_text
from assistant.export.setup import Setup
from assistant.host.live import LiveHost
from assistant.model.plan import Plan
from assistant.model.record import replace

pytestmark = pytest.mark.process

Write = Callable[..., Path]


@pytest.fixture
def run(run: Run, index: LoopbackIndex) -> Run:
    """Give a function that runs the command for a user whose pip knows one index, in a folder of its own."""
    return partial(run, index=index.url, COLUMNS="300")


@pytest.fixture
def written(tmp_path: Path, plan: Plan, index: LoopbackIndex) -> Write:
    """Give a function that writes a configuration for this machine, with changes that a stranger made by hand."""

    def write(
        *needs: str,
        index_url: str | None = None,
        hashes: dict[str, str] | None = None,
        beside: dict[str, object] | None = None,
        **packages: str,
    ) -> Path:
        changed = replace(plan, index_url=index_url or index.url, requirements=(*plan.requirements, *needs))
        changed = replace(changed, **(beside or {}))
        held = {"torch": f"{plan.torch}+cpu", "numpy": "1.0", "onnx": "1.0", "onnxruntime": "1.0", "ipykernel": "1.0"}
        text = config_text(
            Setup(
                machine=detect(LiveHost()).machine,
                plan=changed,
                environment=replace(ENVIRONMENT, packages={**held, **packages}),
                report=replace(REPORT, device="cpu"),
            )
        )
        told = tomllib.loads(text)
        told |= {"hashes": hashes or {}, "locked": len(hashes or {})}
        path = tmp_path / "stranger.toml"
        path.write_text(tomli_w.dumps(told), "utf-8")
        return path

    return write


@pytest.mark.parametrize("how", sampled([("--dry-run",), ("--yes",), ("--yes", "--json")], 3))
@pytest.mark.parametrize("where", ["index", "PIP_FIND_LINKS"])
def test_a_source_archive_in_a_configuration_never_runs(run, written, index, tmp_path, how, where) -> None:
    """`apply` refuses it by name, even where the name was trusted; `check` does not look for it at all."""
    mark = tmp_path / "it-ran"
    archive = index.add_archive("evilpkg", "1.0", mark, by="setup.py")
    variables = {}
    if where != "index":
        (tmp_path / "links").mkdir()
        archive.rename(tmp_path / "links" / archive.name)
        variables = {where: str(tmp_path / "links")}
    config = written("evilpkg", evilpkg="1.0")
    target = ("--target", tmp_path / "env")
    refused(run("apply", config, *how, *target, **variables), 2, "evilpkg", "--trust-requirement evilpkg")
    trusting = run("apply", config, *how, *target, "--trust-requirement", "evilpkg", **variables)
    refused(trusting, 1, "evilpkg", "source")
    before = len(index.requests)
    assert run("check", config, **variables).returncode == 1
    assert len(index.requests) == before
    assert not mark.exists()
    assert not (tmp_path / "env").exists()


@pytest.mark.parametrize("how", sampled(["--dry-run", "--yes"], 2))
@pytest.mark.parametrize("need", sampled(["numpyy", "pytorch", "torch[evil]", "onnxruntime-gpuu==1.0"], 2))
def test_a_misspelt_name_is_asked_about_before_any_request(run, written, index, tmp_path, how, need) -> None:
    """Nothing is resolved, so nobody learns of the name; the options that would accept it are told."""
    config = written(need)
    refused(run("apply", config, how, "--target", tmp_path / "env"), 2, need.partition("==")[0], "--trust-requirement")
    assert index.requests == []


def test_a_condition_hides_no_name(run, written, index) -> None:
    """A project's requirements may have one; the name is asked about wherever it holds."""
    config = written("numpyy; sys_platform == 'win32'")
    refused(run("apply", config, "--dry-run"), 2, "--trust-requirement numpyy")
    assert index.requests == []


@pytest.fixture
def unknown(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve an index that nobody here knows, with a numpy that beats any other."""
    (tmp_path / "unknown").mkdir()
    index = LoopbackIndex(tmp_path / "unknown")
    index.add("numpy", "99.0")
    yield index
    index.close()


@pytest.mark.parametrize("how", sampled(["--dry-run", "--yes"], 2))
@pytest.mark.parametrize("place", ["indexes", "links"])
def test_a_projects_source_is_not_asked_before_it_is_trusted(run, written, index, unknown, how, place) -> None:
    """Not one request reaches an index or a page of wheels that a configuration names beside torch's own."""
    url = unknown.url if place == "indexes" else f"{unknown.url}/numpy/"
    config = written(beside={place: (url,)}, numpy="99.0")
    refused(run("apply", config, how), 2, url, f"--trust-index {url}")
    assert (index.requests, unknown.requests) == ([], [])


@pytest.mark.parametrize("place", ["indexes", "links"])
@pytest.mark.parametrize("way", sampled(["option", "answer", "pip"], 3))
def test_a_projects_source_serves_who_trusts_it(run, written, unknown, tmp_path, place, way) -> None:
    """A setup of one's own that took packages from a project's index is applied again, by the consent of torch's."""
    url = unknown.url if place == "indexes" else f"{unknown.url}/numpy/"
    config = written(beside={place: (url,)}, numpy="99.0")
    setting = {"indexes": "PIP_EXTRA_INDEX_URL", "links": "PIP_FIND_LINKS"}[place]
    options = ("--trust-index", url) if way == "option" else ()
    variables = {setting: url} if way == "pip" else {}
    done = run("apply", config, "--dry-run", "--target", tmp_path / "env", *options, typed="y\n", **variables)
    assert done.returncode == 0, done.stderr
    assert (f"{url}, which is no known index. Trust it?" in done.stdout) is (way == "answer")
    assert unknown.requests


@pytest.mark.parametrize("how", sampled(["--dry-run", "--yes"], 2))
def test_an_unknown_index_is_not_asked_before_it_is_trusted(run, written, tmp_path, how) -> None:
    """Not one request reaches it; with --trust-index it is asked, and what is not the same file is not fetched."""
    (tmp_path / "unknown").mkdir()
    unknown = LoopbackIndex(tmp_path / "unknown")
    try:
        config = written(index_url=unknown.url, hashes={"torch": "0" * 64})
        refused(run("apply", config, how, "--target", tmp_path / "env"), 2, unknown.url, "--trust-index")
        assert unknown.requests == []
        unknown.add("torch", config_torch(config))
        trusted = ("--trust-index", unknown.url)
        refused(run("apply", config, how, "--target", tmp_path / "env", *trusted), 1, "file of the package torch")
        assert unknown.requests
        assert not list((tmp_path / "home").rglob("*.whl"))
    finally:
        unknown.close()


def config_torch(config: Path) -> str:
    """Give the build of torch that a configuration holds."""
    return str(tomllib.loads(config.read_text("utf-8"))["environment"]["packages"]["torch"])


def test_what_is_listed_but_needed_by_nothing_is_not_installed(run, written, index, tmp_path) -> None:
    """A package with version and hash in the lock that nothing asks for is told, not taken along."""
    wheel = index.add("stowaway", "1.0")
    config = written(stowaway="1.0", hashes={"stowaway": "0" * 64})
    refused(run("apply", config, "--yes", "--target", tmp_path / "env"), 1, "stowaway")
    assert not any(wheel.name in path for path in index.requests)


def test_a_version_that_is_gone_is_told(run, written, index, tmp_path) -> None:
    """The versions of a configuration must hold: a newer one is no stand-in."""
    index.add("numpy", "2.0")
    config = written(numpy="1.5", hashes={"numpy": "0" * 64})
    done = run("apply", config, "--dry-run", "--target", tmp_path / "env")
    refused(done, 1, "The locked packages are not available as they were", "numpy")


@pytest.mark.parametrize("command", sampled([("install", "--yes"), ("install", "--dry-run"), ("setup", "--yes")], 3))
def test_a_pin_that_comes_as_source_is_not_built(run, index, tmp_path, command) -> None:
    """The sentence names the package and says that it would have to be built by hand."""
    mark = tmp_path / "it-ran"
    index.add_archive("evilpkg", "1.0", mark, by="backend")
    options = ("--backend", "cpu", "--index-url", index.url, "--pin", "evilpkg")
    done = run(*command, *options, "--target", tmp_path / "env")
    assert done.returncode in {1, 3}
    assert "evilpkg" in done.stderr
    assert "built by hand" in " ".join(done.stderr.split())
    assert not mark.exists()
    assert not (tmp_path / "env").exists()


def test_which_index_a_package_comes_from_is_in_the_preview(run, index, tmp_path) -> None:
    """`install --dry-run` prints it and its JSON holds it, with the package of the index that goes first."""
    (tmp_path / "private").mkdir()
    private = LoopbackIndex(tmp_path / "private")
    try:
        index.add("corplib", "99.0")
        private.add("corplib", "1.0")
        options = ("--backend", "cpu", "--index-url", index.url, "--pin", "corplib", "--target", tmp_path / "env")
        more = {"PIP_EXTRA_INDEX_URL": private.url}
        done = run("install", "--dry-run", *options, **more)
        assert done.returncode == 0, done.stderr
        assert "uv takes each package from the first" in " ".join(done.stdout.split())
        told = json.loads(run("install", "--dry-run", "--json", *options, **more).stdout)
        assert [finding["key"] for finding in told["findings"]] == ["several-indexes"]
        assert {one["name"]: one["version"] for one in told["resolution"]["packages"]}["corplib"] == "1.0"
    finally:
        private.close()


def test_a_person_is_asked_about_index_and_names_one_by_one(run, written, index, tmp_path) -> None:
    """A no to any of them ends it before the first request; what is asked names them."""
    config = written("numpyy", index_url="https://unknown.example/whl/cpu")
    target = ("--target", tmp_path / "env")
    done = run("apply", config, *target, typed="n\n")
    assert "https://unknown.example/whl/cpu, which is no known index. Trust it?" in done.stdout
    assert done.returncode == 2
    done = run("apply", config, *target, typed="y\nn\n")
    assert "numpyy. Are all of them what you expect, letter by letter?" in done.stdout
    assert done.returncode == 2
    assert index.requests == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"request": {"indexes": ["{url}"]}}, "indexes"),
        ({"request": {"links": ["{url}/numpy/"]}}, "links"),
        ({"request": {"project": "/etc"}}, "project"),
        ({"request": {"overrides": ["numpy @ {url}/numpy/numpy-99.0-py3-none-any.whl"]}}, "overrides"),
        ({"request": {"constraints": ["numpy<2"]}}, "constraints"),
        ({"request": {"pins": ["numpy @ {url}/numpy/numpy-99.0-py3-none-any.whl"]}}, "numpy @ …"),
        ({"pins": ["numpy @ {url}/numpy/numpy-99.0-py3-none-any.whl"]}, "numpy @ …"),
    ],
)
def test_a_machines_file_chooses_no_source(run, unknown, index, tmp_path, asked, named) -> None:
    """It may ask for packages; whatever else it names is refused, in a batch in its line, and nobody is asked."""
    text = json.dumps({"os": "linux", "arch": "x86_64", "python": "3.12", **asked}).replace("{url}", unknown.url)
    file = tmp_path / "machine.json"
    file.write_text(text)
    refused(run("plan", "--machine", file), 2, f"not say where they come from: {named}", "--trust-index")
    done = run("plan", "--machines", file)
    assert (done.returncode, named in json.loads(done.stdout)["error"]) == (0, True)
    assert (index.requests, unknown.requests) == ([], [])
