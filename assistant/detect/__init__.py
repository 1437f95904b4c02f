"""The detect room."""
