"""The child's files can run in older targets, and parent and child know the same checks."""

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tables import each

from assistant.i18n import render, verbatim
from assistant.model.report import ESSENTIAL, FULL, OPTIONAL, QUICK, check_title
from assistant.verify import runner
from assistant.verify.checks import check_compile
from assistant.verify.child import FILES, IMPORTS, Target, all_checks
from assistant.verify.runner import SENTENCES, sentence

FOLDER = Path(runner.__file__).parent


@each("name", ["child.py", IMPORTS, *FILES])
def test_the_file_reads_in_python_3_8_and_needs_nothing_of_ours(name):
    """Syntax of Python 3.8; imports at run time from the standard library only."""
    tree = ast.parse((FOLDER / name).read_text("utf-8"), feature_version=(3, 8))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    imported += [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_parent_and_child_know_the_same_checks():
    """Every check of a full verification exists, after the checks that it needs, with a title and a kind of its own."""
    checks = all_checks()
    assert {*FULL, "picture"} == set(checks)  # which the wizard draws at the end
    assert FULL[: len(QUICK)] == QUICK
    for place, key in enumerate(FULL):
        assert set(checks[key][1]) <= set(FULL[:place])
        assert check_title(key) != verbatim(key)
    assert len({check_title(key) for key in FULL}) == len(FULL)
    assert set(QUICK) > ESSENTIAL
    assert not ESSENTIAL & OPTIONAL


def test_work_is_awaited_on_the_gpu_that_was_asked_for():
    """Without its name the first GPU would be waited for."""
    awaited, target = [], Target("cuda:1")
    target.torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=awaited.append))
    target.device = SimpleNamespace(type="cuda", index=1)
    target.wait([])
    assert awaited == [target.device]


def spoken():
    """Find what the child's files say: the keys and the names of the values."""
    calls = {"explain": 0, "refuse": 0, "Refused": 0, "failure": 1, "run_call": 1}  # by the key's place
    for name in ("child.py", IMPORTS, *FILES):
        for node in ast.walk(ast.parse((FOLDER / name).read_text("utf-8"))):
            called = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            key = node.args[calls[called]] if isinstance(node, ast.Call) and called in calls else None
            if isinstance(key, ast.Constant):
                raised = called == "failure" and len(node.args) > calls[called] + 1
                own = {"call", "error"} if called == "run_call" else {"error"} if raised else set()  # which they add
                yield key.value, own | {keyword.arg for keyword in node.keywords if keyword.arg}
            if isinstance(node, ast.Dict):
                items = zip(node.keys, node.values, strict=True)
                yield from (
                    (value.value, set())
                    for key, value in items
                    if getattr(key, "value", "") == "reason" and isinstance(value, ast.Constant)
                )


@each(("reason", "names"), sorted(spoken(), key=str))
def test_what_the_child_says_is_a_sentence(reason, names):
    """Each key has a sentence, and the values that it names are sent, as far as they are written out."""
    values = dict.fromkeys(re.findall(r"\{(\w+)", SENTENCES[reason].id), 1.0)
    assert render(sentence(reason, values)).endswith((".", "1.0"))
    assert not names or names == set(values)


def test_an_unknown_reason_is_shown_as_it_came():
    """An older or newer child's words are not lost."""
    assert sentence("too hot", {"degrees": 99}) == "too hot degrees=99"
    assert sentence("", {}) == ""


def test_every_backend_names_a_device_that_can_be_verified():
    """`verify` and `INFERENCE_DEVICE` take the plan's word."""
    assert all(runner._DEVICE.fullmatch(backend.value) for backend in runner.Backend)


class Broken:
    """A target on which a compiled function fails; NumPy and torch are asked for no more than this."""

    kind = "cpu"
    random_array = to_device = to_float64 = staticmethod(lambda *_: 1)
    explain = staticmethod(lambda reason, **_: {"reason": reason})
    numpy = SimpleNamespace(tanh=lambda _: SimpleNamespace(sum=lambda _: 1))

    def __init__(self, folder):
        self.torch = SimpleNamespace(compile=lambda function: function, __file__=f"{folder}/torch/__init__.py")

    def measure(self, *_):
        """Fail as Inductor does without a compiler."""
        raise RuntimeError("CppCompileError")


def test_a_space_in_the_path_is_told_from_a_broken_compiler(monkeypatch):
    """What torch.compile cannot do below such a folder is lacking; elsewhere its failure is one."""
    monkeypatch.setattr("assistant.verify.checks.missing_for_compile", lambda _: {})
    assert check_compile(Broken("/home/ada/my setup")) == {"status": "unsupported", "reason": "space in path"}
    with pytest.raises(RuntimeError):
        check_compile(Broken("/home/ada/setup"))
