"""The terminal shell: commands that draw what the rooms decide."""

from assistant.cli.run import main as main
