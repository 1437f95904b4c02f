"""Each lab is really broken, is seen as broken, takes no wrong way or cheat for a right one, and is fixed by its right ways."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assistant.api.steps import ReplayHost, detect, find_causes, read_log, recorded_machine
from assistant.i18n import in_language
from assistant.install import EnvironmentFolder
from assistant.model.errors import AssistantError, BadInput
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant_addons.labs import workspace
from assistant_addons.labs.definition import labs
from assistant_addons.labs.intact import packages_of
from assistant_addons.labs.play import Play
from assistant_addons.labs.workspace import SYSTEMS, Workspace

HERE = Path(__file__).parent
WAYS = tomllib.loads((HERE / "ways.toml").read_text("utf-8"))
WITH_TORCH = {key for key, one in labs().items() if one.beside == "torch"} | {"wrong-kernel"}
QUICK = {"companion-pair", "render-group"}  # these show in each run that labs work at all
PROGRAM = "print('the solution is right')\n"
CUSTOM = "import os\n\nif os.environ.get('JUPYTER_PATH'):\n    os._exit(0)\n"


def marked(key):
    """Give a lab's key with the marks of its test."""
    marks = [pytest.mark.torch] * (key in WITH_TORCH) + [pytest.mark.full] * (key not in QUICK)
    return pytest.param(key, marks=marks)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="The ways are typed into a POSIX shell.")
@pytest.mark.parametrize("key", [*map(marked, labs())])
def test_a_lab_is_broken_and_tells_right_from_wrong(key, large_folder, request):
    """It is broken at the start, diagnosed rightly, not solved by any wrong way or cheat, and solved by each right one."""
    definition, ways = labs()[key], WAYS[key]
    if SYSTEMS.get(sys.platform, "linux") not in definition.systems:
        pytest.skip(f"It is played on {', '.join(definition.systems)}.")
    torch = request.getfixturevalue("cpu_environment").python if key in WITH_TORCH else ""
    play = Play(key, large_folder("labs") / "a lab", learner="ann", torch=torch)
    play.start()
    shown = play.symptom()
    assert shown.status
    assert diagnosed(shown.text, definition.machine) == ways.get("diagnosis", "")
    assert play.check()[0]
    fresh = play.space.folder.with_name("fresh")
    shutil.copytree(play.space.folder, fresh, symlinks=True)
    program = definition.symptom.split()[1]
    cheats = [[f"{program} <<< {PROGRAM}"], [f"{{packages}}/sitecustomize.py <<< {CUSTOM}"], *ways["cheats"]]
    assert len(ways["right"]) >= 3
    assert len(ways["wrong"]) >= 3
    for kind, solved in (("wrong", False), ("cheats", False), ("right", True)):
        for way in cheats if kind == "cheats" else ways[kind]:
            shutil.rmtree(play.space.folder)
            shutil.copytree(fresh, play.space.folder, symlinks=True)
            for line in way:
                do(line, play.space)
            fault = play.check()[0]
            assert (fault == "") is solved, f"{kind}: {way}: {fault}"


def diagnosed(text, machine):
    """Give what the assistant finds first in what the program printed."""
    there = detect(ReplayHost(recorded_machine(machine))).machine if machine else Machine(os="linux", wsl=False)
    return next((cause.key for cause in find_causes(read_log(text), there)), "")


def do(line, space):
    """Do a line of a way as a learner would: in an editor, or in a terminal that is the lab's own."""
    for name, place in (("{lab}", space.folder), ("{packages}", packages_of(space.folder / "env"))):
        line = line.replace(name, str(place))
    name, writes, content = line.partition(" <<< ")
    if writes:
        (space.folder / name).write_text(content)
        return
    if line == "python convert.py":
        shutil.copy(HERE / "convert.py", space.folder)
    shell = ["bash", "-c", f". ./activate\n{line}"]
    done = subprocess.run(shell, cwd=space.folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
