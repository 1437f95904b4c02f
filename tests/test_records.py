"""Records are read from JSON by any thread, whichever meets their type first; and two requests become one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from packaging.specifiers import SpecifierSet
from tables import each

from assistant.i18n import render, use_language
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Request
from assistant.model.record import from_json, render_messages, to_json

# Four threads decode into a type that none of them has met; the interpreter switches between them as often as it can.
FOUR_THREADS = """
import random, sys, threading, time
from assistant.model.machine import Detection
from assistant.model.record import from_json
text = '{"machine": {"os": "linux", "gpus": [{"vendor": "amd", "name": "x", "gfx": "gfx1030"}]}}'
barrier, found = threading.Barrier(4), []
def read():
    barrier.wait()
    time.sleep(random.random() / 1000)
    found.append(from_json(text, Detection, "a text").machine.gpus[0].gfx)
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=read) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*found)
"""


@pytest.mark.process
def test_a_type_may_be_met_by_several_threads_at_once() -> None:
    """No thread sees what another has only begun to know of a type: msgspec ended the process, four times of five."""
    for _turn in range(5):
        done = subprocess.run([sys.executable, "-c", FOUR_THREADS], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split()) == (0, ["gfx1030"] * 4), done.stderr


def test_two_requests_are_joined_field_by_field() -> None:
    """Nothing that only one of them asks for is lost, the first goes before, and both ranges of Python hold."""
    one = Request(
        backend=Backend.CPU,
        python="3.12",
        pins=("a",),
        nightly=True,
        cuda_libraries=True,
        bundle="course",
        project="here",
        constraints=("b<2",),
        overrides=("c==1",),
        pythons=">=3.10",
        indexes=("https://one.example/simple",),
        links=("https://one.example/links",),
        builds=("cu128",),
        name="here-1a2b",
    )
    assert {*Request.__struct_fields__} == {name for name in Request.__struct_fields__ if getattr(one, name)}
    assert one.joined(Request()) == Request().joined(one) == one.joined(one) == one
    other = Request(backend=Backend.CUDA, pins=("a", "z"), pythons="<3.13", project="there")
    both = one.joined(other)
    assert (both.backend, both.pins, both.project) == (Backend.CPU, ("a", "z"), "here")
    assert SpecifierSet(both.pythons) == SpecifierSet(">=3.10,<3.13")


@each(
    ("text", "reason"),
    [
        ('{"backends": "cpu"}', "未知的字段 `backends`"),
        ('{"nightly": 1}', "应为 `bool`，实为 `int`"),
        ('{"backend": "cray"}', "'cray' 不是可用的取值"),
        ("", "内容为空或不完整"),
        ('{"backend": cpu}', "不是 JSON"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_the_users_language(text: str, reason: str) -> None:
    """The reasons are msgspec's, whose English nobody who chose Chinese has to read."""
    try:
        use_language("zh_CN")
        with pytest.raises(BadInput) as refused:
            from_json(text, Request, "x.json")
        assert reason in render(refused.value.message)
    finally:
        use_language("en")


def test_a_name_that_is_no_text_has_a_place_in_json() -> None:
    """A file's name on Linux may be any bytes; those that are no UTF-8 are shown as in sentences."""
    told = render_messages({"path": "C\udcff", "backend": Backend.CPU})
    assert to_json(told) == '{"path":"C\ufffd","backend":"cpu"}'
