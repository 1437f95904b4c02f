"""A package that took torch back to an older release, and left the companion that wants the newer one."""

from assistant_addons.labs.scene import Outcome, Scene
from assistant_addons.labs.stand_ins import file_of, wheel

OLD, NEW = "2.12.0", "2.13.0"
PACKAGES = [  # with their versions and what they want
    ("torch", OLD, []),
    ("torch", NEW, []),
    ("torchvision", "0.27.0", [f"torch=={OLD}"]),
    ("torchvision", "0.28.0", [f"torch=={NEW}"]),
    ("lab-detector", "1.0", [f"torch=={OLD}", "torchvision"]),
]


def breaks(scene: Scene) -> None:
    """Make the wheels, install the newest pair, then a program that wants the release before."""
    for name, version, needs in PACKAGES:
        content = wheel(name, version, _files(name, version), requires=needs)
        scene.write(f"wheels/{file_of(name, version)}", content)
    scene.venv()
    own = ("--no-index", "--find-links", str(scene.folder / "wheels"))
    scene.install(*own, "torch", "torchvision")
    scene.install(*own, "--no-deps", f"torch=={OLD}", "lab-detector")


def symptom(scene: Scene) -> Outcome:
    """Ask whether all that is installed fits together."""
    return scene.uv("pip", "check", "--python", str(scene.python()))


def fault(scene: Scene) -> str:
    """Want the three packages, one of the releases that there are of each, and nothing that does not fit."""
    found = {name for name, version, _ in PACKAGES if scene.consists_of(name, _files(name, version))}
    lacking = {name for name, *_ in PACKAGES} - found
    return scene.wrong("lacking", name=min(lacking)) if lacking else scene.fails(symptom(scene))


def _files(name: str, version: str) -> dict[str, str]:
    return {f"{name.replace('-', '_')}/__init__.py": f'__version__ = "{version}"\n'}
