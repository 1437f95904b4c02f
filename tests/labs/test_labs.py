"""Each lab is really broken, is seen as broken, takes no wrong way for a right one, and is fixed by its right ways."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assistant.install import interpreter
from assistant.labs import Lab, broken_labs, lab_at, labs, new_lab, scene, try_lab
from assistant.labs.notebook import names, notebook_of, text_of
from assistant.model.errors import AssistantError, BadInput

ROOT = Path(__file__).parents[2]


@pytest.mark.process
@pytest.mark.parametrize("key", labs())
def test_a_lab_is_what_its_author_promises(key, tmp_path, cpu_environment):
    """Broken at the start, diagnosed rightly, still broken after each wrong way, fixed by at least two right ones."""
    trial = try_lab(labs()[key], tmp_path, torch=cpu_environment.python)
    assert trial.faults == ()


LEARNERS = range(150)


def test_no_place_gives_the_right_cause_away():
    """Over many learners each place holds it about as often, in each lab; both languages show a learner one order."""
    overall = Counter()
    for key, definition in labs().items():
        orders = {name: list(definition.text(f"learner {name}", "en").causes) for name in LEARNERS}
        places = Counter(order.index(definition.english.cause) for order in orders.values())
        even = len(LEARNERS) / len(definition.english.causes)
        assert all(0.6 * even < places[place] < 1.4 * even for place in range(len(definition.english.causes))), key
        overall += places
        again = {name: list(definition.text(f"learner {name}", "zh_CN").causes) for name in LEARNERS}
        assert orders == again == {name: list(lab_at(key).text(f"learner {name}").causes) for name in LEARNERS}
        assert list(definition.text().causes) == list(definition.text().causes)
    assert all(0.3 < count / overall.total() < 0.37 for count in overall.values()), overall


@pytest.mark.process
def test_a_lab_shows_its_causes_in_the_learners_order(tmp_path):
    """At each start, in the list to choose from and after a wrong key; the key decides, not the place."""
    shown = set()
    for name in ("", "ann", "bob", "cem", "dan", "eve"):
        lab = Lab("render-group", tmp_path / f"lab {name}", learner=name)
        order = list(lab.text.causes)
        assert re.findall(r"^- `([\w-]+)`: ", lab.start().text, re.MULTILINE) == order
        assert re.findall(r"^- `([\w-]+)`: ", lab.reset().text, re.MULTILINE) == order
        with pytest.raises(BadInput) as found:
            lab.predict("bad-luck", "")
        assert ", ".join(order) in str(found.value.hint)
        assert "evidence proves it" in lab.predict("group-missing", "Permission denied").text
        shown.add(order.index("group-missing"))
    assert len(shown) > 1


@pytest.mark.parametrize("name", names())
def test_notebooks_are_made_from_the_labs(name):
    """A notebook says what its lab's folder says; `assistant labs notebooks notebooks/labs` writes it anew."""
    assert (ROOT / "notebooks" / "labs" / name).read_text("utf-8") == text_of(notebook_of(names()[name]))


@pytest.fixture
def lab(request, tmp_path):
    """Give a lab in a folder of its own, that needs no torch."""
    return Lab(request.param, tmp_path / "a lab", learner="ann")


HASH = pytest.mark.parametrize("lab", ["wrong-hash"], indirect=True)
GENUINE = "pip install --no-cache-dir --index-url upstream/simple lab-demo"


@pytest.mark.process
@HASH
def test_points_follow_from_all_that_was_done(lab):
    """Looking is free, as is the first check that fails; hints and the diagnosis cost, and a reset forgets nothing."""
    lab.start()
    assert "is not among this lab's causes" in refused(lambda: lab.predict("bad-luck", ""))
    assert "evidence proves it" in lab.predict("other-file", "Expected sha256 60880095").text
    assert lab.check().text.startswith("Not fixed yet.")
    assert "8 are left" in lab.hint().text
    assert "7 are left" in lab.diagnose().text
    lab.reset()
    lab.run(GENUINE)
    assert lab.check().text.startswith("**Fixed: 7 of 10 points.**")
    assert "Remember" in lab.check().text


@pytest.mark.process
@HASH
def test_what_is_printed_can_be_typed_back(lab, monkeypatch):
    """Places are named as seen from the lab's folder; outputs are whole, folded where long, and without colours."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.setenv(name, "1")
    started = lab.start().text
    assert "Looking in indexes: mirror/simple" in started
    assert "\x1b" not in started + lab.run("pip install --index-url mirror/simple lab-demo").text
    assert lab.run("python -c \"open('made.txt', 'w').write('here')\"").text == "```text\n\n```"
    assert lab.read("made.txt") == "here"
    lab.write("made.txt", lab.read("made.txt") + " again")
    assert lab.read("made.txt") == "here again"
    long = lab.run("python -c \"print('\\n'.join(map(str, range(100))))\"")
    assert "<summary>All 100 lines</summary>" in long.text
    assert repr(long).splitlines() == [*map(str, range(100))]


@pytest.mark.process
@HASH
def test_a_lab_reaches_nothing_but_its_folder(lab, tmp_path):
    """A file outside is refused, as is any program but the labs' own and a folder that holds something else."""
    lab.start()
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (lab.scene.folder / "led").symlink_to(tmp_path)
    for name in ("../outside.txt", "led/outside.txt", str(outside)):
        assert "not in the lab's folder" in refused(lambda name=name: lab.write(name, ""))
        assert "not in the lab's folder" in refused(lambda name=name: lab.read(name))
    assert "is not a program" in refused(lambda: lab.run("rm -rf /"))
    assert "has no partner" in refused(lambda: lab.run('python -c "'))
    assert "something other than a lab" in refused(Lab("wrong-hash", tmp_path).start)
    assert outside.read_text() == "mine"


def refused(deed):
    """Do what must be refused, and return the sentence."""
    with pytest.raises(BadInput) as found:
        deed()
    return str(found.value.message)


def test_two_labs_at_once_make_one_environment(tmp_path, monkeypatch):
    """The second waits for what the first makes, and takes it."""
    made = []

    def install(_own, target):
        made.append(target)
        time.sleep(0.3)
        python = interpreter(target)
        python.parent.mkdir(parents=True)
        python.touch()

    monkeypatch.setattr(scene, "install_torch", install)
    monkeypatch.setattr(scene, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(scene, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(scene.Store, "environment", lambda _self: None)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(scene.environment_with_torch) for _lab in range(2)]
    assert [one.result() for one in found] == [str(interpreter(tmp_path / "torch-cpu"))] * 2
    assert len(made) == 1


BROKEN = {
    "no scene.py": {"lab.toml": None},
    "no such cause": {"lab.toml": ('cause = "other-file"', 'cause = "moon"'), "scene.py": None},
    "no toml": {"lab.toml": ("schema = 1", "schema = "), "scene.py": None},
}


def test_a_broken_lab_of_the_users_own_costs_a_sentence(tmp_path, monkeypatch):
    """The others are still there, and its key says what is wrong."""
    for name, files in BROKEN.items():
        folder = tmp_path / name.replace(" ", "-").replace(".", "")
        folder.mkdir()
        for file, change in files.items():
            text = (labs()["wrong-hash"].folder / file).read_text("utf-8")
            (folder / file).write_text(text.replace(*change) if change else text)
    monkeypatch.setenv("ASSISTANT_LABS", str(tmp_path))
    assert "wrong-hash" in labs()
    assert len(broken_labs()) == len(BROKEN)
    assert "no-such-cause" not in labs()
    assert "moon" in refused(lambda: Lab("no-such-cause"))


@pytest.mark.process
@HASH
def test_packages_come_from_where_the_users_pip_takes_them(lab, monkeypatch):
    """The user's mirror is asked, what is installed is a copy of its own, and the doctor looks at the lab."""
    lab.start()
    monkeypatch.setenv("PIP_INDEX_URL", (lab.scene.folder / "upstream" / "simple").as_uri())
    scene.package_sources.cache_clear()
    asking = Lab("wrong-hash", lab.scene.folder, learner="ann")
    asking.run("uv pip install lab-demo")
    scene.package_sources.cache_clear()
    (module,) = asking.scene.folder.rglob("lab_demo.py")
    assert module.stat().st_nlink == 1
    assert asking.check().text.startswith("**Fixed")
    assert asking.scene._argv("assistant", "doctor")[-2:] == ["--target", str(asking.scene.folder / "env")]


VARIANTS = """
[[variant]]
size = "3"

[[variant]]
size = "5"
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Give a folder for labs of one's own, with one in two variants."""
    place = new_lab("sizes", tmp_path / "own")
    for name in ("lab.toml", "lab.zh_CN.toml", "ways.toml"):
        text = (place / name).read_text("utf-8").replace('": 3', '": {size}').replace("': 3", "': {size}")
        (place / name).write_text(text + (VARIANTS if name == "lab.toml" else ""), "utf-8")
    program = (place / "scene.py").read_text("utf-8").replace('size == "3"', 'size == scene.values["size"]')
    (place / "scene.py").write_text(program, "utf-8")
    monkeypatch.setenv("ASSISTANT_LABS", str(tmp_path / "own"))
    return labs()["sizes"]


@pytest.mark.process
def test_learners_get_variants_of_their_own(own, tmp_path):
    """A name draws the variant, always the same; the texts, the lab and its ways are filled in with it."""
    assert try_lab(own, tmp_path / "trial").faults == ()
    drawn = {name: own.values(name)["size"] for name in ("", *map(str, range(20)))}
    assert set(drawn.values()) == {"3", "5"}
    assert drawn[""] == "3"
    other = next(name for name, size in drawn.items() if size == "5")
    lab = Lab("sizes", tmp_path / "lab", learner=other)
    lab.start()
    lab.write("settings.json", '{"name": "demo", "size": 3}')
    assert "but with size 3" in lab.check().text
    lab.write("settings.json", '{"name": "demo", "size": 5}')
    assert lab.check().text.startswith("**Fixed: 9 of 10")


@pytest.mark.process
def test_a_lab_that_needs_another_machine_says_so(own, tmp_path):
    """Another system, Python or package is one sentence, before anything is made."""
    for change, sentence in {
        'systems = ["macos"]' if sys.platform != "darwin" else 'systems = ["linux"]': "can be played on",
        'needs = ["no_such_module"]': "is not installed here",
    }.items():
        text = (own.folder / "lab.toml").read_text("utf-8")
        (own.folder / "lab.toml").write_text(f"{change}\n{text}", "utf-8")
        with pytest.raises(AssistantError, match=sentence):
            Lab(str(own.folder), tmp_path / "lab").start()
        (own.folder / "lab.toml").write_text(text, "utf-8")
    assert not (tmp_path / "lab").exists()


def test_no_answer_lies_beside_the_labs():
    """The folder of the learners' notebooks holds those of the labs and nothing else."""
    assert {path.name for path in (ROOT / "notebooks" / "labs").glob("*.ipynb")} == {*names()}
