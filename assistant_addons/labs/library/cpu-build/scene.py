"""A later installation put PyPI's build of torch, for Windows one for the CPU, in the place of the one for CUDA."""

from collections.abc import Mapping

from assistant_addons.labs import stand_ins
from assistant_addons.labs.stand_ins import machine_file as files
from assistant_addons.labs.stand_ins import own_index as variables
from assistant_addons.labs.workspace import Workspace, need

__all__ = ["breaks", "files", "original", "variables"]
FIRST, NEEDED = "2.15.0", "2.14.1"  # the release that was there, and the one that upscaler needs
UPSCALER = {
    "upscaler/__init__.py": f'''"""A stand-in for a package that is built for one release of torch, as xformers is."""

import torch

if torch.__version__.partition("+")[0] != "{NEEDED}":
    raise ImportError(f"upscaler 1.0 is built for torch {NEEDED}, and this is torch {{torch.__version__}}")
'''
}


def breaks(space: Workspace) -> None:
    """Install a build for CUDA, then a package that needs another release, and keep what pip printed."""
    stand_ins.offer_torch(space)
    content = stand_ins.wheel("upscaler", "1.0", UPSCALER, requires=[f"torch=={NEEDED}"])
    stand_ins.add_to_index(space.folder / "pypi" / "simple", "upscaler", {"1.0": content})
    log = []
    for line in (f"torch=={FIRST} --index-url {stand_ins.ADDRESS}/cu130", "upscaler"):
        done = need(space.call(space.python(), "-m", "pip", "--disable-pip-version-check", "install", *line.split()))
        log += [
            f"$ pip install {line}",
            *done.text.replace(f"{space.folder.as_uri()}/whl", stand_ins.ADDRESS).splitlines(),
        ]
    lines = [line for line in log if not line.startswith(("(in this lab", "Looking in indexes: file"))]
    space.write(space.folder / "install.log", "\n".join([*lines, ""]))


def original(space: Workspace, name: str, version: str) -> Mapping[str, str] | None:
    """Return the files of the stand-ins."""
    return UPSCALER if name == "upscaler" else stand_ins.original_torch(space, name, version)
