"""A container that is given the devices of an AMD card, and not the group that may use them."""

import json
import sys

from assistant.labs.scene import Outcome, Scene

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
    gid, inside = int(scene.values["gid"]), int(scene.values["inside"])
    devices = {"/dev/kfd": ["root", gid, "0660"], "/dev/dri/renderD128": ["root", gid, "0660"]}
    scene.write("host.json", json.dumps({"devices": devices, "groups": {"video": 44, "render": gid}}, indent=2))
    image = {"root": 0, "video": 44, "render": inside, "user": 1000}
    scene.write("image.group", "".join(f"{name}:x:{number}:\n" for name, number in image.items()))
    scene.write("compose.yaml", COMPOSE)


def symptom(scene: Scene) -> Outcome:
    """Start the container's program."""
    return scene.program("container.py", python=sys.executable)


def fault(scene: Scene) -> str:
    """Want the program to run, and not as root."""
    done = symptom(scene)
    return scene.fails(done) or (scene.wrong("root") if "uid=0" in done.text else "")
