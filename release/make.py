# /// script
# requires-python = ">=3.11"
# dependencies = ["uv"]
# ///
"""Build and try what a release publishes: `uv run release/make.py FOLDER [--tag v0.2.0]`.

It builds from the commit that is checked out and from nothing else, so that the same commit gives the same bytes, and
publishes nothing: the workflow does, from a tag.
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
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
UV = (sys.executable, "-m", "uv")
CONSTRAINTS = "release/constraints.txt"  # the releases of what builds: another hatchling may write other bytes
REPLAYED = "linux-ubuntu2404-rtx4090"  # the recorded machine that the built wheel must plan for


def main() -> None:
    """Check the commit; build, check, install and plan once; then copy and list what would be published."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel and the source archive are written")
    parser.add_argument("--tag", help="the tag that is released, such as v0.2.0; without one it is a rehearsal")
    asked = parser.parse_args()
    if reason := refusal(asked.tag):
        sys.exit(f"Nothing was built: {reason}")
    with TemporaryDirectory() as name:
        files = build(Path(name))
        try_out(*files, Path(name))
        asked.folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copy(path, asked.folder)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            sys.stdout.write(f"{path.name} {path.stat().st_size} bytes sha256:{digest}\n")


def refusal(tag: str | None) -> str:
    """Return why this commit should not be released, in a sentence; "" where nothing speaks against it."""
    changed = run(ROOT, "git", "status", "--porcelain").splitlines()
    package, changelog = ((ROOT / name).read_text("utf-8") for name in ("assistant/__init__.py", "CHANGELOG.md"))
    (version,) = re.findall(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    headings = re.findall(r"^## (\S+) - (.+)$", changelog, re.MULTILINE)
    newest, day = (*headings, ("", ""))[0]
    if changed:
        return f"{len(changed)} files differ from the commit, such as {changed[0][3:]}; commit or remove them."
    if newest != version:
        return f"assistant/__init__.py says {version}, the newest heading of CHANGELOG.md {newest}; make them agree."
    if tag and tag != f"v{version}":
        return f"the tag {tag} does not fit the version {version}; it should be v{version}."
    if tag and not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        return f"CHANGELOG.md says “{day}” of {version}; write the day of the release there, such as 2026-12-01."
    return ""


def build(scratch: Path) -> tuple[Path, Path]:
    """Build a source archive, and a wheel from it, from the files of the commit; return both."""
    run(ROOT, "git", "archive", "--output", scratch / "commit.tar", "HEAD")
    with tarfile.open(scratch / "commit.tar") as commit:
        commit.extractall(scratch / "tree", filter="data")
    day = run(ROOT, "git", "log", "-1", "--format=%ct").strip()
    fixed = {"SOURCE_DATE_EPOCH": day, "UV_BUILD_CONSTRAINT": CONSTRAINTS}
    run(scratch / "tree", *UV, "build", "--out-dir", scratch / "dist", **fixed)
    return next((scratch / "dist").glob("*.tar.gz")), next((scratch / "dist").glob("*.whl"))


def try_out(archive: Path, wheel: Path, scratch: Path) -> None:
    """Let linters look for what PyPI would refuse; install the wheel into an empty environment, and plan with it."""
    run(scratch, *UV, "tool", "run", "--from", "twine>=6", "twine", "check", "--strict", archive, wheel)
    linter = "check-wheel-contents"
    run(scratch / "tree", *UV, "tool", "run", "--from", f"{linter}>=0.6", linter, wheel)
    run(scratch, *UV, "venv", "--python", sys.executable, "env")
    run(scratch, *UV, "pip", "install", "--python", "env", wheel)
    program = scratch / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "torch-setup-assistant"
    homes = dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME", "LOCALAPPDATA"), str(scratch / "home"))
    sys.stdout.write(run(scratch, program, "plan", "--replay", REPLAYED, **homes))


def run(folder: Path, *words: str | Path, **variables: str) -> str:
    """Run a command in a folder and return what it prints; where it fails, end with that and a sentence."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(words, cwd=folder, env={**clean, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}Not fit for a release: `{' '.join(map(str, words))}` failed.")
    return done.stdout


if __name__ == "__main__":
    main()
