"""The session room."""
