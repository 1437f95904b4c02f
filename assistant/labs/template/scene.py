"""What breaks, what fails, and what counts as fixed."""

import sys

from assistant.labs import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Prepare the folder."""
    scene.write("settings.json", '{\n  "name": "demo",\n  "size": 3,\n}\n')


def symptom(scene: Scene) -> Outcome:
    """Run what fails: a program that lies beside this file, in the scene's folder."""
    return scene.program("program.py", python=sys.executable)


def fault(scene: Scene) -> str:
    """Return what is still wrong, "" for nothing. Without this function the lab is fixed when its symptom succeeds."""
    outcome = symptom(scene)
    size = outcome.last.removeprefix("started with size ")
    return scene.fails(outcome) or ("" if size == "3" else scene.wrong("other-size", size=size))
