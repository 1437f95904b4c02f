"""The folders in which each system wants a program's data, state and downloads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assistant.i18n import _
from assistant.model.errors import BadInput

NAME = "pytorch-setup-assistant"
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it


def user_data() -> Path:
    """Return the folder for what the user keeps, as environments."""
    return _platform_folder("user_data_path")


def user_state() -> Path:
    """Return the folder for work in progress: setups, their logs, journals of installations."""
    return _platform_folder("user_state_path")


def user_cache() -> Path:
    """Return the folder for what can be downloaded or made again: wheels, labs."""
    return _platform_folder("user_cache_path")


# What a Python from the Microsoft Store writes below these goes into a private folder of its package:
# https://docs.python.org/3/using/windows.html#redirection-of-local-data-registry-and-temporary-paths
_REDIRECTED = ("LOCALAPPDATA", "APPDATA")
_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")


def is_from_store(executable: str, base_prefix: str) -> bool:
    """Return whether the Python with these paths comes from the Microsoft Store."""
    return "\\WindowsApps\\" in executable or "PythonSoftwareFoundation" in base_prefix


def is_redirected(path: Path) -> bool:
    """Return whether Windows redirects what this Python writes to a path, so that no other program finds it."""
    return is_from_store(sys.executable, sys.base_prefix) and _is_below(path, _REDIRECTED)


def for_everybody() -> Path:
    """Return the folder for environments that other programs use, too."""
    return (Path.home() / NAME if is_redirected(user_data()) else user_data()) / "envs"


def synchronised(path: Path) -> bool:
    """Return whether a path lies in a folder of OneDrive."""
    return _is_below(path, _ONEDRIVE)


def _is_below(path: Path, variables: tuple[str, ...]) -> bool:
    """Return whether a path lies in a folder that one of these environment variables gives."""
    return any(path.is_relative_to(folder) for folder in filter(None, map(os.environ.get, variables)))


def here() -> Path:
    """Return the current folder; for a notebook's kernel that is the notebook's."""
    return Path.cwd()


def full_path(text: str, *, relative: bool = True) -> Path:
    """Return a typed path as an absolute one, with the home folder for "~" and without "..", links followed to go up.

    Raises `BadInput` for the home folder of a user who is not known; without `relative` also for a relative path, and
    so for one of another system.
    """
    try:
        path = Path(text).expanduser()
        if relative or path.is_absolute():
            path = path.absolute()
            if ".." not in path.parts:
                return path
            is_whole = path.is_dir() or path.name == ".."
            return path.resolve() if is_whole else path.parent.resolve() / path.name  # a Python may be a link itself
    except RuntimeError:
        pass
    raise BadInput(
        _("“{path}” is not the full path of a folder on this system.", path=text[:80]),
        hint=_("Write the full path, such as {example}.", example=Path.home() / "pytorch"),
    )


def is_own_environment(prefix: str | Path) -> bool:
    """Return whether an environment is the one that start.py made for the assistant itself, and will replace."""
    return Path(prefix).parent.name == OWN_ENVIRONMENTS


def shortened(path: str) -> str:
    """Return a path as people write it, with "~" for the home folder."""
    home = Path.home()
    return str("~" / Path(path).relative_to(home)) if Path(path).is_relative_to(home) else path


def _platform_folder(kind: str) -> Path:
    """Return the folder of this program for a kind of data, such as "user_cache_path", as platformdirs has it."""
    import platformdirs  # noqa: PLC0415 - 3 ms that `detect` need not pay

    folder: Path = getattr(platformdirs, kind)(NAME, appauthor=False)
    return folder
