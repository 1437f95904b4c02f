"""The folders in which each system wants a program's data, state and downloads."""

from __future__ import annotations

from pathlib import Path

import platformdirs

NAME = "pytorch-setup-assistant"
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it


def user_data() -> Path:
    """Return the folder of what the user keeps: environments."""
    return platformdirs.user_data_path(NAME, appauthor=False)


def user_state() -> Path:
    """Return the folder of work in progress: setups, their logs, installations that were started."""
    return platformdirs.user_state_path(NAME, appauthor=False)


def user_cache() -> Path:
    """Return the folder of what can be downloaded or made again: wheels, labs."""
    return platformdirs.user_cache_path(NAME, appauthor=False)
