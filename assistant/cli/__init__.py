"""The terminal shell: commands that draw what the rooms decide."""

from __future__ import annotations

import click

__all__ = ["main"]


@click.group()
def main() -> None:
    """Set up PyTorch for the GPU that you have."""
