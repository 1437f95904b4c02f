"""A folder of kept wheels whose CPU build counts as newer than the CUDA build of the index."""

from collections.abc import Mapping

from assistant.labs.scene import Outcome, Scene
from assistant.labs.wheels import add_to_index, wheel

PIP = ("-m", "pip", "--disable-pip-version-check")
BUILDS = {
    "wheels": ("2.13.0+cpu", "None"),
    "index": ("2.13.0", "'13.0'"),
    "cu128": ("2.13.0+cu128", "'12.8'"),
}
TORCH = '''"""A stand-in for torch: it knows how it was built, and nothing else."""

__version__ = "{version}"


class version:
    """What this build is for."""

    cuda = {cuda}


def ones(size, device="cpu"):
    """Make a list on a device that this build knows."""
    if device == "cuda" and version.cuda is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return [1.0] * size
'''


def breaks(scene: Scene) -> None:
    """Make the folder of wheels, two indexes, and an environment into which pip installed what it found best."""
    for place, (version, _cuda) in BUILDS.items():
        add_to_index(scene.folder / place, "torch", {version: wheel("torch", version, _files(place))})
    scene.write("pip.conf", "[global]\nindex-url = {lab_address}/index\nfind-links = {lab_address}/wheels/torch\n")
    scene.venv(seed=True)
    scene.need(scene.call(scene.python(), *PIP, "install", "torch"))


def variables(scene: Scene) -> Mapping[str, str]:
    """Let pip read the lab's pip.conf; what this machine says of its indexes would hide it."""
    own = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")
    return {"PIP_CONFIG_FILE": str(scene.folder / "pip.conf"), "PIP_NO_CACHE_DIR": "1", **dict.fromkeys(own, "")}


def symptom(scene: Scene) -> Outcome:
    """Install torch as the course says, and use the card."""
    told = scene.call(scene.python(), *PIP, "install", "torch").text
    done = scene.program("use_card.py")
    return Outcome(done.status, f"{told}\n{done.text}")


def fault(scene: Scene) -> str:
    """Want a build for CUDA, as its makers built it."""
    if not any(scene.consists_of("torch", _files(place)) for place in ("index", "cu128")):
        return scene.wrong("not-cuda")
    return scene.fails(scene.program("use_card.py"))


def _files(place: str) -> Mapping[str, str]:
    version, cuda = BUILDS[place]
    return {"torch/__init__.py": TORCH.replace("{version}", version).replace("{cuda}", cuda)}
