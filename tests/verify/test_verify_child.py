"""The child's files can run in older targets, and parent and child know the same checks."""

import ast
import re
import sys
from pathlib import Path

import pytest

from assistant.verify import run
from assistant.verify.child import FILES, known_checks
from assistant.verify.sentences import sentence, sentences

FOLDER = Path(run.__file__).parent
SENTENCES = sentences()


@pytest.mark.parametrize("name", ["child.py", *FILES])
def test_the_file_reads_in_python_3_8_and_needs_nothing_of_ours(name):
    """Syntax of Python 3.8; imports at run time from the standard library only."""
    tree = ast.parse((FOLDER / name).read_text("utf-8"), feature_version=(3, 8))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    imported += [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_parent_and_child_know_the_same_checks():
    """Every check of a full verification exists, after the checks that it needs, and has a title."""
    checks = known_checks()
    assert set(run.FULL) == set(checks)
    assert run.FULL[: len(run.QUICK)] == run.QUICK
    for place, key in enumerate(run.FULL):
        assert set(checks[key][1]) <= set(run.FULL[:place])
        assert run.check_title(key) != key


def spoken():
    """Find what the child's files say: the keys and the names of the values."""
    calls = {"say", "refuse", "Refused"}
    for name in ("child.py", *FILES):
        for node in ast.walk(ast.parse((FOLDER / name).read_text("utf-8"))):
            called = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            if isinstance(node, ast.Call) and called in calls and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, {keyword.arg for keyword in node.keywords if keyword.arg}
            if isinstance(node, ast.Dict):
                items = zip(node.keys, node.values, strict=True)
                yield from (
                    (value.value, set())
                    for key, value in items
                    if getattr(key, "value", "") == "reason" and isinstance(value, ast.Constant)
                )


@pytest.mark.parametrize(("reason", "names"), sorted(spoken(), key=str))
def test_what_the_child_says_is_a_sentence(reason, names):
    """Each key has a sentence, and the values that it names are sent, as far as they are written out."""
    values = dict.fromkeys(re.findall(r"\{(\w+)", SENTENCES[reason]), 1.0)
    assert sentence(reason, values).endswith((".", "1.0"))
    assert not names or names == set(values)


def test_every_sentence_is_said_somewhere():
    """No sentence is left over."""
    assert set(SENTENCES) == {reason for reason, _names in spoken()}


def test_an_unknown_reason_is_shown_as_it_came():
    """An older or newer child's words are not lost."""
    assert sentence("too hot", {"degrees": 99}) == "too hot degrees=99"
    assert sentence("", {}) == ""


def test_every_backend_names_a_device_that_can_be_verified():
    """`device_for` gives what `verify` takes."""
    assert all(run._DEVICE.fullmatch(run.device_for(backend)) for backend in run.Backend)
