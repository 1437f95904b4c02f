"""The extras of this distribution: which package belongs to which, what is missing, and how to install it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.uv import by_uvx
from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.shell import command_line

NAME = "torch-setup-assistant"
SMALLEST_FIRST = ("uv", "onnx", "projects", "classroom", "labs", "lab", "agents")
_MODULES = {"google": "protobuf"}  # modules with another name than their package


def require(extra: str) -> None:
    """Raise `WorkFailed` with the command to type where a package of an extra is not installed."""
    for package in _packages(extra):
        if _is_missing(package):
            raise lacking(package, extra)


def extra_of(module: str) -> tuple[str, str] | None:
    """Return the package that brings a module and the smallest of our extras that holds it; None where none does."""
    top = module.partition(".")[0]
    package = canonicalize_name(_MODULES.get(top, top))
    return next(((package, extra) for extra in SMALLEST_FIRST if package in _packages(extra)), None)


def lacking(package: str, extra: str) -> WorkFailed:
    """Return the failure for a missing package, with the command to type."""
    return WorkFailed(
        _(
            "This needs the extra [{extra}], of which {package} is not installed here; type: {command}",
            extra=extra,
            package=package,
            command=_command(extra),
        )
    )


def _packages(extra: str) -> Iterator[str]:
    """Yield what an extra brings, other extras of ours included; nothing where the assistant is not installed."""
    with suppress(PackageNotFoundError):
        for requirement in map(Requirement, distribution(NAME).requires or ()):
            if requirement.marker and requirement.marker.evaluate({"extra": extra}):
                if requirement.name != NAME:
                    yield canonicalize_name(requirement.name)
                for other in requirement.extras if requirement.name == NAME else ():
                    yield from _packages(other)


def _command(extra: str) -> str:
    """Return the command that adds an extra to this environment, from where the assistant itself was installed."""
    words = _requirement_words(f"[{extra}]", distribution(NAME))
    if by_uvx():
        return command_line(["uvx", *words, *sys.argv[1:]])
    pip = [sys.executable, "-m", "pip", "install"]
    return command_line([*(pip if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]), *words])


def started_by() -> str:
    """Return what is typed for `assistant` where uvx started it, with the extra that is there."""
    there = next((extra for extra in ("lab", "agents", "onnx") if not any(map(_is_missing, _packages(extra)))), "")
    return command_line(["uvx", *_requirement_words(f"[{there}]" if there else "", distribution(NAME))])


def allows(package: str, version: str) -> bool:
    """Return whether our metadata allows a version of a package; every version where we are not installed."""
    with suppress(PackageNotFoundError):
        needs = map(Requirement, distribution(NAME).requires or ())
        return all(version in need.specifier for need in needs if need.name == package)
    return True


def _is_missing(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return True
    return False


def _requirement_words(extra: str, installed: Distribution) -> list[str]:
    """Return our requirement in an installer's words, "[lab]" added; what came from a file or folder comes from there.

    The file `direct_url.json` (PEP 610): {"url": "file:///home/me/torch_setup_assistant-0.1.0-py3-none-any.whl", …}
    """
    came = json.loads(installed.read_text("direct_url.json") or "{}")
    if "url" not in came:
        return [f"{NAME}{extra}"]
    if came.get("dir_info", {}).get("editable"):
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return ["-e", f"{url2pathname(unquote(urlsplit(came['url']).path))}{extra}"]
    return [f"{NAME}{extra} @ {came['url']}"]
