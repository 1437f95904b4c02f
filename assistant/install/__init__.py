"""The install room."""
