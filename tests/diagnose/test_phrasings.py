"""What people tell is compared with examples of how others told each cause."""

from __future__ import annotations

import pytest

from assistant.diagnose import diagnose, load_rules, read_log, resembled
from assistant.diagnose.phrasings import MOST, Classifier, features, phrasings, unmistaken
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import unexplained

PAIRS = [(key, text) for key, row in phrasings().phrasings.items() for texts in (row.en, row.zh) for text in texts]


def test_every_cause_is_told_in_both_languages() -> None:
    """Each rule has examples in English and in Chinese, and no example is of an unknown rule."""
    assert set(phrasings().phrasings) == set(load_rules().by_key)
    assert [key for key, row in phrasings().phrasings.items() if min(len(row.en), len(row.zh)) < 6] == []


def test_words_pairs_and_characters_are_counted() -> None:
    """Words stand alone and with the one before; Chinese, which has no blanks, by characters."""
    assert features("Torch 2.3 torch") == {"torch": 2, "2.3": 1, "torch 2.3": 1, "2.3 torch": 1}
    assert features("显卡") == {"显": 1, "卡": 1, "显卡": 1}


def test_an_example_is_told_by_the_others() -> None:
    """Without itself among the examples, four in five are among the causes that would be named."""
    asked = range(0, len(PAIRS), 40)
    right = 0
    for at in asked:
        others = Classifier(PAIRS[:at] + PAIRS[at + 1 :])
        right += PAIRS[at][0] in [key for key, _near in others.ranked(PAIRS[at][1])[:MOST]]
    assert right / len(asked) >= 0.8


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("after closing the lid cuda is gone until i reboot, rtx laptop, ubuntu", "nvidia-uvm-stale"),
        ("合上笔记本再打开，torch就不认显卡了，重启才行，ubuntu", "nvidia-uvm-stale"),
    ],
)
def test_other_words_for_the_same_are_near(text: str, key: str) -> None:
    """A wording that no example has is near the examples of its cause, in either language."""
    assert key in resembled(read_log(text), Machine(os="linux"))


def test_a_machine_without_the_card_has_no_cause_of_it() -> None:
    """What a cause cannot do without is asked of the machine before it is named."""
    text = "rocminfo only works with sudo, torch sees no gpu as my own user"
    amd, mac = (Gpu(vendor=vendor) for vendor in (Vendor.AMD, Vendor.APPLE))
    assert "kfd-permission" in resembled(read_log(text), Machine(os="linux", gpus=(amd,)))
    assert "kfd-permission" not in resembled(read_log(text), Machine(os="macos", gpus=(mac,)))


def test_causes_in_such_words_are_offered_where_none_is_known() -> None:
    """Who gets no diagnosis is told which causes others had who wrote like this; programs' output is not compared."""
    text = "fooocus with directml only takes the intel graphics and not my radeon"
    assert resembled(read_log("Traceback (most recent call last):\nValueError: 3"), Machine()) == ()
    offered = unexplained(read_log(text.replace("directml", "dml")), Machine(os="windows")).alike
    assert "dml-wrong-adapter" in [one.key for one in offered]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("i can't install torch, conda breaks off since c: has no room left but d: has 500 gb", "disk-full"),
        ("我装好cuda版的torch，装完别的requirements以后又变成cpu版的了，没法训练", "torch-replaced"),
    ],
)
def test_words_that_stand_out_are_a_cause(text: str, key: str) -> None:
    """Words that others used for one cause, and for hardly any other, name it."""
    assert diagnose(read_log(text), Machine())[0].key == key


def test_words_that_many_causes_share_are_none() -> None:
    """Trouble in words that fit several causes is left to the questions."""
    assert unmistaken(read_log("torch fails on my pc, please help"), Machine()) == ""
