"""Launch arguments from a guide for graphics cards, on a computer without one."""

from assistant_addons.labs.scene import Outcome, Scene


def breaks(scene: Scene) -> None:
    """Write the arguments as the guide has them, with the one that a first attempt has added."""
    scene.write("launch.json", '{"arguments": ["--cpu", "--preview-method", "auto", "--force-fp16"]}\n')


def symptom(scene: Scene) -> Outcome:
    """Start the application."""
    return scene.program("main.py", str(scene.folder / "launch.json"), python=scene.torch)


def fault(scene: Scene) -> str:
    """Want an image, made on the CPU."""
    done = symptom(scene)
    return scene.fails(done) or ("" if done.last.endswith(" on cpu") else scene.wrong("not-on-cpu"))
