"""Guided PyTorch setup: detect, plan, install, verify, diagnose, export.

Importing the package draws in no widget, no torch and no network; each room is imported by the shell that needs it.
"""

__version__ = "0.1.0"
