"""The README in Chinese says what the English one says: what is typed, where links lead and every figure agree."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = (ROOT / name for name in ("README.md", "README.zh-CN.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN, LINK = re.compile(r"`[^`\n]+`"), re.compile(r"\]\(([^)\s]+)\)")


def sections(path: Path) -> list[tuple[str, str, str]]:
    """Split a README by its headings: the level and words of each, and what stands below; the introduction is first."""
    parts = re.split(r"^(#{1,6}) (.*)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    return list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))


def typed(text: str) -> list[list[str]]:
    """List the blocks of code without what is said beside it; of a drawing, the modules' names."""
    return [
        re.findall(r"\w+/", code) if kind == "text" else [re.sub(r" *#.*", "", line) for line in code.splitlines()]
        for kind, code in BLOCK.findall(text)
    ]


def links(text: str) -> list[str]:
    """List where links and pictures lead; a picture of the wizard counts as the same one in both languages."""
    return sorted(link.replace("-zh.png", ".png") for link in LINK.findall(text))


def figures(line: str) -> list[str]:
    """List the numbers outside code in ascending order; words and units are the language's own."""
    return sorted(re.findall(r"\d+(?:[.,:]\d+)*", re.sub(r"\]\([^)]*\)", "", SPAN.sub("", line))))


def test_the_readmes_say_the_same() -> None:
    """Section by section: the same levels, commands, code spans, links and figures, and as many rows and points."""
    english, chinese = sections(ENGLISH), sections(CHINESE)
    assert [level for level, *_rest in english] == [level for level, *_rest in chinese]
    for (_level, heading, ours), (*_other, theirs) in list(zip(english, chinese, strict=True))[1:]:
        assert typed(theirs) == typed(ours), heading
        prose, translated = (BLOCK.sub("", text) for text in (ours, theirs))
        assert sorted(SPAN.findall(translated)) == sorted(SPAN.findall(prose)), heading
        assert links(translated) == links(prose), heading
        assert figures(translated) == figures(prose), heading
        for mark in ("|", "- "):
            rows, others = ([line for line in text.splitlines() if line.startswith(mark)] for text in (ours, theirs))
            assert [figures(row) for row in others] == [figures(row) for row in rows], heading


def test_each_readme_leads_to_the_other() -> None:
    """The introduction links the other language, and what it says to type in English is in the Chinese one, too."""
    english, chinese = sections(ENGLISH)[0][-1], sections(CHINESE)[0][-1]
    assert "(README.zh-CN.md)" in english
    assert "(README.md)" in chinese
    assert set(SPAN.findall(english)) <= set(SPAN.findall(chinese))
