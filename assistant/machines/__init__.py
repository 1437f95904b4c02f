"""The machines room."""
