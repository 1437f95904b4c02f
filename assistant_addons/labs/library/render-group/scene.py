"""A container that is given the devices of an AMD card, and not the group that may use them."""

import json
import sys

from assistant_addons.labs.scene import Outcome, Scene

GID, GID_IN_IMAGE = 992, 109  # of the group render
COMPOSE = """services:
  train:
    image: lab/pytorch-rocm
    user: "1000:1000"
    devices:
      - /dev/kfd
      - /dev/dri
"""


def breaks(scene: Scene) -> None:
    """Write what the host has, what the image knows of groups, and the file that starts the container."""
    devices = {"/dev/kfd": ["root", GID, "0660"], "/dev/dri/renderD128": ["root", GID, "0660"]}
    scene.write("host.json", json.dumps({"devices": devices, "groups": {"video": 44, "render": GID}}, indent=2))
    image = {"root": 0, "video": 44, "render": GID_IN_IMAGE, "user": 1000}
    scene.write("image.group", "".join(f"{name}:x:{number}:\n" for name, number in image.items()))
    scene.write("compose.yaml", COMPOSE)


def symptom(scene: Scene) -> Outcome:
    """Start the container's program."""
    return scene.program("container.py", python=sys.executable)


def fault(scene: Scene) -> str:
    """Want the program to run, and not as root."""
    done = symptom(scene)
    return scene.fails(done) or (scene.wrong("root") if "uid=0" in done.text else "")
