"""The child's files can run in older targets, and parent and child know the same checks."""

# ruff: noqa: D102 - the names of `Gpu` are torch's and mean what torch's mean

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tables import each

from assistant.i18n import render, verbatim
from assistant.model.report import ESSENTIAL, FULL, QUICK, SPARE, check_title
from assistant.verify import run
from assistant.verify.checks_full import check_compile, memory_limiter
from assistant.verify.child import FILES, IMPORTS, Target, known_checks
from assistant.verify.run import SENTENCES, sentence

FOLDER = Path(run.__file__).parent


@each("name", ["child.py", IMPORTS, *FILES])
def test_the_file_reads_in_python_3_8_and_needs_nothing_of_ours(name):
    """Syntax of Python 3.8; imports at run time from the standard library only."""
    tree = ast.parse((FOLDER / name).read_text("utf-8"), feature_version=(3, 8))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    imported += [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_parent_and_child_know_the_same_checks():
    """Every check of a full verification exists, after the checks that it needs, with a title and a kind of its own."""
    checks = known_checks()
    assert set(FULL) == set(checks)
    assert FULL[: len(QUICK)] == QUICK
    for place, key in enumerate(FULL):
        assert set(checks[key][1]) <= set(FULL[:place])
        assert check_title(key) != verbatim(key)
    assert len({check_title(key) for key in FULL}) == len(FULL)
    assert set(QUICK) > ESSENTIAL
    assert not ESSENTIAL & SPARE


class Gpu:
    """What torch's module for CUDA does with memory: 8 GiB, of which blocks are granted up to the limit that is set."""

    def __init__(self):
        self.held, self.parts, self.waited = 1 << 30, [], []

    def get_device_properties(self, _device):
        return SimpleNamespace(total_memory=8 << 30)

    def memory_allocated(self, _device):
        return self.held

    def current_device(self):
        return 1

    def empty_cache(self):
        pass

    def synchronize(self, device):
        self.waited.append(device)

    def set_per_process_memory_fraction(self, part, place):
        if not isinstance(place, int):
            raise TypeError(f"Expected an integer, but got: {place}")  # as torch does for a device without an index
        self.parts.append((part, place))


@each(("index", "place"), [(None, 1), (0, 0)])
def test_memory_is_limited_and_work_awaited_on_the_gpu_that_was_asked_for(index, place):
    """A little more than is held, then all of it again, by the GPU's number."""
    gpu, target = Gpu(), Target("cuda")
    target.torch, target.device = SimpleNamespace(cuda=gpu), SimpleNamespace(type="cuda", index=index)
    limit = memory_limiter(target)
    limit(1 << 30)
    limit(None)
    target.wait([])
    assert gpu.parts == [(0.25, place), (1.0, place)]
    assert gpu.waited == [target.device]


def test_memory_that_cannot_be_limited_is_left_alone():
    """MPS and DirectML have nothing that limits them to a part of one device."""
    target = Target("mps")
    target.torch, target.device = SimpleNamespace(mps=SimpleNamespace()), SimpleNamespace(type="mps", index=0)
    assert memory_limiter(target) is None


def spoken():
    """Find what the child's files say: the keys and the names of the values."""
    calls = {"explain": 0, "refuse": 0, "Refused": 0, "failure": 1, "tried": 1}  # by the key's place
    for name in ("child.py", IMPORTS, *FILES):
        for node in ast.walk(ast.parse((FOLDER / name).read_text("utf-8"))):
            called = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            key = node.args[calls[called]] if isinstance(node, ast.Call) and called in calls else None
            if isinstance(key, ast.Constant):
                own = {"call", "error"} if called == "tried" else set()  # which that adds itself
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
    assert all(run._DEVICE.fullmatch(backend.value) for backend in run.Backend)


class Broken:
    """A target on which a compiled function fails; NumPy and torch are asked for no more than this."""

    kind = "cpu"
    data = put = wide = staticmethod(lambda *_: 1)
    explain = staticmethod(lambda reason, **_: {"reason": reason})
    numpy = SimpleNamespace(tanh=lambda _: SimpleNamespace(sum=lambda _: 1))

    def __init__(self, folder):
        self.torch = SimpleNamespace(compile=lambda function: function, __file__=f"{folder}/torch/__init__.py")

    def measure(self, *_):
        raise RuntimeError("CppCompileError")


def test_a_space_in_the_path_is_told_from_a_broken_compiler(monkeypatch):
    """What torch.compile cannot do below such a folder is lacking; elsewhere its failure is one."""
    monkeypatch.setattr("assistant.verify.checks_full.cannot_compile", lambda _: {})
    assert check_compile(Broken("/home/ada/my setup")) == {"status": "unsupported", "reason": "space in path"}
    with pytest.raises(RuntimeError):
        check_compile(Broken("/home/ada/setup"))
