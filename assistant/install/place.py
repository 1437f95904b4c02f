"""What a folder's place means on Windows: how long a path may be there, who alone sees it, who synchronises it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from assistant.host.base import Host
from assistant.host.folders import for_everybody, is_redirected, synchronised
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity

# MAX_PATH without its end; the path of a folder has to leave room for a name of 8.3 characters:
# https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
LONGEST_PATH = 259
SHORT_NAME = 12
LONG_PATHS = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"
PACKAGES = "Lib/site-packages/"  # of a virtual environment on Windows


def check_lengths(host: Host, wheels: Iterable[Path], roots: Iterable[Path]) -> None:
    """Raise `BadInput` where a file of the wheels would have a longer path below a root than this Windows allows."""
    if not _is_limited(host):
        return
    names = [name for wheel in wheels if wheel.suffix == ".whl" for name in _installed_names(wheel)]
    longest, root = max(names, key=_needed, default=""), max(map(str, roots), key=len)
    if longest and len(root) + 1 + _needed(longest) > LONGEST_PATH:
        raise BadInput(
            _(
                "{folder} is too deep: {file} would have a path of {count} characters there, and this Windows allows"
                " {limit}.",
                folder=root,
                file=longest.rpartition("/")[2],
                count=len(root) + 1 + len(longest),
                limit=LONGEST_PATH,
            ),
            hint=_(
                "Choose a folder with a shorter path, such as {example}. Or allow long paths: as an administrator, set"
                " LongPathsEnabled to 1 in {key}.",
                example=Path(Path(root).anchor) / "torch",
                key=LONG_PATHS,
                option="--target",
            ),
        )


def _is_limited(host: Host) -> bool:
    """Return whether this is a Windows that is known not to allow long paths, as none does by itself."""
    values = host.facts("registry", LONG_PATHS).get("values")
    return isinstance(values, dict) and values.get("LongPathsEnabled") != 1


def _installed_names(wheel: Path) -> Iterator[str]:
    """Yield where the files of a wheel go in an environment; those of its `.data` folder go by their kind."""
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            first, _, rest = name.partition("/")
            kind, _, inner = rest.partition("/")
            if not first.endswith(".data"):
                yield PACKAGES + name
            else:
                yield PACKAGES + inner if kind in {"purelib", "platlib"} else inner


def _needed(name: str) -> int:
    """Return how many characters a name needs below a root, with room for a short name in its folder."""
    return max(len(name), len(name.rpartition("/")[0]) + SHORT_NAME)


def environments_folder() -> Path:
    """Return the folder of the environments that the assistant makes."""
    return for_everybody()


def check_visible(target: Path) -> None:
    """Raise `BadInput` for a new environment where only this Python would see it: Windows redirects what it writes."""
    if is_redirected(target):
        raise BadInput(
            _(
                "This Python comes from the Microsoft Store: what it writes to {path} goes into a private folder that"
                " JupyterLab, VS Code and other programs do not find.",
                path=target,
            ),
            hint=_("Choose a folder such as {example}.", example=for_everybody() / target.name, option="--target"),
        )


def place_findings(target: Path) -> tuple[Finding, ...]:
    """Return what should be known of a target's place."""
    if not synchronised(target):
        return ()
    text = _(
        "{path} is in OneDrive, which would upload every file of the environment; installers can fail there with error"
        " 396 (incompatible hardlinks).",
        path=target,
    )
    remedy = Remedy(text=_("Choose a folder outside OneDrive.", option="--target"))
    # https://github.com/astral-sh/uv/issues/9500, https://github.com/astral-sh/uv/issues/17945
    return (Finding(key="target-in-onedrive", severity=Severity.WARNING, text=text, remedies=(remedy,)),)
