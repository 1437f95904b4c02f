"""Grade a class with nbgrader, 30 learners and 10 labs, a third of the notebooks wrong: run this file.

A shared folder and a teacher's environment are made first. Each lab is played once in each of three ways: mended at
once, mended after a hint, and left broken. Each learner hands in one of these notebooks for each
lab; nbgrader collects and grades them and writes its table, which is held against what was played, cell by cell. Last,
all labs are played in some homes that use the shared folder and in one that does not, and their bytes are compared.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers of all tests lie
from bubblewrap import obtain

from assistant.install import find_uv

ROOT = Path(__file__).parents[2]
KINDS = {"right": 10, "helped": 8, "wrong": 0}
LARGEST = 1.5  # of one learner's bytes
# What a learner's process does; it prints what the last check displays.
PLAY = """
import json, sys
from assistant.labs import Lab
from assistant.labs.definition import labs
key, kind = sys.argv[1:]
lab, (right, *_more) = Lab(key), labs()[key].ways.right
lab.start()
if kind == "helped":
    lab.hint()
if kind != "wrong":
    lab.predict(lab.text.cause, lab.text.evidence[0])
    for line in right.lines:
        name, writes, text = line.partition(" <<< ")
        lab.write(name, text) if writes else lab.run(line)
print(json.dumps(lab.check()._repr_mimebundle_()))
"""
# Hands in as each learner: what `nbgrader submit --student` does, without a process for each.
SUBMIT = """
import os, sys
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeSubmit
from traitlets.config import Config
course, exchange, work = sys.argv[1:]
for learner in sorted(os.listdir(work)):
    for lab in sorted(os.listdir(os.path.join(work, learner))):
        settings = {"course_id": course, "student_id": learner, "assignment_id": lab}
        places = {"root": exchange, "assignment_dir": os.path.join(work, learner)}
        config = Config({"CourseDirectory": settings, "Exchange": places})
        place = CourseDirectory(config=config)
        ExchangeSubmit(coursedir=place, authenticator=Authenticator(config=config), config=config).start()
"""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long a step took, and the most memory that this process's children held together meanwhile."""
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.5):
            held = 0
            for child in psutil.Process().children(recursive=True):
                try:
                    held += child.memory_info().rss
                except psutil.Error:
                    continue
            most[0] = max(most[0], held)

    watch = threading.Thread(target=look)
    watch.start()
    began = time.monotonic()
    try:
        yield
    finally:
        seconds = time.monotonic() - began
        done.set()
        watch.join()
        print(f"{what:44} {seconds:8.1f} s {most[0] / 2**20:8.0f} MB", flush=True)


def play(python: Path, lab: str, kind: str, home: Path, shared: str = "") -> dict[str, object]:
    """Play a lab in a home; answer what its last check displays."""
    home.mkdir(parents=True, exist_ok=True)
    names = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    variables = {**os.environ, **{name: str(home / name) for name in names}, "HOME": str(home)}
    variables["ASSISTANT_LABS_SHARED"] = shared
    done = subprocess.run([python, "-c", PLAY, lab, kind], env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def hand_in(
    course: Path, work: Path, learners: list[str], bundles: dict[tuple[str, str], dict[str, object]]
) -> dict[tuple[str, str], float]:
    """Put each learner's notebooks into a folder, as if they had run them; answer the points that each is worth."""
    labs = sorted(path.name for path in (course / "release").iterdir())
    worth = {}
    for number, learner in enumerate(learners):
        for place, lab in enumerate(labs):
            kind = list(KINDS)[(number + place) % len(KINDS)]
            notebook = nbformat.read(course / "release" / lab / f"{lab}.ipynb", as_version=4)
            output = nbformat.v4.new_output("execute_result", bundles[lab, kind], execution_count=1)
            notebook.cells[-1].outputs = [output]
            (work / learner / lab).mkdir(parents=True)
            nbformat.write(notebook, work / learner / lab / f"{lab}.ipynb")
            worth[learner, lab] = float(KINDS[kind])
    return worth


def size(folder: Path) -> int:
    """Count the bytes that a folder takes on the disk, a file with several names once."""
    seen = {(found.st_dev, found.st_ino): found.st_blocks * 512 for found in map(os.lstat, all_below(folder))}
    return sum(seen.values())


def all_below(folder: Path) -> Iterator[Path]:
    """Yield a folder and all that lies in it; no link is followed."""
    yield folder
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def main() -> int:
    """Print each step's time and memory, then the two verdicts; answer 1 where one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, default=30)
    parser.add_argument("--labs", type=int, default=10)
    parser.add_argument("--homes", type=int, default=30)
    parser.add_argument("--shared", type=Path, help="a folder that `labs prepare` has made; else one is made")
    asked = parser.parse_args()
    if reason := obtain():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shared = asked.shared or place / "shared"
        fine = graded(place, asked.learners, asked.labs, shared)
        return int(not (compared(place, asked.homes, shared) and fine))


def graded(place: Path, count: int, labs: int, shared: Path) -> bool:
    """Grade a class of that many learners; tell whether every cell of the table is right."""
    programs, course = place / "env" / "bin", place / "course"
    learners = [f"learner{number:02}" for number in range(count)]
    (place / "roster.csv").write_text("\n".join(["id", *learners, ""]))
    (place / "exchange").mkdir()
    with timed("the teacher's environment"):
        subprocess.run([find_uv(), "venv", "-q", "--python", sys.executable, place / "env"], check=True)
        wanted = ["-q", "--python", programs / "python", "-e", f"{ROOT}[course,onnxruntime]"]
        subprocess.run([find_uv(), "pip", "install", *wanted], check=True)
    run = commands(programs, course, shared)
    listed = json.loads(run("assistant", "labs", "list", "--json", folder=place))
    keys = [row["key"] for row in listed][:labs]
    named = [word for key in keys for word in ("--labs", key)]
    if not shared.exists():
        with timed("assistant labs prepare"):
            run("assistant", "labs", "prepare", "--shared", shared, *named, folder=place)
    with timed("assistant labs course"):
        files = ("--roster", place / "roster.csv", "--exchange", place / "exchange")
        run("assistant", "labs", "course", course, *named, *files, folder=place)
    with timed("generate_assignment, release_assignment"):
        run("nbgrader", "generate_assignment", "*")
        for key in keys:
            run("nbgrader", "release_assignment", key)
    with timed(f"playing {len(keys)} labs in three ways"):
        wanted = [(key, kind) for key in keys for kind in KINDS]
        bundles = {one: play(programs / "python", *one, place / "players" / one[1], str(shared)) for one in wanted}
    worth = hand_in(course, place / "work", learners, bundles)
    with timed(f"handing in {len(worth)} notebooks"):
        run("python", "-c", SUBMIT, "course", place / "exchange", place / "work")
    with timed("collect"):
        for key in keys:
            run("nbgrader", "collect", key)
    with timed("autograde"):
        run("nbgrader", "autograde", "*")
    with timed("generate_feedback, export"):
        run("nbgrader", "generate_feedback", "*")
        run("nbgrader", "export")
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        table = {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}
    wrong = {one for one in worth.keys() | table.keys() if worth.get(one) != table.get(one)}
    print(f"{len(table)} cells, {len(wrong)} wrong {sorted(wrong)[:5] or ''}")
    print(f"the largest process held {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")
    return not wrong


def commands(programs: Path, course: Path, shared: Path):
    """Answer a function that runs a command of the teacher's environment in the course, with its output kept back."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": path, "LANGUAGE": "en", "ASSISTANT_LABS_SHARED": str(shared)}

    def run(*argv: str | Path, folder: Path = course) -> str:
        settings = variables if (shared / "stamp").exists() else {**variables, "ASSISTANT_LABS_SHARED": ""}
        done = subprocess.run(
            [programs / argv[0], *argv[1:]], cwd=folder, env=settings, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    return run


def compared(place: Path, homes: int, shared: Path) -> bool:
    """Compare the bytes of homes that use the shared folder, and of that folder, with those of one home alone."""
    programs = place / "env" / "bin"
    keys = [path.name for path in sorted((place / "course" / "source").iterdir())]
    with timed(f"playing {len(keys)} labs in one home alone"):
        for key in keys:
            play(programs / "python", key, "right", place / "alone")
    with timed(f"playing {len(keys)} labs in {homes} homes"):
        for number in range(homes):
            for key in keys:
                play(programs / "python", key, "right", place / "homes" / str(number), str(shared))
    alone, together = size(place / "alone"), size(place / "homes") + size(shared)
    each = size(place / "homes") / homes
    print(
        f"one home alone {alone / 1e6:.0f} MB, shared {size(shared) / 1e6:.0f} MB, {homes} homes of {each / 1e6:.1f} MB"
    )
    print(f"together {together / alone:.2f} times one home's bytes (at most {LARGEST})")
    return together <= LARGEST * alone


if __name__ == "__main__":
    sys.exit(main())
