"""A terminal in which pip and python belong to two environments."""

from assistant.labs.scene import Outcome, Scene

ENV = '. "$PWD/env/bin/activate"\n'
OTHER = 'export PATH="$PWD/tools/bin:$PATH"\n'
# What is typed in the terminal; `command` passes over functions of the same name.
TYPED = """. ./profile.sh
command -v pip python
command pip install torch
command python train.py "$1" || exit 1
command python -c "import sys; print(sys.prefix)"
"""


def breaks(scene: Scene) -> None:
    """Make an environment with torch and pip, one without either, and a terminal whose PATH finds that one first."""
    scene.venv(beside_torch=True, seed=True)
    scene.venv("tools")
    scene.write(
        "profile.sh", f"# Each new terminal runs this file.\n{ENV}# added by the installer of some tools\n{OTHER}"
    )


def symptom(scene: Scene) -> Outcome:
    """Open a terminal, ask pip for torch, and start the program."""
    return scene.call("bash", "-c", TYPED, "terminal", "7")


def fault(scene: Scene) -> str:
    """Want the program to compute in the environment that holds torch."""
    done = symptom(scene)
    if done.status:
        return scene.fails(done)
    *_before, computed, prefix = ["", *done.text.splitlines()]
    return "" if (computed, prefix) == ("14", str(scene.folder / "env")) else scene.wrong("other-python")
