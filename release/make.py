# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "uv",  # builds, checks and installs
# ]
# ///
"""Build and try what a release publishes: `uv run release/make.py FOLDER [--tag v0.2.0]`.

It builds from the commit that is checked out and from nothing else, so that the same commit gives the same bytes, and
refuses what should not become a release. It publishes nothing: the workflows do, from a tag.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = "release/constraints.txt"  # the releases of what builds: another hatchling may write other bytes
UV = (sys.executable, "-m", "uv")
REPLAYED = "linux-ubuntu2404-rtx4090"  # the recorded machine that the built wheel must plan for
NEWEST = r"^## (?P<version>\S+) - (?P<day>.+)$"  # the first heading of CHANGELOG.md: "## 0.2.0 - 2026-12-01"


def main() -> None:
    """Check the commit, build, check what came of it, and list it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel and the source archive are written")
    parser.add_argument("--tag", help="the tag that is released, such as v0.2.0; without one it is a rehearsal")
    wanted = parser.parse_args()
    if said := refusal(wanted.tag):
        sys.exit(f"Nothing was built: {said}")
    if wanted.folder.exists() and any(path.name != ".gitignore" for path in wanted.folder.iterdir()):
        sys.exit(f"Nothing was built: {wanted.folder} is not empty; all that lies there would be published.")
    target = wanted.folder.resolve()
    with TemporaryDirectory() as scratch:
        files = build(Path(scratch))
        check(files)
        try_out(files, Path(scratch))
        os.chdir(ROOT)  # Windows removes no folder in which a program works
        target.mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copy(path, target)
            sys.stdout.write(listing(path))
    sys.stdout.write("Would be published on PyPI; nothing was. The workflow in .github/workflows does that.\n")


def refusal(tag: str | None) -> str:
    """Return why this commit should not be released, in a sentence; "" where nothing speaks against it."""
    if changed := git("status", "--porcelain").splitlines():
        return f"{len(changed)} files differ from the commit, such as {changed[0][3:]}; commit or remove them."
    return of_version(tag)


def of_version(tag: str | None) -> str:
    """Return why the version cannot be released; it stands in the package and at the top of the changelog."""
    found = re.search(NEWEST, (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    told, day = found.groups() if found else ("", "")
    version = own_version()
    before = git("tag", "--list", f"v{version}").strip()
    elsewhere = before and git("rev-list", "-1", before) != git("rev-list", "-1", "HEAD")
    reasons = {
        "CHANGELOG.md has no heading such as `## 0.2.0 - 2026-12-01`.": not found,
        f"assistant/__init__.py says {version}, the newest heading of CHANGELOG.md {told}; make them agree.": (
            told != version
        ),
        f"v{version} is the tag of another commit; raise the version in assistant/__init__.py and CHANGELOG.md.": (
            elsewhere
        ),
        f"the tag {tag} does not fit the version {version}; it should be v{version}.": tag not in {None, f"v{version}"},
        f"there is no tag {tag} yet; make it with `git tag {tag}`.": tag and not before,
        f"CHANGELOG.md says “{day}” of {version}; write the day of the release there, such as 2026-12-01.": (
            tag and not re.fullmatch(r"\d{4}-\d\d-\d\d", day)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def own_version() -> str:
    """Return the version of the package."""
    text = (ROOT / "assistant" / "__init__.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


def git(*words: str) -> str:
    """Run git in this project and return what it prints."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"Nothing was built: git says “{done.stderr.strip()}”; a release is made from a clone.")
    return done.stdout


def run(words: Sequence[object], **variables: str) -> str:
    """Run a command in the files of the commit and return what it prints; where it fails, end with a sentence."""
    command = [str(word) for word in words]
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}Not fit for a release: `{' '.join(command)}` failed.")
    return done.stdout


def build(scratch: Path) -> list[Path]:
    """Build a source archive, and a wheel from it, from the files of the commit; return both."""
    tree, folder = scratch / "tree", scratch / "dist"
    packed = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        files.extractall(tree, filter="data")
    os.chdir(tree)  # the path of the constraints may hold no spaces
    fixed = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").strip(), "UV_BUILD_CONSTRAINT": CONSTRAINTS}
    run([*UV, "build", "--out-dir", folder], **fixed)
    return sorted(path for path in folder.iterdir() if path.suffix in {".gz", ".whl"})


def check(files: Sequence[Path]) -> None:
    """Let two linters look for what PyPI would refuse, and for what does not belong into a wheel."""
    wheels = [path for path in files if path.suffix == ".whl"]
    run([*UV, "tool", "run", "--from", "twine>=6", "twine", "check", "--strict", *files])
    linter = "check-wheel-contents"
    run([*UV, "tool", "run", "--from", f"{linter}>=0.6", linter, "--config", "pyproject.toml", *wheels])


def try_out(files: Sequence[Path], scratch: Path) -> None:
    """Install the wheel into an empty environment, and plan."""
    wheel = next(path for path in files if path.suffix == ".whl")
    place = scratch / "env"
    run([*UV, "venv", "--python", sys.executable, place])
    run([*UV, "pip", "install", "--python", place, wheel])
    homes = dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME", "LOCALAPPDATA"), str(scratch / "home"))
    program = place / ("Scripts" if sys.platform == "win32" else "bin") / "torch-setup-assistant"
    sys.stdout.write(run([program, "plan", "--replay", REPLAYED], **homes))


def listing(path: Path) -> str:
    """Return a file's name, size and SHA-256, and how many files it holds in which folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
    else:
        with tarfile.open(path) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
    folders = Counter("/".join(name.split("/")[:2][: name.count("/")]) or "." for name in names)
    head = f"{path.name} {path.stat().st_size} bytes sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
    return head + "".join(f"  {count:5} {folder}\n" for folder, count in sorted(folders.items()))


if __name__ == "__main__":
    main()
