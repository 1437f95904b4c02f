"""What the pages quote is what the product says: messages lead to their causes, and outputs are its own."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import forked
import pytest
from babel.messages.pofile import read_po

from assistant.diagnose.rules import load_rules

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("cpu", "cuda", "rocm", "directml", "mps", "xpu")]
SYMPTOM = re.compile(r"^\| `([^`]+)` \| \[[^\]]*\]\(#([\w-]+)\)", re.MULTILINE)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


@cache
def sentences() -> list[re.Pattern[str]]:
    """Return what the product can say, each placeholder as anything."""
    with (ROOT / "assistant" / "locale" / "zh_CN" / "LC_MESSAGES" / "assistant.po").open("rb") as file:
        known = [str(one.id) for one in read_po(file) if one.id and isinstance(one.id, str)]
    return [
        re.compile(re.sub(r"\\\{[^}]*\}", ".+", re.escape(text)))
        for text in known
        if re.search(r"[A-Za-z]{3}", re.sub(r"\{.*?\}", "", text))
    ]


@pytest.mark.process
@each_page
def test_each_symptom_leads_to_its_rule(page: Path) -> None:
    """The diagnosis of a quoted message, on the page's own machine, begins with the rule that the page names."""
    text = page.read_text("utf-8")
    machine = re.search(r"^```\{pip\} (\S+)", text, re.MULTILINE)
    assert machine
    symptoms = SYMPTOM.findall(text)
    assert len(symptoms) >= 4
    for symptom, key in symptoms:
        done = forked.run("diagnose", "-", "--replay", machine[1], "--json", input=f"{symptom}\n")
        causes = json.loads(done.stdout)["diagnoses"]
        assert [cause["key"] for cause in causes][:1] == [key], symptom


@each_page
def test_quoted_output_is_the_products_own(page: Path) -> None:
    """Each cell of a quoted output is a sentence of the product, a duration, or an error of the page's own table."""
    text = page.read_text("utf-8")
    errors = {symptom for symptom, _key in SYMPTOM.findall(text)}
    for block in re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for cell in re.split(r"\s{2,}|\n", block):
            said = cell.removeprefix("✓ ").removeprefix("✗ ")
            if said and said not in errors and not re.fullmatch(r"[\d.]+ (?:s|ms|µs)", said):
                assert any(one.fullmatch(said) for one in sentences()), said


@each_page
def test_the_proof_by_torch_alone_is_a_check_of_the_rules(page: Path) -> None:
    """The line of Python that a page asks its readers to type is one that some remedy is checked with."""
    checks = {line for rule in load_rules().rules for remedy in rule.remedy for line in remedy.check}
    typed = re.findall(r"^python -c .+$", page.read_text("utf-8"), re.MULTILINE)
    assert set(typed) <= checks
    assert typed or page.stem == "cpu"
