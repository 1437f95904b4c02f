"""The wizard room."""
