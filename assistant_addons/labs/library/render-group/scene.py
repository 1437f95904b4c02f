"""A container that is given the devices of an AMD card, and not the group that may use them."""

import json
from collections.abc import Mapping

from assistant_addons.labs.workspace import Workspace

GID, GID_IN_IMAGE = 992, 109  # of the group render
COMPOSE = """services:
  train:
    image: lab/pytorch-rocm
    user: "1000:1000"
    devices:
      - /dev/kfd
      - /dev/dri
"""


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return what the host has, what the image knows of groups, and the file that starts the container."""
    devices = {"/dev/kfd": ["root", GID, "0660"], "/dev/dri/renderD128": ["root", GID, "0660"]}
    image = {"root": 0, "video": 44, "render": GID_IN_IMAGE, "user": 1000}
    return {
        "host.json": json.dumps({"devices": devices, "groups": {"video": 44, "render": GID}}, indent=2),
        "image.group": "".join(f"{name}:x:{number}:\n" for name, number in image.items()),
        "compose.yaml": COMPOSE,
    }
