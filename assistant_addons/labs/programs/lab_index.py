"""Lead pip and uv to the indexes that lie in the lab's folder, whatever index a command names.

The environment of the lab imports this before any program; `python -m lab_index uv …` does the same for uv.
"""

import os
import subprocess
import sys
from pathlib import Path

LAB = Path(sys.prefix).parent
PYPI = (LAB / "pypi" / "simple").as_uri()
PYTORCH = "https://download.pytorch.org/whl"
# SOURCES of the labs' activation.py, a copy, as the lab's environment does not have the assistant's packages.
SOURCES = (
    *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"),
    *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"),
    *("UV_CONFIG_FILE", "UV_NO_CONFIG", "UV_TORCH_BACKEND"),
)
VARIABLES = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": PYPI, "UV_NO_CONFIG": "1", "UV_INDEX_URL": PYPI}
BACKEND = "--torch-backend"


def led(word):
    """Return a word of a command with an address in it led to the lab's folder."""
    start = word.find("https://") if "https://" in word else word.find("http://")
    if start < 0:
        return word
    address = word[start:].rstrip("/")
    inside = (
        LAB / "whl" / address.removeprefix(PYTORCH).strip("/") if address.startswith(PYTORCH) else LAB / "pypi/simple"
    )
    print(f"(in this lab {address} is the folder {inside.relative_to(LAB).as_posix()})", file=sys.stderr)
    return word[:start] + inside.as_uri()


def lead_all(words):
    """Return a command led to the lab's folder."""
    found = []
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        backend = value if option == BACKEND else word if before == BACKEND else ""
        if backend == "auto":
            sys.exit("This lab plays another machine than yours: name the backend, such as cu128, in place of auto.")
        if backend:
            found = [one for one in found if one != BACKEND]
            found.append(led(f"--index-url={PYTORCH}/{backend}"))
        else:
            found.append(led(word))
    return found


def lead():
    """Lead this process, if it is pip, and all that it starts."""
    for name in SOURCES:
        os.environ.pop(name, None)
    os.environ.update(VARIABLES)
    arguments = getattr(sys, "orig_argv", sys.argv)
    if any(Path(word).stem in ("pip", "pip3") for word in arguments[1:4]):
        sys.argv[1:] = lead_all(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(subprocess.call(lead_all(sys.argv[1:])))
