"""The shell for AI agents: tools over the Model Context Protocol that ask the rooms, and change nothing unasked."""
