"""Messages that the pages of backends quote lead to their causes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import forked
import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("cpu", "cuda", "rocm", "directml", "mps", "xpu")]
SYMPTOM = re.compile(r"^\| `([^`]+)` \| \[[^\]]*\]\(#([\w-]+)\)", re.MULTILINE)


@pytest.mark.process
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
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
