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
    """Raise `WorkFailed`, with the command to type, if a package of an extra is not installed."""
    for package in _packages_of(extra):
        if _is_missing(package):
            raise missing_extra_error(package, extra)


def extra_of(module: str) -> tuple[str, str] | None:
    """Return the package that brings a module and the smallest of our extras with it; None if no extra has it."""
    top = module.partition(".")[0]
    package = canonicalize_name(_MODULES.get(top, top))
    return next(((package, extra) for extra in SMALLEST_FIRST if package in _packages_of(extra)), None)


def missing_extra_error(package: str, extra: str) -> WorkFailed:
    """Return the error for a missing package of an extra, with the command to type."""
    return WorkFailed(
        _(
            "This needs the extra [{extra}], of which {package} is not installed here; type: {command}",
            extra=extra,
            package=package,
            command=_command_to_add(extra),
        )
    )


def _packages_of(extra: str) -> Iterator[str]:
    """Yield the packages of an extra and of the extras in it; nothing if the assistant is not installed."""
    with suppress(PackageNotFoundError):
        for requirement in map(Requirement, distribution(NAME).requires or ()):
            if requirement.marker and requirement.marker.evaluate({"extra": extra}):
                if requirement.name != NAME:
                    yield canonicalize_name(requirement.name)
                for other in requirement.extras if requirement.name == NAME else ():
                    yield from _packages_of(other)


def _command_to_add(extra: str) -> str:
    """Return the command that adds an extra to this environment, from where the assistant itself was installed."""
    words = _requirement_words(f"[{extra}]", distribution(NAME))
    if by_uvx():
        return command_line(["uvx", *words, *sys.argv[1:]])
    pip = [sys.executable, "-m", "pip", "install"]
    return command_line([*(pip if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]), *words])


def started_by() -> str:
    """Return the words that start the assistant by uvx, with one extra that is installed, in place of `assistant`."""
    installed_extra = next(
        (extra for extra in ("lab", "agents", "onnx") if not any(map(_is_missing, _packages_of(extra)))), ""
    )
    return command_line(
        ["uvx", *_requirement_words(f"[{installed_extra}]" if installed_extra else "", distribution(NAME))]
    )


def allows(package: str, version: str) -> bool:
    """Return whether our metadata allows a version of a package; True if the assistant is not installed."""
    with suppress(PackageNotFoundError):
        requirements = map(Requirement, distribution(NAME).requires or ())
        return all(version in requirement.specifier for requirement in requirements if requirement.name == package)
    return True


def _is_missing(package: str) -> bool:
    """Return whether a package is not installed."""
    try:
        distribution(package)
    except PackageNotFoundError:
        return True
    return False


def _requirement_words(extra: str, installed: Distribution) -> list[str]:
    """Return the words by which an installer gets the assistant with an extra ("[lab]"), from where it came before.

    The file `direct_url.json` (PEP 610): {"url": "file:///home/me/torch_setup_assistant-0.1.0-py3-none-any.whl", …}
    """
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if "url" not in origin:
        return [f"{NAME}{extra}"]
    if origin.get("dir_info", {}).get("editable"):
        from urllib.request import url2pathname  # noqa: PLC0415 - draws in http and ssl

        return ["-e", f"{url2pathname(unquote(urlsplit(origin['url']).path))}{extra}"]
    return [f"{NAME}{extra} @ {origin['url']}"]
