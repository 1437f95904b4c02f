"""Markdown of the pages that the build writes: texts from data, with nothing in them read as markup by accident."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable


def head(*names: str) -> str:
    """Return the first two lines of a table."""
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def prose(text: str) -> str:
    """Escape what Markdown would read as markup, but for code between backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part.replace("|", "\\|") if place % 2 else plain(part) for place, part in enumerate(parts))


def plain(text: str) -> str:
    """Escape what Markdown would read as markup."""
    for sign in "\\`*_<>{}[]|":
        text = text.replace(sign, f"\\{sign}")
    return text


def linked(text: str) -> str:
    """Turn the addresses in a text into links, which `linkcheck` checks."""
    parts = re.split(r"(https://[^\s;,()]+)", text)
    return "".join(f"<{part}>" if place % 2 else prose(part) for place, part in enumerate(parts))


def code(text: str) -> str:
    """Write one line as code, whatever backticks it holds; a bar is escaped for tables, which have it gone again."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def codes(names: Iterable[str]) -> str:
    """Write names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def block(lines: Iterable[str], indent: str = "") -> str:
    """Write lines as they are typed."""
    return "".join(f"{indent}{line}\n" for line in ("```text", *lines, "```"))


def front(description: str) -> str:
    """Begin a page that no table of contents names, described for search engines in a sentence."""
    return (
        f"---\norphan: true\nmyst:\n  html_meta:\n    description: {json.dumps(description, ensure_ascii=False)}\n---\n"
    )
