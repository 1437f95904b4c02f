"""Readers of what tools print: text in, value or None out; each takes time proportional to its text."""
