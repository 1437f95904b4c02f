"""The server through which AI agents use the assistant (Model Context Protocol)."""
