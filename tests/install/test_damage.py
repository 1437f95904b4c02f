"""What is damaged is fetched again, what is the user's comes along, and what a kill left half is made whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from install.faults import Ground, Nursery, picture, rich_wheel
from install.test_hostile_state import BODIES, put, site_of, versions, write
from install.test_mending import project
from install.workbench import imports_torch, installed
from tables import sampled

from assistant.host.live import LiveHost
from assistant.install import in_place
from assistant.install.contents import find_incomplete, wheel_path
from assistant.install.environments import Places
from assistant.install.installation import Outcome, prepare, recover
from assistant.install.site import Site
from assistant.model.errors import WorkFailed
from assistant.model.record import replace
from assistant.model.report import Environment, LogLine

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="forks, links and pipes; Windows has none of the three"),
]


def cut(path: Path) -> None:
    """Cut a file in half."""
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    """Leave a file of no bytes, as a power cut does."""
    os.truncate(path, 0)


def altered(path: Path) -> None:
    """Change bytes, not the size."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(bytes(50))


def zeroed(path: Path) -> None:
    """Fill with zeros, not changing the size."""
    path.write_bytes(bytes(path.stat().st_size))


def swapped(path: Path) -> None:
    """Put another wheel under the name."""
    path.write_bytes(b"PK\x03\x04 something else")


def longer(path: Path) -> None:
    """Append to it."""
    with path.open("ab") as file:
        file.write(b"more")


def install(ground: Ground, kind: str) -> Environment:
    """Install into a new environment, into ours or into somebody else's."""
    if kind == "new":
        return ground.make(ground.resolution())
    return ground.change(ground.resolution(), target=ground.standing if kind == "existing" else ground.build_foreign())


def is_whole(ground: Ground, made: Environment) -> bool:
    """Check that all of the plan is there, file for file, and nothing else is left."""
    target = Path(made.path)
    assert versions(target) == ground.resolution().versions
    assert find_incomplete(target) == {}
    assert (site_of(target) / "torch" / "lib" / "library.so").stat().st_size > 100_000
    assert ground.debris() == []
    return True


@pytest.mark.parametrize("kind", [*sampled(["new", "existing"], 2), "foreign"])
@pytest.mark.parametrize(
    "harm", sampled([cut, emptied, altered, zeroed, swapped, longer], 3), ids=lambda harm: harm.__name__
)
def test_a_damaged_wheel_is_fetched_again(ground: Ground, harm: Callable[[Path], None], kind: str) -> None:
    """It is set aside, which is told, and the installation goes through with a whole one."""
    install(ground, "new")
    for folder in (ground.new, ground.folder / "uv"):
        shutil.rmtree(folder)
    harm(wheel_path(ground.resolution().packages[-1]))
    ground.events.clear()
    assert is_whole(ground, install(ground, kind))
    assert [event for event in ground.events if isinstance(event, LogLine) and "is damaged" in str(event.text)]


@pytest.mark.parametrize("kind", [*sampled(["new", "existing"], 2), "foreign"])
@pytest.mark.parametrize("harm", sampled([cut, emptied, Path.unlink], 3), ids=["cut", "emptied", "gone"])
@pytest.mark.parametrize(
    "names",
    sampled(
        ["archive-v0/*/torch/lib/*", "archive-v0/*/*.dist-info/*", "**/*.dist-info/RECORD", "**/*.rev", "**/*.http"], 2
    ),
)
def test_a_damaged_cache_of_the_installers_does_not_matter(
    ground: Ground, harm: Callable[[Path], None], names: str, kind: str
) -> None:
    """Uv links what it unpacked before without looking at it: what is not whole is unpacked anew, without its cache."""
    install(ground, "new")
    shutil.rmtree(ground.new)
    for path in ground.folder.joinpath("uv").glob(names):
        harm(path)
    assert is_whole(ground, install(ground, kind))


@pytest.mark.parametrize("kind", ["new", "foreign"])
@pytest.mark.parametrize(
    "body", sampled(["a folder", "a pipe", "a link to a device", "a link to itself", "a link to another file"], 5)
)
def test_what_is_no_wheel_is_fetched_again(ground: Ground, body: str, kind: str) -> None:
    """A pipe does not make it wait, a link to a device does not fill the memory."""
    for package in ground.resolution().packages:
        put(wheel_path(package), BODIES[body])
    assert is_whole(ground, install(ground, kind))


@pytest.mark.parametrize("kind", ["new", "foreign"])
def test_a_damaged_wheel_of_the_users_own_is_named(ground: Ground, kind: str) -> None:
    """A folder of wheels is the user's: nothing in it is moved, and the sentence names the file."""
    resolution, wheel = ground.resolution(), ground.folder / "torch-9.0-py3-none-any.whl"
    shutil.copy(ground.index.folder / "torch" / wheel.name, wheel)
    packages = tuple(replace(one, url=wheel.as_uri()) if one.name == "torch" else one for one in resolution.packages)
    cut(wheel)
    resolution, before = replace(resolution, packages=packages), wheel.read_bytes()
    with pytest.raises(WorkFailed, match="its size or hash differs") as refused:
        ground.make(resolution) if kind == "new" else ground.change(resolution, target=ground.build_foreign())
    assert str(wheel) in str(refused.value.message)
    assert wheel.read_bytes() == before
    assert ground.debris() == []


# What users keep in an environment, by its path there; "SITE" is the packages' folder.
OWN = ["SITE/mine.txt", "SITE/torch/mine/model.bin", "notebooks/a/b.ipynb", ".env", "bin/my-tool"]


@pytest.mark.parametrize("path", sampled(OWN, 5))
@pytest.mark.parametrize("form", ["file", "link", "link to a folder", "pipe", "read-only"])
def test_the_users_files_come_along(ground: Ground, path: str, form: str) -> None:
    """Wherever they lie in an environment of ours, and whatever they are; the old one keeps them, too."""
    inside = path.replace("SITE", str(site_of(ground.standing).relative_to(ground.standing)))
    file, goal = ground.standing / inside, ground.folder / "data"
    write({file: "# mine", goal / "x": "weights"})
    if form != "file":
        file.chmod(0o400) if form == "read-only" else file.unlink()
    if form == "pipe":
        os.mkfifo(file)
    if form.startswith("link"):
        file.symlink_to(goal if form == "link to a folder" else goal / "x")
    before = picture(ground.standing)
    ground.change(ground.resolution())
    assert picture(ground.standing)[inside] == before[inside]
    assert picture(Places(ground.standing).old) == before
    assert (goal / "x").read_text() == "weights"
    assert versions(ground.standing) == ground.resolution().versions


def test_edited_files_of_packages_stay_with_the_old_environment(ground: Ground) -> None:
    """Those of a package that comes in another version are its own; undoing brings the edited ones back."""
    edited = site_of(ground.standing) / "torch" / "__init__.py"
    write({edited: "__version__ = 'patched'"})
    ground.change(ground.resolution())
    assert "patched" not in edited.read_text()
    assert "patched" in (site_of(Places(ground.standing).old) / "torch" / "__init__.py").read_text()


def add(ground: Ground, target: Path, name: str, version: str) -> None:
    """Let the user install a package into an environment."""
    (ground.index.folder / name).mkdir(exist_ok=True)
    wheel = rich_wheel(ground.index.folder / name, name, version)
    words = ["--python", target / "bin" / "python", f"--find-links={wheel.parent}", f"{name}=={version}"]
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--no-index", *words], check=True)


def test_packages_and_the_pip_that_the_user_added_come_along(ground: Ground) -> None:
    """The resolution holds them, in their versions; a pip that is newer than Python's stays."""
    add(ground, ground.standing, "mine", "1.0")
    add(ground, ground.standing, "pip", "99.0")
    rich_wheel(ground.index.folder / "mine", "mine", "2.0")
    installed(prepare(ground.plan, str(ground.standing), ground.tools), imports_torch, ground.tools)
    held = Site.ask(ground.standing, LiveHost()).versions
    assert (held["torch"], held["mine"], held["pip"]) == ("9.0", "1.0", "99.0")
    assert Places(ground.standing).old.exists()


def test_a_package_from_a_folder_makes_the_environment_one_that_is_changed_in_place(ground: Ground) -> None:
    """No index has it, so it could not be built anew: it stays what it is, a link to the user's folder."""
    folder = project(ground.folder / "project", "mine")
    words = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*words, "--python", ground.standing / "bin" / "python", "--editable", folder], check=True)
    prepared = prepare(ground.plan, str(ground.standing), ground.tools)
    assert [finding.key for finding in prepared.findings if finding.key == "changed-in-place"]
    installed(prepared, imports_torch, ground.tools)
    assert versions(ground.standing) == {**ground.resolution().versions, "mine": "0.1"}
    assert not Places(ground.standing).old.exists()


def copied(ground: Ground) -> Path:
    """Make somebody else's environment, with a copy to begin anew from."""
    return Path(shutil.copytree(ground.build_foreign(), ground.folder / "pristine", symlinks=True))


def again(ground: Ground, pristine: Path) -> None:
    """Bring the first state back."""
    for path in (ground.foreign, ground.folder / "state", ground.folder / "jupyter"):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(pristine, ground.foreign, symlinks=True)


@pytest.mark.parametrize("by", ["change of a file", "time"])
def test_a_killed_change_in_place_is_put_back(ground: Ground, by: str) -> None:
    """Killed at many moments, uv among its packages: the versions from before or the plan's, each with its files."""
    pristine, mine = copied(ground), picture(ground.standing / "notebooks")
    nursery = Nursery(ground, ground.resolution())
    try:
        most = int(nursery.attempt("foreign"))
        for number in range(1, 13):
            again(ground, pristine)
            moment = {"operation": most * number // 12} if by != "time" else {"seconds": 0.05 * number}
            nursery.attempt("foreign", **moment)
            recover(ground.tools)
            assert versions(ground.foreign) in ({"torch": "8.0"}, ground.resolution().versions), moment
            assert find_incomplete(ground.foreign) == {}, moment
            assert picture(ground.foreign / "notebooks") == mine
            assert ground.debris() == [], moment
    finally:
        nursery.close()


def gone(ground: Ground) -> None:
    """Delete the environment."""
    shutil.rmtree(ground.foreign)


def made_anew(ground: Ground) -> None:
    """Make another one in its place by hand."""
    gone(ground)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "-q", "--no-project", "--python", sys.executable, ground.foreign], check=True)
    add(ground, ground.foreign, "mine", "1.0")


def added(ground: Ground) -> None:
    """Go on with it and install something else."""
    add(ground, ground.foreign, "mine", "1.0")


def half_written(name: str, harm: Callable[[Path], None] = Path.unlink) -> Callable[[Ground], None]:
    """Leave what a killed uv or a power cut leaves: a distribution without some of its files, or with empty ones."""

    def deed(ground: Ground) -> None:
        for path in site_of(ground.foreign).glob(name):
            harm(path)

    deed.__name__ = f"{name} {harm.__name__}"
    return deed


BACK = {"torch": "8.0"}


@pytest.mark.parametrize(
    ("deed", "expected"),
    [
        (gone, None),
        (made_anew, {"mine": "1.0"}),
        (added, {**BACK, "mine": "1.0"}),
        *(
            (half_written(f"{one}-*.dist-info/{file}", harm), BACK)
            for one in ("torch", "numpy")
            for file in ("RECORD", "METADATA")
            for harm in (Path.unlink, emptied)
        ),
        (half_written("torch/m*.py"), BACK),
        (half_written("*.dist-info/*"), BACK),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_an_environment_of_somebody_else_after_a_kill(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Ground], None], expected: dict[str, str] | None
) -> None:
    """What the user did to it meanwhile stays, what the change did is put back, and nothing blocks the next start."""
    ground.build_foreign()
    with monkeypatch.context() as patch:
        patch.setattr(in_place, "restore_packages", lambda *_: True)
        with pytest.raises(WorkFailed, match="no"):
            ground.change(ground.resolution(), _refuse, ground.foreign)
    deed(ground)
    assert not [one for one in recover(ground.tools) if one.outcome is Outcome.FAILED]
    assert ground.debris() == []
    assert (versions(ground.foreign) if ground.foreign.exists() else None) == expected
    assert find_incomplete(ground.foreign) == {}
    if "METADATA" in getattr(deed, "__name__", ""):  # its RECORD says which files it brought
        assert not (site_of(ground.foreign) / "numpy" / "m1.py").exists()


def test_files_that_the_user_edited_stay_where_a_change_in_place_did_not_come_far(ground: Ground) -> None:
    """The version is the one from before, so there is nothing to bring back; the index need not have it any more."""
    edited = site_of(ground.build_foreign()) / "torch" / "__init__.py"
    write({edited: "__version__ = 'patched'"})
    (site_of(ground.foreign) / "torch" / "m1.py").unlink()
    before = picture(ground.foreign)
    ground.index.file_trouble["torch"] = 404
    with pytest.raises(WorkFailed, match=r"torch.* cannot be fetched"):
        ground.change(ground.resolution(), target=ground.foreign)
    assert picture(ground.foreign) == before
    assert ground.debris() == []


def _refuse(_made: object, _lock: object) -> None:
    raise WorkFailed("no")
