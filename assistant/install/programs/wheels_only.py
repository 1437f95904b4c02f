"""Run pip so that nothing of a package is run: what would build one, or fetch it with git, is refused.

`pip install --only-binary :all:` does not refuse it all: a wheel may ask for `name @ https://…/name.tar.gz`, which pip
builds to learn its metadata, `--dry-run` or not (https://github.com/pypa/pip/issues/12807).
Run as a script by an interpreter; it knows nothing of the assistant. `--for PYTHON` before all other arguments lends
this interpreter's pip to another one that has none.
"""

import importlib.machinery
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}
# How pip 23.0 to 26.3 calls a package's own build program, or itself to get what that needs.
BUILDS = ("_in_process", "__pip-runner__.py", "setup.py")
FETCHES = re.compile(r'"?(?:[^"]*[/\\\\])?(?:git|hg|svn|bzr)(?:\.(?:exe|cmd|bat))?(?:["\s]|$)', re.IGNORECASE)


def refuse(event, arguments):
    """End pip before it starts a build, or a program that fetches sources."""
    if event not in STARTS:
        return
    words = [str(word) for part in arguments[:2] for word in (part if isinstance(part, (list, tuple)) else [part])]
    fetches = any(FETCHES.match(word) for word in words[:2])  # on Windows the second one is the whole line
    if fetches or any(sign in word for word in words for sign in BUILDS):
        print(f"wheels only: {asked_for()} comes only as source", flush=True)
        os._exit(3)  # pip would go on with other versions after an exception


def asked_for():
    """Find the name of the package that pip works on, in the calls that lead here."""
    frame = sys._getframe()
    while frame:
        one = frame.f_locals.get("self")
        for found in (one, getattr(one, "req", None), frame.f_locals.get("req")):
            if type(found).__name__ == "InstallRequirement" and found.name:
                return found.name
        frame = frame.f_back
    return "?"


class Borrowed:
    """Finds pip, and nothing else, in the folder of another interpreter."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, fullname, _path=None, target=None):
        """Return where pip is."""
        return importlib.machinery.PathFinder.find_spec(fullname, [self.folder], target) if fullname == "pip" else None


def main(arguments):
    """Run pip with these arguments."""
    if arguments[:1] == ["--for"]:
        pip = str(Path(importlib.util.find_spec("pip").origin).parents[1])
        sys.exit(subprocess.call([arguments[1], __file__, "--pip-of", pip, *arguments[2:]]))
    if arguments[:1] == ["--pip-of"]:
        sys.meta_path.insert(0, Borrowed(arguments[1]))
        arguments = arguments[2:]
    sys.argv = ["pip", *arguments]
    sys.path = [folder for folder in sys.path if Path(folder).absolute() != Path(__file__).absolute().parent]
    sys.addaudithook(refuse)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
