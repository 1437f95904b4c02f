"""The only door to the machine: commands, files, environment, registry, clock and network pass through here."""
