"""torch-directml on a Linux that is not WSL: the wheel installs, the library behind it is not there."""

from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Install torch-directml beside torch, and a launch file that asks for it."""
    scene.venv(beside_torch=True)
    scene.install("--no-deps", "torch-directml==0.2.5.dev240914")
    scene.write("launch.json", '{"arguments": ["--directml"]}')


def symptom(scene: Scene) -> Outcome:
    """Start the image program."""
    return scene.program("image_program.py", str(scene.folder / "launch.json"))


def fault(scene: Scene) -> str:
    """Want the program to run, and torch-directml to be gone."""
    found = scene.call(scene.python(), "-c", "import importlib.util as u; print(u.find_spec('torch_directml'))")
    return scene.wrong("still-installed") if found.last != "None" else scene.fails(symptom(scene))
