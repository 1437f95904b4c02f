"""What some ask for by name: each add-on imports `assistant.api` and third parties, and the core finds it by its name.

The names are entry points in pyproject.toml; `assistant/addons.py` says what an add-on can bring.
"""
