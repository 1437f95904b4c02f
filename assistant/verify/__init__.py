"""Does an environment really compute? Checks that its own Python runs in a child process, each within a time limit."""

from assistant.verify.ahead import compile_ahead
from assistant.verify.plots import figures
from assistant.verify.run import raised, verify

__all__ = ["compile_ahead", "figures", "raised", "verify"]
