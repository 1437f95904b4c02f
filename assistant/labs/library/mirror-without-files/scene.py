"""A mirror whose page lists a release whose file it does not have."""

from assistant.labs.scene import Outcome, Scene
from assistant.labs.wheels import file_of, wheel

PACKAGE, OLD, NEW = "lab-tokens", "1.0", "1.1"
MODULE = '''"""Counts words."""

__version__ = "{version}"


def count(text):
    """Return how many words a text has."""
    return len(text.split())
'''
MODULE_NEW = (
    '\n\ndef longest(text):\n    """Return the longest word of a text."""\n    return max(text.split(), key=len)\n'
)


def breaks(scene: Scene) -> None:
    """Make the original index and its mirror, whose page is newer than its files, and pip's settings."""
    page = ""
    for version in (OLD, NEW):
        name, content = file_of(PACKAGE, version), wheel(PACKAGE, version, _files(version))
        page += f'<a href="../../files/{name}">{name}</a>\n'
        for place in ("pypi.example", "mirror.example") if version == OLD else ("pypi.example",):
            scene.write(f"network/{place}/files/{name}", content)
    for place in ("pypi.example", "mirror.example"):
        scene.write(f"network/{place}/simple/{PACKAGE}/index.html", page)
    scene.write("pip.conf", "[global]\nindex-url = http://mirror.example/simple\n")
    scene.venv(seed=True)


def symptom(scene: Scene) -> Outcome:
    """Install from where pip.conf says, in the lab's small network, and use what came."""
    done = _pip(scene, "install", PACKAGE)
    return done if done.status else scene.program("use_tokens.py")


def fault(scene: Scene) -> str:
    """Want the new release as its makers built it; what is there already may stay."""
    if not scene.consists_of(PACKAGE, _files(NEW)):
        done = symptom(scene)
        if done.status or not scene.consists_of(PACKAGE, _files(NEW)):
            return scene.fails(done) or scene.wrong("not-the-release")
    return scene.fails(scene.program("use_tokens.py"))


def _pip(scene: Scene, *arguments: str) -> Outcome:
    return scene.program("network.py", "pip", *arguments)


def _files(version: str) -> dict[str, str]:
    text = MODULE.replace("{version}", version)
    return {"lab_tokens.py": text + MODULE_NEW if version == NEW else text}
