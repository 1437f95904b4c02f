"""What uv says while it resolves, as it really says it, becomes values; what is none of it is passed over."""

from __future__ import annotations

import pytest

from assistant_addons.projects.trial import Need, Trace, is_trace, read_refusal, read_trace

TRACE = """\
DEBUG Solving with target Python version: >=3.12
DEBUG Adding direct dependency: unsloth*
DEBUG Adding direct dependency: torch>=2.15.0, <2.15.0+
DEBUG Searching for a compatible version of unsloth (*)
DEBUG Selecting: unsloth==2026.10.9 [compatible] (unsloth-2026.10.9-py3-none-any.whl)
DEBUG Adding transitive dependency for unsloth==2026.10.9: torch>=2.4.0, <2.15.0
DEBUG Adding transitive dependency for unsloth==2026.10.9: xformers{(platform_machine == 'x86_64')}>=0.0.27.post2
DEBUG Recording unit propagation conflict of unsloth from incompatibility of (unsloth, torch)
DEBUG Selecting: unsloth==2026.3.11 [compatible] (unsloth-2026.3.11-py3-none-any.whl)
DEBUG Adding transitive dependency for unsloth==2026.3.11: torch>=2.4.0
DEBUG Adding transitive dependency for Jinja2[i18n]==3.1: MarkupSafe[x]{python_version < '3.13'}*
""".splitlines()


def test_a_trace_tells_the_first_choices_and_what_they_need():
    """The newest version that was looked at comes first, though an older one was taken in the end."""
    trace = read_trace(TRACE)
    assert trace.chose == {"unsloth": "2026.10.9"}
    (need,) = trace.first_needs
    assert (need.package, need.version, need.text) == ("unsloth", "2026.10.9", ">=2.4.0, <2.15.0")
    assert not need.allows("2.15.0")
    assert need.allows("2.14.1")
    assert {"torch", "xformers", "markupsafe"} <= set(trace.names)
    assert all(map(is_trace, TRACE))
    assert not is_trace("error: No solution found when resolving dependencies")


@pytest.mark.parametrize(
    ("text", "inside", "outside", "words"),
    [
        (">=2.6.0, <2.6.0+", "2.6.0", "2.6.1", "2.6.0"),
        ("<2.15", "2.14.1", "2.15.0", "<2.15"),
        (">=2.8.0, <2.9.dev0", "2.8.0", "2.9.0", ">=2.8.0, <2.9"),
        (">=2.4, <2.6.0 | >=2.6.0+", "2.7.1", "2.6.0", ">=2.4, <2.6.0 or >=2.6.0"),
        ("*", "2.15.0", None, "*"),
        ("no range at all", "2.15.0", None, "no range at all"),
    ],
)
def test_ranges_are_read_as_uv_writes_them(text, inside, outside, words):
    """A plus takes local versions in; several ranges are alternatives; what is no range excludes nothing."""
    need = Need(package="a", version="1", on="torch", range=text)
    assert need.allows(inside)
    assert outside is None or not need.allows(outside)
    assert need.text == words


@pytest.mark.parametrize(
    ("text", "missing", "pythons"),
    [
        ("Because zzz was not found in the package registry and environment depends on zzz, we …", ("zzz",), False),
        ("Because old==1 has no wheels with a matching Python ABI tag (e.g., `cp312`) and …", (), True),
        ("Because win==1.0 has no wheels with a matching platform tag (e.g., `manylinux`) and", (), True),
        ("Because new==1.0 requires Python >=3.13 and only new==1.0 is available, we can …", (), True),
        ("Because sd==1.0 has no usable wheels and only sd==1.0 is available, we can …", (), False),
        ("", (), False),
    ],
)
def test_a_proof_tells_what_stands_in_the_way(text, missing, pythons):
    """Names that no source has, and other Pythons."""
    found = read_refusal(text, Trace(names=("zzz", "old", "win", "new", "sd", "environment-x")))
    assert (found.missing, found.pythons) == (missing, pythons)
    assert set(found.names) <= {"zzz", "old", "win", "new", "sd"}


def test_a_hint_tells_which_pythons_have_wheels():
    """None of the others has to be tried."""
    hint = "hint: You require CPython 3.12 (`cp312`), but we only found wheels for `old` (v1.0) with the following"
    assert read_refusal(f"Because …\n\n{hint} Python ABI\ntags: `cp310`, `cp311`", Trace()).others == ("3.10", "3.11")


def test_the_rule_of_the_first_index_is_told_in_uvs_own_words():
    """Else a mirror that is behind looks like a quarrel."""
    hint = "hint: `torch` was found on https://m.example/simple, but not at the requested version (torch==2.9.1). A"
    more = "compatible version may be available on a subsequent index (e.g., https://h.example/simple)."
    found = read_refusal(f"cause: Because there is no torch==2.9.1 …\n\n{hint}\n{more}\n\nhint: another", Trace())
    assert found.words.endswith("may be available on a subsequent index (e.g., https://h.example/simple).")
