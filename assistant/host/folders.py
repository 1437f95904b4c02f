"""The user's own folders, in which each system wants a program's data, state and downloads."""

from __future__ import annotations

from pathlib import Path

import platformdirs

NAME = "pytorch-setup-assistant"
OWN_ENVIRONMENTS = ".assistant"  # beside start.py, which makes the assistant's own environment in it


def user_data() -> Path:
    """Name the folder of what the user keeps: environments."""
    return platformdirs.user_data_path(NAME, appauthor=False)


def user_state() -> Path:
    """Name the folder of what is under way: setups, their logs, installations that were begun."""
    return platformdirs.user_state_path(NAME, appauthor=False)


def user_cache() -> Path:
    """Name the folder of what can be had again: downloads, labs."""
    return platformdirs.user_cache_path(NAME, appauthor=False)
