"""No regular expression of the assistant grows faster than its text, whatever the text repeats."""

from __future__ import annotations

import ast
import importlib
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from re import _constants, _parser
from typing import NamedTuple

import pytest
from tables import each

from assistant.catalog import identity
from assistant.diagnose.rules import compiled, load_rules
from assistant.host.base import TEXTS
from assistant.privacy.rules import DEFAULT_NAMES, RULES, SECRET_NAME

ROOT = Path(__file__).parents[1]
CALLS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
GLANCE = 2_000  # characters; what a quadratic pattern takes for them shows whether longer texts are worth their time
SHORT, LONG = 3_000, 6_000
QUICK = 0.004  # seconds that the longest text may take, however it grows: shorter ones are too short to be timed
GROWS = 3.0
SLOW = 0.5  # seconds for the shorter text: too slow, however it grows
PARTS, MOST = 8, 40  # of a pattern that are begun with, and of signs that follow such a beginning
NAMED = (
    "catalog/identity.py",
    "detect/common.py",
    "install/uv.py",
    "privacy/rules.py",
    "prose.toml",
    "rules/mps.toml",
)  # once grew faster
ONE_IN = 6  # of the others in the default run
CLASSES = {
    _constants.CATEGORY_SPACE: " \t\n",
    _constants.CATEGORY_DIGIT: "0",
    _constants.CATEGORY_WORD: "a_0",
    _constants.CATEGORY_NOT_SPACE: "a",
    _constants.CATEGORY_NOT_DIGIT: "a ",
    _constants.CATEGORY_NOT_WORD: " -",
}


class Used(NamedTuple):
    """A pattern, how it is asked, and where it stands."""

    where: str
    pattern: re.Pattern[str]
    method: str


@cache
def every() -> tuple[Used, ...]:
    """Collect what stands in the modules and in the rules."""
    modules = sorted(path for path in (ROOT / "assistant").rglob("*.py") if "programs" not in path.parts)
    found = [*chain.from_iterable(map(of_module, modules)), *of_rules(), *of_privacy(), *of_recordings()]
    return tuple({(used.pattern, used.method): used for used in found}.values())


def of_module(path: Path) -> Iterator[Used]:
    """Find the patterns that a module compiles, and those that it hands to `re` as they are."""
    place = str(path.relative_to(ROOT / "assistant"))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    values = dict(_named(path, tree))
    for call in calls:
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "re" and call.func.attr in CALLS:
            text, flags = _constant(call.args[0], values), [arg.value for arg in call.keywords if arg.arg == "flags"]
            if text is not None:
                yield Used(f"{place}:{call.lineno}", re.compile(text, _flags([*call.args[2:], *flags])), call.func.attr)
    asked = {(node.func.value.id, node.func.attr) for node in calls if isinstance(node.func.value, ast.Name)}
    for variable, value in values.items():
        methods = {method for known, method in asked if known == variable} & CALLS or {"search"}
        for pattern in _patterns(value):
            yield from (Used(f"{place}:{variable}", pattern, method) for method in sorted(methods))


def _named(path: Path, tree: ast.Module) -> Iterable[tuple[str, object]]:
    """Give a module's names and values; of one that only torch's own Python can import, what it compiles."""
    if "re" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        return ()
    try:
        return vars(importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))).items()
    except ImportError:
        calls = [(node.targets[0], node.value) for node in tree.body if isinstance(node, ast.Assign)]
        compiled = [(name.id, call.args) for name, call in calls if "re.compile" in ast.unparse(call)]
        return [(name, re.compile(_constant(args[0], {}), _flags(args[1:]))) for name, args in compiled]


def of_rules() -> Iterator[Used]:
    """Give the signs of the rules, and all other texts of their files that are read as patterns."""
    folder = ROOT / "assistant" / "diagnose"
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "rules").glob("*.toml"))}
    for text in load_rules().literals:
        name = next((name for name, told in texts.items() if text in told), "rule")
        yield Used(f"rules/{name}", compiled(text), "search")
    for rows in tomllib.loads((folder / "localized_messages.toml").read_text(encoding="utf-8"))["manners"].values():
        yield from (Used("localized_messages.toml", re.compile(text), "search") for text in rows)
    for name, words in tomllib.loads((folder / "symptoms.toml").read_text(encoding="utf-8"))["words"].items():
        yield Used(f"symptoms.toml:{name}", re.compile("|".join(words), re.ASCII), "finditer")
    for row in tomllib.loads((folder / "prose.toml").read_text(encoding="utf-8"))["sign"]:
        texts = (*row.get("near", ()), *row.get("without", ()))
        yield from (Used(f"prose.toml:{row['key']}", re.compile(text, re.ASCII), "finditer") for text in texts)
    programs = tomllib.loads((folder / "programs.toml").read_text(encoding="utf-8"))
    for row in programs["family"]:
        yield from (
            Used("programs.toml", re.compile("|".join(row[key])), "search") for key in ("names", "text") if key in row
        )
    for kind in ("own_runtime", "not_python"):
        yield from (
            Used("programs.toml", re.compile("|".join(programs[kind][key])), "search") for key in ("all", "none")
        )
    for name in ("hints.toml", "evidence.toml"):
        tables = tomllib.loads((folder / name).read_text(encoding="utf-8")).values()
        for row in (row for table in tables if isinstance(table, list) for row in table):
            texts = (*row.get("any", ()), *row.get("all", ()), *row.get("none", ()))
            yield from (Used(name, re.compile(text, re.ASCII), "search") for text in texts)
    for table in ("vendors", "mentions", "systems", "hints", "spoken", "architectures", "idle_names"):
        yield from (Used("names.json", pattern, "search") for pattern in identity.patterns(table).values())


def of_privacy() -> Iterator[Used]:
    """Give what is taken out of texts."""
    yield from (Used("privacy/rules.py", re.compile(rule.pattern), "sub") for rule in RULES)
    yield Used("privacy/rules.py", re.compile(SECRET_NAME), "search")
    yield Used("privacy/rules.py", re.compile(DEFAULT_NAMES), "fullmatch")


def of_recordings() -> Iterator[Used]:
    """Give what is kept of answers."""
    for _kind, question, line in TEXTS:
        yield from (Used("host/base.py", re.compile(text), "fullmatch") for text in (question, line))


def _constant(node: ast.AST, values: Mapping[str, object]) -> str | None:
    try:
        value = values.get(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _flags(nodes: Iterable[ast.AST]) -> int:
    names = {part.attr for node in nodes for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return sum(getattr(re, name) for name in names if isinstance(getattr(re, name, None), re.RegexFlag))


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict):
        for item in chain(value, value.values()):
            yield from _patterns(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _patterns(item)
    elif hasattr(value, "__struct_fields__"):
        yield from _patterns(tuple(getattr(value, name, None) for name in value.__struct_fields__))


def texts(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Give beginnings and what could follow them again and again.

    A text could repeat blanks, the pattern's own literals and classes, or beginnings of matches; after the beginning of
    a match it is the next parts of the pattern that run.
    """
    tree = _parser.parse(pattern.pattern, pattern.flags)
    literals, samples = set[str](), set[str]()
    _walk(tree, literals, samples)
    whole = _example(tree)
    starts = {
        whole[:end] for end in {len(whole) // 4, len(whole) // 2, 3 * len(whole) // 4, len(whole) - 1, len(whole)}
    }
    joined = {f"{text}{blank}" for text in literals for blank in " 0a"}
    letters = {letter for text in literals for letter in text}
    plain = {" ", "\t", "\n", "a", "0", "-", ".", "/", "a ", "0.", " \n", "a-", "A", "é"}
    repeated = sorted(filter(None, plain | literals | samples | starts | joined | letters))
    begun = {_example(list(tree)[:end]) for end in range(1, min(len(tree), PARTS))} - {""}
    within = sorted(letters | samples | {f"{one}{two}" for one in samples for two in samples} | {" ", "a", "0"})[:MOST]
    return [("", unit) for unit in repeated] + [(start, unit) for start in sorted(begun) for unit in within]


def _walk(tree: Iterable[object], literals: set[str], samples: set[str]) -> None:
    run = ""
    for kind, value in [*tree, (None, None)]:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        literals |= {run}
        run = ""
        if kind is _constants.IN:
            samples |= set(_of_class(value))
        for inner in _inside(kind, value):
            _walk(inner, literals, samples)


def _inside(kind: object, value: object) -> list[Iterable[object]]:
    if kind is _constants.BRANCH:
        return list(value[1])
    if kind is _constants.SUBPATTERN:
        return [value[-1]]
    if kind in {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}:
        return [value[2]]
    if kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
        return [value[1]]
    return [value] if kind is _constants.ATOMIC_GROUP else []


def _of_class(members: Iterable[tuple[object, object]]) -> Iterator[str]:
    """Give one sign of each part of a class, whether the class means it or all but it."""
    for kind, value in members:
        if kind is _constants.LITERAL:
            yield chr(value)
        elif kind is _constants.RANGE:
            yield chr(value[0])
        elif kind is _constants.CATEGORY:
            yield from CLASSES[value]


def _example(tree: Iterable[object]) -> str:
    """Spell a text that resembles a match: the least of each repeat and one more, the first of each alternative."""
    text = ""
    for kind, value in tree:
        if kind is _constants.LITERAL:
            text += chr(value)
        elif kind in {_constants.ANY, _constants.NOT_LITERAL}:
            text += "a"
        elif kind is _constants.IN:
            text += "a" if value[0][0] is _constants.NEGATE else next(_of_class(value))
        elif kind in {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}:
            text += _example(value[2]) * min(value[1], value[0] + 1, 40)
        elif kind not in {_constants.ASSERT, _constants.ASSERT_NOT}:
            text += "".join(map(_example, _inside(kind, value)[:1]))
    return text


def growth(used: Used, start: str, unit: str) -> float:
    """Tell how many times longer twice the text takes, by two doublings; 0 for what is quick anyway."""
    if any(_seconds(used, start, unit, size) < QUICK * (size / LONG) ** 2 for size in (GLANCE, LONG)):
        return 0.0
    short = min(_seconds(used, start, unit, SHORT) for _again in range(3))
    if short > SLOW or min(_seconds(used, start, unit, LONG) for _again in range(3)) < GROWS * short:
        return GROWS * (short > SLOW)
    return (min(_seconds(used, start, unit, 4 * SHORT) for _again in range(2)) / short) ** 0.5


def _seconds(used: Used, start: str, unit: str, size: int) -> float:
    """Time one search; the last sign spoils a match."""
    text = start + (unit * (size // len(unit) + 1))[:size] + "\x01"
    ask = getattr(used.pattern, used.method)
    begun = time.thread_time()  # what others do on this machine does not count
    answer = ask("", text) if used.method in {"sub", "subn"} else ask(text)
    if used.method == "finditer":
        list(answer)
    return time.thread_time() - begun


def too_fast(patterns: Iterable[Used]) -> list[str]:
    """Name every pattern with the first repeated text that it grows too fast on."""
    found = []
    for used in patterns:
        worst = next((text for text in texts(used.pattern) if growth(used, *text) >= GROWS), None)
        if worst:
            found.append(f"{used.where}: on {worst[0]!r} and many {worst[1]!r}: {used.pattern.pattern}")
    return found


def test_every_pattern_is_found():
    """The walk sees what is compiled, what is handed to `re` as it is, and every rule."""
    places = {used.where.partition(":")[0] for used in every()}
    assert len(every()) > 900
    assert {"catalog/identity.py", "detect/common.py", "session/steps.py", "rules/mps.toml"} <= places


def test_a_pattern_that_runs_away_is_seen():
    """The measurement itself: two that are known to be quadratic, and one that is not."""
    assert too_fast([Used("x", re.compile(r"\s+$"), "search"), Used("x", re.compile(r"(?:a|ab)*\d+x"), "search")])
    assert not too_fast([Used("x", re.compile(r"a{1,20}b"), "search")])


@each("place", NAMED)
def test_those_that_once_grew_are_mended(place: str):
    """Every pattern of the files in which one had grown faster than its text."""
    assert too_fast(used for used in every() if used.where.startswith(place)) == []


def test_a_sample_grows_as_its_text():
    """One pattern in a few, so that each change is met by some; the next test takes them all."""
    assert too_fast(every()[::ONE_IN]) == []


@pytest.mark.heavy
def test_every_pattern_grows_as_its_text():
    """Twice the text takes twice the time, not four times."""
    assert too_fast(every()) == []
