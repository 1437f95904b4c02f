"""The folders in which each system wants a program's data, state and downloads."""

from __future__ import annotations

from pathlib import Path

NAME = "pytorch-setup-assistant"
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it


def user_data() -> Path:
    """Return the folder of what the user keeps: environments."""
    return _folder("user_data_path")


def user_state() -> Path:
    """Return the folder of work in progress: setups, their logs, installations that were started."""
    return _folder("user_state_path")


def user_cache() -> Path:
    """Return the folder of what can be downloaded or made again: wheels, labs."""
    return _folder("user_cache_path")


def here() -> Path:
    """Return the folder in which this program works; for a notebook's kernel that is the notebook's."""
    return Path.cwd()


def is_own_environment(prefix: str | Path) -> bool:
    """Return whether an environment is the one that start.py made for the assistant itself, and will replace."""
    return Path(prefix).parent.name == OWN_ENVIRONMENTS


def shortened(path: str) -> str:
    """Write a path as people do, with "~" for the home folder."""
    home = Path.home()
    return str("~" / Path(path).relative_to(home)) if Path(path).is_relative_to(home) else path


def _folder(kind: str) -> Path:
    import platformdirs  # noqa: PLC0415 - 3 ms that `detect` need not pay

    folder: Path = getattr(platformdirs, kind)(NAME, appauthor=False)
    return folder
