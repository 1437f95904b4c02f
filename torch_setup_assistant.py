"""The door to the package `assistant`, under a name of its own: a user's file `assistant.py` would hide the package.

Imported before `assistant`, as the scripts and the first cell of every notebook do, it says which file is in the way.
"""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec
from typing import Any

__all__ = ["Hidden", "load_ipython_extension", "main"]


class Hidden(ImportError):
    """A file stands where the package should be found; IPython shows the sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def main() -> None:
    """Run the command line; while it is imported, Ctrl-C ends the program without a traceback."""
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from assistant.cli import main as run  # noqa: PLC0415 - only now is it known to be ours

    signal.signal(signal.SIGINT, handler)
    run()


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython's own shell, which nobody else needs
    """Give a notebook the magic `%torch_doctor`; `%load_ext torch_setup_assistant` calls this."""
    from assistant.wizard import torch_doctor  # noqa: PLC0415 - likewise

    shell.register_magic_function(torch_doctor, "line")


_found = find_spec("assistant")  # looks for it and runs nothing
if _found and not _found.submodule_search_locations:
    sys.excepthook = lambda _kind, error, _trace: print(error, file=sys.stderr)  # noqa: T201 - outside a notebook
    raise Hidden(  # in both languages: the translations lie in the package that is hidden
        f"{_found.origin} hides the package `assistant` of the setup assistant: rename that file, then start again. "
        f"该文件挡住了安装助手的同名软件包 assistant，请将它改名，然后重新开始。"
    )

if __name__ == "__main__":
    main()
