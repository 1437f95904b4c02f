"""A job file that was copied from a larger server, and names cards that this machine does not have."""

from assistant.labs.scene import Outcome, Scene

CARDS = 2


def breaks(scene: Scene) -> None:
    """Write the job file."""
    numbers = scene.values["copied"]
    lines = ("# copied from the server with eight cards", "OMP_NUM_THREADS=4", f"CUDA_VISIBLE_DEVICES={numbers}", "")
    scene.write("job.env", "\n".join(lines))


def symptom(scene: Scene) -> Outcome:
    """Start the job."""
    return scene.program("job.py", str(scene.folder / "job.env"), str(CARDS), python=scene.torch)
