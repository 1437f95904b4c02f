"""The diagnose room."""
