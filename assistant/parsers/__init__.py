"""Readers of what other programs print: text in, value or None out, in time proportional to the text.

Above each stands a real sample of what it reads, shortened.
"""
