"""What a plan says carries a key for programs: one for each sentence, the same in both languages."""

from __future__ import annotations

import re
from itertools import product

from sources import PACKAGE, text_of

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.i18n import Message, in_language
from assistant.machines import load, shipped
from assistant.model.plan import Request
from assistant.model.record import render_messages
from assistant.plan import make_plans
from assistant.plan.candidates import SENTENCES

REQUESTS = (
    Request(),
    Request(nightly=True),
    Request(bundle="course"),
    Request(pins=("torch==2.6.0", "onnxruntime-gpu")),
)


def test_each_key_names_one_sentence() -> None:
    """No sentence has two keys, no key is left over, and none is missing."""
    texts = "".join(text_of(path) for path in (PACKAGE / "plan").glob("*.py"))
    assert len({text.id for text in SENTENCES.values()}) == len(SENTENCES)
    assert [key for key in SENTENCES if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)+", key)] == []
    written = {
        key: key.removesuffix("-assumed") if key.removesuffix("-assumed") in SENTENCES else key for key in SENTENCES
    }
    assert [key for key in SENTENCES if texts.count(f'"{written[key]}"') == 1] == []  # in the table alone
    assert {*re.findall(r'sentence\(\s*"([^"]+)"', texts)} <= {*SENTENCES}


def test_each_reason_and_warning_has_a_key() -> None:
    """On every recorded machine; a program reads the same keys where the sentences are Chinese."""
    catalog = load_catalog()
    machines = [detect(ReplayHost(load(name))).machine for name in shipped()]
    plans = [plan for case in product(machines, [catalog], REQUESTS) for plan in make_plans(*case).plans]
    said = {text for plan in plans for text in (*plan.reasons, *plan.warnings)}
    assert len(said) > 200
    assert {text for text in said if not (isinstance(text, Message) and text.key)} == set()
    for english, chinese in zip(render_messages([*said]), in_chinese([*said]), strict=True):
        assert english["key"] == chinese["key"]
        assert english["text"] != chinese["text"]


def in_chinese(said: list[Message]) -> list[dict[str, str]]:
    """Give the JSON of what is said to somebody who reads Chinese."""
    with in_language("zh_CN"):
        return render_messages(said)
