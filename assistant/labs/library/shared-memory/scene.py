"""A container with as little shared memory as Docker gives, and a data loader that hands over large batches in it."""

import json
import sys

from assistant.labs.scene import Outcome, Scene

ROOM = "import os; room = os.statvfs('/dev/shm'); print(room.f_bavail * room.f_frsize >> 20)"
LEAST_MEGABYTES = 256  # for the batches that wait, once the lab is mended
COMPOSE = "services:\n  train:\n    image: lab/pytorch\n    command: python train.py\n"


def breaks(scene: Scene) -> None:
    """Write how the container is started, and how the training loads its data."""
    scene.write("compose.yaml", COMPOSE)
    scene.write("loading.json", json.dumps({"batch": int(scene.values["batch"]), "workers": 2}))


def symptom(scene: Scene) -> Outcome:
    """Start the training in the container."""
    return scene.program("container.py", scene.torch, python=sys.executable)


def fault(scene: Scene) -> str:
    """Want the training to run with its batches, its workers and enough shared memory."""
    try:
        loading = json.loads(scene.read("loading.json"))
    except ValueError:
        loading = None
    wanted = {"batch": int(scene.values["batch"]), "workers": 2}
    if not isinstance(loading, dict) or loading.get("batch") != wanted["batch"]:
        return scene.wrong("batch", batch=wanted["batch"])
    done = symptom(scene)
    room = scene.call(scene.torch, "-c", ROOM).last
    if done.status and room.isdecimal() and int(room) < LEAST_MEGABYTES:
        return scene.wrong("room", room=room)
    return scene.fails(done)
