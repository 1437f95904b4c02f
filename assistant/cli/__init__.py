"""The terminal shell: commands that draw what the rooms decide."""

from assistant.cli.commands import main as main
