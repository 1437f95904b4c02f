# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch-setup-assistant",  # reads the tables and brings them up to date
#   "uv",                     # builds the distribution
# ]
#
# [tool.uv.sources]
# torch-setup-assistant = { path = "..", editable = true }
# ///
"""Build the distribution of the tables, brought up to date from the indexes: `uv run catalogue/build.py FOLDER`.

It holds the data files and a manifest, and no code. A release of an index that cannot be asked is as it was in the
tables of this checkout, and is named; where none answers, nothing is built. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.catalog import load_catalog
from assistant.catalog.companions import load_companions
from assistant.catalog.editions import MANIFEST, PACKAGE, data_files, editions, manifest_of
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped
from assistant.model.record import to_json
from assistant.plan import make_plans

HERE = Path(__file__).parent


def main() -> None:
    """Refresh the tables in a folder of their own, try them, and build from them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel and the source archive are written")
    parser.add_argument(
        "--version", default=f"{datetime.now(UTC):%Y.%-m.%-d}", help="such as 2026.11.23, which is today"
    )
    parser.add_argument("--index-url", help="ask this index instead of torch's own")
    parser.add_argument("--as-they-are", action="store_true", help="ask no index: build from this checkout's tables")
    wanted = parser.parse_args()
    with TemporaryDirectory() as name:
        os.environ["XDG_DATA_HOME"] = name  # what this user has refreshed stays out of it
        if not wanted.as_they_are:
            refresh(["--index-url", wanted.index_url] if wanted.index_url else [])
        write_project(Path(name) / "project", tried(), wanted.version)
        command = [sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", wanted.folder, Path(name) / "project"]
        subprocess.run(command, check=True)
    sys.stdout.writelines(f"{path}\n" for path in sorted(wanted.folder.glob(f"*{wanted.version}*")))


def refresh(options: list[str]) -> None:
    """Let the assistant bring its tables up to date, and tell what it changed and whom it could not ask."""
    command = [sys.executable, "-m", "assistant", "catalog", "refresh", "--yes", "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("Nothing was built: the tables could not be brought up to date.")
    answer = json.loads(done.stdout)
    sys.stdout.writelines(
        f"{told['text']}\n" for told in (*answer["changes"], *answer["not_checked"], *answer.get("not_read", ()))
    )


def tried() -> Mapping[str, bytes]:
    """Return the data files in force, after every recorded machine was planned with them."""
    catalog = load_catalog()
    load_companions()
    for name in shipped():
        make_plans(detect(ReplayHost(load(name))).machine, catalog)
    if editions().remark:
        sys.exit(f"Nothing was built: {editions().remark}")
    return {name: editions().of(name).text(name) for name in data_files()}


def write_project(folder: Path, texts: Mapping[str, bytes], version: str) -> None:
    """Write what the distribution is built from."""
    (folder / PACKAGE).mkdir(parents=True)
    for name, text in texts.items():
        (folder / PACKAGE / f"{name}.json").write_bytes(text)
    manifest = manifest_of(texts, {name: f"{name}.json" for name in texts}, version)
    (folder / PACKAGE / MANIFEST).write_text(to_json(manifest, indent=1), encoding="utf-8")
    for path in (HERE / "pyproject.toml", HERE / "README.md", HERE.parent / "LICENSE"):
        shutil.copy(path, folder)


if __name__ == "__main__":
    main()
