"""The user's own folders, in which each system wants a program's data, state and downloads."""

from __future__ import annotations

from pathlib import Path

NAME = "pytorch-setup-assistant"
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it


def user_data() -> Path:
    """Name the folder of what the user keeps: environments."""
    return _folder("user_data_path")


def user_state() -> Path:
    """Name the folder of what is under way: setups, their logs, installations that were begun."""
    return _folder("user_state_path")


def user_cache() -> Path:
    """Name the folder of what can be had again: downloads, labs."""
    return _folder("user_cache_path")


def _folder(kind: str) -> Path:
    import platformdirs  # noqa: PLC0415 - 3 ms that `detect` need not pay

    folder: Path = getattr(platformdirs, kind)(NAME, appauthor=False)
    return folder
