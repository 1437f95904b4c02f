"""The tables as a distribution of their own: built for real, installed by pip, preferred where they are newer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex

from assistant.catalog import load_catalog
from assistant.catalog.editions import LIMIT, MANIFEST, PACKAGE, data_files, digest, editions, look_again, manifest_of
from assistant.model.record import to_json

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
TAG = "cp312-cp312-manylinux_2_28_x86_64"
NEW = "9.1.0"


def built(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command that makes a release, with pip configured for nothing else than what it is told."""
    sources = {"PIP_INDEX_URL": options[-1], "PIP_CONFIG_FILE": os.devnull} if "--index-url" in options else {}
    return subprocess.run(
        [sys.executable, ROOT / "catalogue" / "build.py", folder, *options],
        env={**os.environ, **sources, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a release from tables that were refreshed from an index with a new torch, and give its folder."""
    index = LoopbackIndex(tmp_path_factory.mktemp("index"))
    index.add("torch", f"{NEW}+cpu", TAG)
    folder = tmp_path_factory.mktemp("dist")
    done = built(folder, "--version", "2030.1.2", "--index-url", index.url)
    index.close()
    assert done.returncode == 0, done.stderr
    assert f"torch {NEW} is new: cpu." in done.stdout
    return folder


@pytest.fixture(scope="module")
def site(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the release with pip, from an index over HTTP, into a folder of packages."""
    index = LoopbackIndex(tmp_path_factory.mktemp("mirror"))
    shutil.copytree(release, index.folder / "torch-setup-catalogue", ignore=shutil.ignore_patterns(".*"))
    site = tmp_path_factory.mktemp("env") / "site-packages"
    words = ["install", "--quiet", "--target", site, "--index-url", index.url, "torch-setup-catalogue"]
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    subprocess.run([sys.executable, "-m", "pip", *words], env=environment, check=True)
    index.close()
    return site


@pytest.fixture
def installed(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a copy of what was installed, found by this process as if it were in its environment, to be spoilt."""
    own = tmp_path / "site-packages"
    shutil.copytree(site, own)
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    look_again()
    yield own
    look_again()


def knows_the_new() -> bool:
    """Return whether plans are based on what was installed."""
    look_again()
    return load_catalog().release(NEW) is not None


def signed_anew(folder: Path) -> None:
    """Let the manifest fit the files as they are now."""
    texts = {name: (folder / f"{name}.json").read_bytes() for name in data_files()}
    manifest = manifest_of(texts, {name: f"{name}.json" for name in texts}, "2030.1.2")
    (folder / MANIFEST).write_text(to_json(manifest))


def test_a_release_holds_data_and_no_code(release):
    """A wheel for every Python with each data file, a manifest and no module; a source archive beside it."""
    (wheel,) = release.glob("*.whl")
    assert wheel.name == "torch_setup_catalogue-2030.1.2-py3-none-any.whl"
    assert (release / "torch_setup_catalogue-2030.1.2.tar.gz").is_file()
    with zipfile.ZipFile(wheel) as files:
        inside = {name.removeprefix(f"{PACKAGE}/") for name in files.namelist() if ".dist-info" not in name}
        manifest = json.loads(files.read(f"{PACKAGE}/{MANIFEST}"))
    assert inside == {MANIFEST, *(f"{name}.json" for name in data_files())}
    assert (manifest["schema"], manifest["version"], {*manifest["files"]}) == (1, "2030.1.2", {*data_files()})


def test_no_release_is_built_where_no_index_answers(tmp_path):
    """A release says that the indexes were asked; `--as-they-are` is the way to do without."""
    done = built(tmp_path, "--index-url", "http://127.0.0.1:9/simple")
    assert done.returncode == 1
    assert "Nothing was built" in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_pip_installed_is_preferred_by_every_command(site, tmp_path):
    """The plan takes the release that only the installed tables know, and `catalog show` says where it is from."""
    environment = {**os.environ, "PYTHONPATH": str(site), "XDG_DATA_HOME": str(tmp_path), "LANGUAGE": "en"}
    (tmp_path / "m.json").write_text('{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}')
    command = [sys.executable, "-m", "assistant"]
    paths = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    done = subprocess.run(
        [*command, "plan", "--json", "--machine", tmp_path / "m.json"],
        env={**environment, **paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["choice"]["torch"] == NEW
    shown = subprocess.run(
        [*command, "catalog", "show"], env={**environment, **paths}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[0].startswith("Shipped with the assistant")
    assert "not in force" in shown[0]
    assert shown[1].startswith("Installed (torch-setup-catalogue 2030.1.2)")
    assert ": in force (" in shown[1]


@pytest.mark.usefixtures("installed")
def test_what_is_installed_is_in_force():
    """All its files are, without a word."""
    assert knows_the_new()
    assert not load_catalog().remark
    assert {editions().of(name).version for name in data_files()} == {"2030.1.2"}


def test_an_older_one_is_left_alone(installed):
    """Tables older than the shipped ones are not used, and nothing has to be said about them."""
    for path in (installed / PACKAGE).glob("*.json"):
        path.write_text(path.read_text().replace('"as_of": "2026', '"as_of": "2024'))
    signed_anew(installed / PACKAGE)
    assert not knows_the_new()
    assert not load_catalog().remark
    assert len(editions().whole) == 2


def test_of_two_the_newer_is_taken(installed, tmp_path, monkeypatch):
    """Two folders of packages on one path, as with an overlay: the order of the path does not matter."""
    other = tmp_path / "overlay" / "site-packages"
    shutil.copytree(installed, other)
    for path in (other / PACKAGE).glob("*.json"):
        path.write_text(path.read_text().replace('"as_of": "2026', '"as_of": "2024'))
    signed_anew(other / PACKAGE)
    monkeypatch.syspath_prepend(str(other))
    assert knows_the_new()
    assert editions().of("torch").folder == installed / PACKAGE
    assert len(editions().whole) == 3


def test_where_the_newer_of_two_is_broken_the_next_is_used(installed, tmp_path, monkeypatch):
    """And the broken one is named."""
    other = tmp_path / "overlay" / "site-packages"
    shutil.copytree(installed, other)
    (other / PACKAGE / "torch.json").write_text("{}")
    monkeypatch.syspath_prepend(str(other))
    assert knows_the_new()
    assert str(other) in str(load_catalog().remark)


def test_what_lies_in_the_current_folder_is_not_obeyed(installed, tmp_path, monkeypatch):
    """Python looks there first for modules; tables are looked for among installed packages alone."""
    here = tmp_path / "project"
    shutil.copytree(installed, here)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.chdir(here)
    look_again()
    assert len(editions().whole) == 2


def test_no_code_of_it_is_run(installed):
    """Whoever puts a module into the package does not get it started."""
    mark = installed / "mark"
    (installed / PACKAGE / "__init__.py").write_text(f"open({str(mark)!r}, 'w').close()")
    assert knows_the_new()
    assert not mark.exists()
    assert PACKAGE not in sys.modules


def cut(package: Path) -> None:
    """Leave half of the manifest."""
    (package / MANIFEST).write_text((package / MANIFEST).read_text()[:300])


def edit(package: Path) -> None:
    """Change a file after it was installed."""
    path = package / "indexes.json"
    path.write_text(path.read_text().replace("https://", "http://"))


def bloat(package: Path) -> None:
    """Make a file of many gigabytes, none of which is on the disk."""
    with (package / "companions.json").open("r+b") as file:
        file.truncate(LIMIT << 10)


def bloat_manifest(package: Path) -> None:
    """Do the same to the manifest."""
    with (package / MANIFEST).open("r+b") as file:
        file.truncate(LIMIT << 10)


def lose(package: Path) -> None:
    """Delete a file."""
    (package / "rocm.json").unlink()


def lose_manifest(package: Path) -> None:
    """Delete the manifest."""
    (package / MANIFEST).unlink()


def lose_release(package: Path) -> None:
    """Take out a release that the assistant knows, and let the manifest fit."""
    tables = json.loads((package / "torch.json").read_text())
    tables["releases"]["rows"].pop(0)
    (package / "torch.json").write_text(json.dumps(tables))
    signed_anew(package)


def retype(package: Path) -> None:
    """Put a number where a text belongs, and let the manifest fit."""
    tables = json.loads((package / "cuda.json").read_text())
    tables["drivers"]["rows"][0]["variant"] = 126
    (package / "cuda.json").write_text(json.dumps(tables))
    signed_anew(package)


def garble(package: Path) -> None:
    """Write what is no JSON, and give its checksum."""
    text, manifest = b'{"releases": ', json.loads((package / MANIFEST).read_text())
    (package / "torch.json").write_bytes(text)
    manifest["files"]["torch"]["sha256"] = digest(text)
    (package / MANIFEST).write_text(json.dumps(manifest))


def nest(package: Path) -> None:
    """Write JSON that is nested deeper than any reader likes."""
    (package / MANIFEST).write_text('{"schema": 1, "files": ' + "[" * 100_000)


def climb(package: Path) -> None:
    """Name a file outside the package."""
    text = (package / MANIFEST).read_text().replace('"torch.json"', '"../torch.json"')
    (package / MANIFEST).write_text(text)
    shutil.copy(package / "torch.json", package.parent)


def bend(package: Path) -> None:
    """Put a link to a pipe in place of a file."""
    (package / "torch.json").unlink()
    os.mkfifo(package.parent / "pipe")
    (package / "torch.json").symlink_to(package.parent / "pipe")


def loop(package: Path) -> None:
    """Put a link to itself in place of the manifest."""
    (package / MANIFEST).unlink()
    (package / MANIFEST).symlink_to(package / MANIFEST)


def folder(package: Path) -> None:
    """Put a folder in place of a file."""
    (package / "torch.json").unlink()
    (package / "torch.json").mkdir()


def newer(package: Path) -> None:
    """Let it be for a newer assistant."""
    text = (package / MANIFEST).read_text().replace('"schema": 1', '"schema": 2, "rules": {}')
    (package / MANIFEST).write_text(text)


SPOILT = {
    cut: "truncated",
    edit: "indexes.json differs from its checksum",
    bloat: "larger than",
    bloat_manifest: "larger than",
    lose: "rocm.json",
    lose_manifest: MANIFEST,
    lose_release: "torch 1.13.0 is missing",
    retype: "variant",
    garble: "torch.json",
    nest: MANIFEST,
    climb: "torch",
    bend: "not a regular file",
    loop: MANIFEST,
    folder: "torch.json",
    newer: "update the assistant",
}


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
@pytest.mark.parametrize(("spoil", "culprit"), SPOILT.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_one_is_set_aside_with_a_sentence(installed: Path, spoil: Callable[[Path], None], culprit: str):
    """Plans rest on the shipped tables, all of them, and say which folder is passed over, why, and what to do."""
    spoil(installed / PACKAGE)
    assert not knows_the_new()
    remark = str(load_catalog().remark)
    assert str(installed / PACKAGE) in remark
    assert culprit in remark
    assert "torch-setup-catalogue again" in remark or "update the assistant" in remark
    assert {editions().of(name).origin.name for name in data_files()} == {"SHIPPED"}


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_files_that_an_installer_linked_are_read(installed, tmp_path):
    """As uv's `--link-mode symlink` leaves them: what counts is what they hold."""
    shutil.move(installed / PACKAGE, tmp_path / "cache")
    (installed / PACKAGE).mkdir()
    for path in (tmp_path / "cache").iterdir():
        (installed / PACKAGE / path.name).symlink_to(path)
    assert knows_the_new()
    assert not load_catalog().remark


def test_names_that_the_assistant_does_not_know_are_left_alone(installed):
    """A data file of tomorrow is no fault of today's edition."""
    manifest = json.loads((installed / PACKAGE / MANIFEST).read_text())
    manifest["files"]["prices"] = {"file": "prices.json", "sha256": "0"}
    (installed / PACKAGE / MANIFEST).write_text(json.dumps(manifest))
    assert knows_the_new()
    assert not load_catalog().remark
