"""Each lab is really broken, is seen as broken, takes no wrong way for a right one, and is fixed by its right ways."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assistant.diagnose import load_rules
from assistant.install import EnvironmentFolder
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import replace
from assistant_addons.labs import Lab, scene
from assistant_addons.labs.definition import PROGRAM, Definition, lab_at, labs
from assistant_addons.labs.lab import SYSTEMS, check_system
from assistant_addons.labs.notebook import names, notebook_of
from assistant_addons.labs.stand_ins import add_to_index, wheel

ROOT = Path(__file__).parents[3]
WITH_TORCH = {"directml-on-linux", "wrong-kernel", "missing-solve", "silent-cpu", "launch-arguments"}
QUICK = {"companion-pair", "render-group"}  # these show in each run that labs work at all
MENDED = """services:
  train:
    image: lab/pytorch-rocm
    user: "1000:1000"
    devices: [/dev/kfd, /dev/dri]
    group_add: ["992"]
"""


def marked(key):
    """Give a lab's key with the marks of its test."""
    marks = [pytest.mark.torch] * (key in WITH_TORCH) + [pytest.mark.full] * (key not in QUICK)
    return pytest.param(key, marks=marks)


@pytest.mark.process
@pytest.mark.parametrize("key", [*map(marked, labs())])
def test_a_lab_breaks_is_understood_and_tells_right_from_wrong(key, tmp_path, request):
    """Broken and shown at the start, diagnosed rightly, still broken after each wrong way, fixed by each right one."""
    definition, folder = labs()[key], tmp_path / "a lab"
    text = definition.english
    if SYSTEMS.get(sys.platform, "linux") not in text.systems:
        pytest.skip(f"It is played on {', '.join(text.systems)}.")
    torch = request.getfixturevalue("cpu_environment").python if key in WITH_TORCH else ""
    lab = Lab(key, folder, learner="ann", torch=torch)
    shown = lab.start().text
    assert all(f"- `{cause}`: {words}" in shown for cause, words in text.causes.items())
    assert "evidence proves it" in lab.predict(text.cause, shown).text
    assert lab.check().text.startswith("Not fixed yet.")
    assert definition.program.symptom(lab.scene).status
    assert next((cause.key for cause in lab._causes()), "") == text.diagnosis
    for way in definition.ways.wrong:
        assert after(lab, way), f"taken for right: {way}"
    first, *others = definition.ways.right
    for way in others:
        assert after(lab, way) == "", f"refused: {way}"
    lab.reset()
    for line in first.lines:
        do(line, lab.scene, lab)
    assert lab.check().text.startswith("**Fixed: 10 of 10 points.**")


def after(lab, way):
    """Start anew, do what a way says, and give what is still wrong; the journal says nothing of it."""
    lab._break()
    for line in way.lines:
        do(line, lab.scene, lab.scene)
    return lab._fault()


def do(line, scene, player):
    """Let a learner, or only the scene, do a line of a way."""
    name, writes, content = line.partition(" <<< ")
    if writes:
        player.write(name, filled(content, scene, str))
    else:
        player.run(filled(line, scene, lambda path: shlex.quote(str(path))))


def filled(text, scene, written):
    """Put this machine's places into a line of a way."""
    return text.replace("{lab}", written(scene.folder)).replace("{work}", written(scene.python("work")))


def unwritten(definition: Definition) -> Iterator[str]:
    """Yield what a lab's texts lack, in English or in Chinese, and what they give away."""
    text, ways = definition.english, definition.ways
    least = {"hints": 2, "causes": 2, "objectives": 1, "evidence": 1}
    yield from (name for name, count in least.items() if len(getattr(text, name)) < count)
    if len(ways.right) < 2 or not ways.wrong:
        yield "ways"
    if text.cause not in text.causes or text.diagnosis not in {"", *load_rules().by_key}:
        yield "its cause or its diagnosis is not there"
    typed = {word for way in ways.right for line in way.lines for word in re.findall(r"[\w./<>=-]{5,}", line)}
    if not any(word in text.hints[-1] for word in typed):
        yield "the last hint names nothing of any right way"
    if any(piece in (definition.folder / PROGRAM).read_text("utf-8") for piece in text.evidence):
        yield "the evidence stands in scene.py, so that no program needs to fail"
    for name in definition.chinese.__struct_fields__:
        here, there = flat(getattr(text, name)), flat(getattr(definition.chinese, name))
        if here.keys() != there.keys() or any(code_in(here[part]) != code_in(there[part]) for part in here):
            yield f"{name} has other parts or shows other code in Chinese"


def flat(value):
    """Give the parts of a text, of several, or of a table, by name."""
    return value if isinstance(value, dict) else dict(enumerate([value] if isinstance(value, str) else value))


def code_in(text):
    """List what a text shows as code."""
    return sorted(re.findall(r"`[^`]+`", text))


def test_the_texts_of_all_labs_are_whole():
    """In both languages, with hints that lead to a right way."""
    assert {key: list(unwritten(definition)) for key, definition in labs().items()} == {key: [] for key in labs()}


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


def test_the_notebooks_are_made_from_the_labs():
    """`assistant labs notebooks notebooks/labs` writes them anew; nothing else, such as an answer, lies beside them."""
    folder = ROOT / "notebooks" / "labs"
    made = {name: notebook_of(key) for name, key in names().items()}
    assert made == {path.name: path.read_text("utf-8") for path in folder.glob("*.ipynb")}


@pytest.fixture
def lab(request, tmp_path):
    """Give a lab in a folder of its own."""
    return Lab(request.param, tmp_path / "a lab", learner="ann")


GROUP = pytest.mark.parametrize("lab", ["render-group"], indirect=True)
PAIR = pytest.mark.parametrize("lab", ["companion-pair"], indirect=True)


@pytest.mark.process
@GROUP
def test_points_follow_from_all_that_was_done(lab):
    """Looking is free, as is the first check that fails; hints and the diagnosis cost, and a reset forgets nothing."""
    lab.start()
    assert "is not among this lab's causes" in refused(lambda: lab.predict("bad-luck", ""))
    assert "evidence proves it" in lab.predict("group-missing", "Permission denied").text
    assert lab.check().text.startswith("Not fixed yet.")
    assert "8 are left" in lab.hint().text
    assert "7 are left" in lab.diagnose().text
    lab.reset()
    lab.write("compose.yaml", MENDED)
    assert lab.check().text.startswith("**Fixed: 7 of 10 points.**")
    assert "Remember" in lab.check().text


@pytest.mark.process
@PAIR
def test_what_is_printed_can_be_typed_back(lab, monkeypatch):
    """Places are named as seen from the lab's folder; outputs are whole, folded where long, and without colours."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.setenv(name, "1")
    started = lab.start().text
    installed = lab.run("pip install --no-index --find-links wheels --dry-run --reinstall lab-detector==9").text
    assert " environment at: env\n" in installed
    assert "\x1b" not in started + installed
    assert lab.run('python -c "import sys; print(sys.prefix)"').text == "```text\nenv\n```"
    assert lab.run("python -c \"open('made.txt', 'w').write('here')\"").text == "```text\n\n```"
    assert lab.read("made.txt") == "here"
    lab.write("made.txt", lab.read("made.txt") + " again")
    assert lab.read("made.txt") == "here again"
    long = lab.run("python -c \"print('\\n'.join(map(str, range(100))))\"")
    assert "<summary>All 100 lines</summary>" in long.text
    assert repr(long).splitlines() == [*map(str, range(100))]


@pytest.mark.process
@GROUP
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
    assert "something other than a lab" in refused(Lab("render-group", tmp_path).start)
    assert "There is no lab named" in refused(lambda: Lab("no-such-lab"))
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
        python = EnvironmentFolder(target).python
        python.parent.mkdir(parents=True)
        python.touch()

    monkeypatch.setattr(scene, "install_torch", install)
    monkeypatch.setattr(scene, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(scene, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(scene.Store, "environment", lambda _self: None)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(scene.environment_with_torch) for _lab in range(2)]
    assert [one.result() for one in found] == [str(EnvironmentFolder(tmp_path / "torch-cpu").python)] * 2
    assert len(made) == 1


@pytest.mark.process
@PAIR
def test_packages_come_from_where_the_users_pip_takes_them(lab, tmp_path, monkeypatch):
    """The user's mirror is asked, what is installed is a copy of its own, and the doctor looks at the lab."""
    lab.start()
    add_to_index(tmp_path / "simple", "lab-demo", {"1.0": wheel("lab-demo", "1.0", {"lab_demo.py": "VALUE = 42\n"})})
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    scene.package_sources.cache_clear()
    asking = Lab("companion-pair", lab.scene.folder, learner="ann")
    asking.run("uv pip install lab-demo")
    scene.package_sources.cache_clear()
    (module,) = asking.scene.folder.rglob("lab_demo.py")
    assert module.stat().st_nlink == 1
    assert asking.scene._argv("assistant", "doctor")[-1] == str(asking.scene.folder / "env")


def test_a_lab_that_needs_another_machine_says_so():
    """Another system or package is one sentence, before anything is made."""
    text = labs()["render-group"].english
    another = next(name for name in text.systems if name != SYSTEMS.get(sys.platform, "linux"))
    for changed, sentence in (
        (replace(text, systems=(another,)), "can be played on"),
        (replace(text, needs=("no_such_module",)), "is not installed here"),
    ):
        with pytest.raises(AssistantError, match=sentence):
            check_system(changed)
    check_system(text)
