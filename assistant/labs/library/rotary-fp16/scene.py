"""Rotary positions that are worked out in half precision."""

from assistant.labs.scene import Outcome, Scene

NAIVE = '''import torch


def rotary(positions, size, base):
    """Return the cosines and sines of the angles, in half precision, for the positions and pairs of channels."""
    frequencies = 1.0 / base ** (torch.arange(0, size, 2).half() / size)
    angles = positions.half()[:, None] * frequencies[None, :]
    return angles.cos(), angles.sin()
'''


def breaks(scene: Scene) -> None:
    """Write the module as it was turned into half precision."""
    scene.write("rotary.py", NAIVE)


def symptom(scene: Scene) -> Outcome:
    """Let the module work out its tables, and compare them in a process of its own, which runs nothing of it."""
    scene.write("tables.json", "")
    made = scene.program("make_tables.py", python=scene.torch)
    return made if made.status else scene.program("compare.py", python=scene.torch)
