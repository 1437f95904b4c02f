"""The extras of this distribution: their packages, which are missing, how to install them; and where uv is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.process import child_environment, is_run_by_uvx
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.shell import command_line

NAME = "torch-setup-assistant"
SMALLEST_FIRST = ("uv", "onnx", "projects", "classroom", "labs", "lab", "agents")
_MODULES = {"google": "protobuf"}  # modules with another name than their package


def require_extra(extra: str) -> None:
    """Raise `WorkFailed`, with the command to type, if a package of an extra is not installed."""
    for package in _packages_of(extra):
        if _is_missing(package):
            raise missing_extra_error(package, extra)


def find_extra(module: str) -> tuple[str, str] | None:
    """Return the package that contains a module, and our smallest extra that has it; None if no extra has it."""
    top = module.partition(".")[0]
    package = canonicalize_name(_MODULES.get(top, top))
    return next(((package, extra) for extra in SMALLEST_FIRST if package in _packages_of(extra)), None)


def missing_extra_error(package: str, extra: str) -> WorkFailed:
    """Return the error for a missing package of an extra; its text has the command to type, by uvx, pip or uv."""
    words = _requirement_words(f"[{extra}]")
    pip = [sys.executable, "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--python", sys.executable]
    line = ["uvx", *words, *sys.argv[1:]] if is_run_by_uvx() else [*(pip if find_spec("pip") else uv), *words]
    return WorkFailed(
        _(
            "This needs the extra [{extra}], of which {package} is not installed here; type: {command}",
            extra=extra,
            package=package,
            command=command_line(line),
        )
    )


def _requirements() -> Iterator[Requirement]:
    """Yield the requirements of this distribution; nothing if the assistant is not installed."""
    with suppress(PackageNotFoundError):
        yield from map(Requirement, distribution(NAME).requires or ())


def _packages_of(extra: str) -> Iterator[str]:
    """Yield the normalized names of the packages that an extra of the assistant brings, itself or by another extra."""
    for requirement in _requirements():
        if requirement.marker and requirement.marker.evaluate({"extra": extra}):
            if requirement.name != NAME:
                yield canonicalize_name(requirement.name)
            for other in requirement.extras if requirement.name == NAME else ():
                yield from _packages_of(other)


def uvx_command() -> str:
    """Return the command that runs the assistant by uvx, with the first of lab, agents, onnx installed here, if any."""
    installed_extra = next(
        (extra for extra in ("lab", "agents", "onnx") if not any(map(_is_missing, _packages_of(extra)))), ""
    )
    return command_line(["uvx", *_requirement_words(f"[{installed_extra}]" if installed_extra else "")])


def _is_missing(package: str) -> bool:
    """Return whether no distribution of this name is installed for this interpreter."""
    try:
        distribution(package)
    except PackageNotFoundError:
        return True
    return False


def _requirement_words(extra: str) -> list[str]:
    """Return an installer's arguments for the assistant with an extra ("[lab]" or ""), from where it was installed.

    Raises `PackageNotFoundError` if it is not installed.

    The file `direct_url.json` (PEP 610): {"url": "file:///home/me/torch_setup_assistant-0.1.0-py3-none-any.whl", …}
    """
    origin = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    if "url" not in origin:
        return [f"{NAME}{extra}"]
    if origin.get("dir_info", {}).get("editable"):
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return ["-e", f"{url2pathname(unquote(urlsplit(origin['url']).path))}{extra}"]
    return [f"{NAME}{extra} @ {origin['url']}"]


@cache  # a search starts it over and over
def find_uv() -> str:
    """Return the path of uv: that of its package, else that in the variable UV, else that on PATH.

    Raises `WorkFailed` if there is none, or if one that is not of the package is too old.
    """
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin  # noqa: PLC0415 - comes with an extra

        return str(find_uv_bin())
    # uv names itself in UV to what it starts. A path that is not absolute is what lies in the current folder.
    places = [os.environ.get("UV"), shutil.which("uv")]
    uv_path = next((place for place in places if place and Path(place).is_absolute() and Path(place).is_file()), None)
    if uv_path is None:
        raise missing_extra_error("uv", "uv")
    printed = subprocess.run(
        [uv_path, "--version"], capture_output=True, text=True, env=child_environment(), check=False
    ).stdout
    version = re.match(r"uv (\d+(?:\.\d+)+)", printed)  # uv 0.13.9 (x86_64-unknown-linux-gnu)
    if not version or not all(version[1] in needed.specifier for needed in _requirements() if needed.name == "uv"):
        raise WorkFailed(
            _("{path} is not a uv that is new enough for the assistant.", path=uv_path),
            hint=_("Update it with: {command}", command="uv self update"),
        )
    return uv_path
