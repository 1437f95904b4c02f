"""The Chinese of the assistant is whole and up to date, and the extractor sees every sentence."""

from __future__ import annotations

import ast
import io
import re
import string
from collections.abc import Iterator

import pytest
from babel.messages.catalog import Catalog
from babel.messages.catalog import Message as Entry
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from made_up import every_sentence
from sources import ADDON_MODULES, MODULES, ROOT, text_of

from assistant.i18n import FOLDER

PO = FOLDER / "zh_CN" / "LC_MESSAGES" / "assistant.po"
ENOUGH = 0.95  # of all sentences; the rest may wait for a translator without stopping work


@pytest.fixture(scope="module")
def chinese() -> Catalog:
    """Read the translations."""
    with PO.open("rb") as file:
        return read_po(file, locale="zh_CN")


def translations(message: Entry) -> list[str]:
    """Give all forms of a message's translation."""
    return [message.string] if isinstance(message.string, str) else list(message.string)


def originals(message: Entry) -> list[str]:
    """Give singular and plural of a message, or its one form."""
    return [message.id] if isinstance(message.id, str) else list(message.id)


def placeholders(text: str) -> set[str]:
    """Name what `str.format` fills in, with its format."""
    return {f"{name}:{spec}!{form}" for _text, name, spec, form in string.Formatter().parse(text) if name is not None}


def test_the_compiled_catalogue_is_the_readable_one(chinese: Catalog) -> None:
    """What users get (.mo) is what translators read (.po)."""
    compiled = io.BytesIO()
    write_mo(compiled, chinese)
    assert PO.with_suffix(".mo").read_bytes() == compiled.getvalue(), "run `pybabel compile`, see pyproject.toml"


def test_nearly_every_sentence_is_translated(chinese: Catalog) -> None:
    """At most one sentence in twenty waits for its translation; the missing ones are named."""
    wanted = every_sentence()
    done = {originals(message)[0] for message in chinese if all(translations(message))}
    missing = sorted(wanted - done)
    assert len(missing) <= (1 - ENOUGH) * len(wanted), missing


def test_nothing_is_fuzzy_or_left_over(chinese: Catalog) -> None:
    """No translation is a guess, and none is kept that nobody uses."""
    assert [message.id for message in chinese if message.id and message.fuzzy] == []
    assert list(chinese.obsolete) == []


def test_placeholders_survive(chinese: Catalog) -> None:
    """What is filled in is the same in both languages."""
    for message in chinese:
        for translated in filter(None, translations(message)):
            if message.id:
                assert placeholders(translated) == placeholders(originals(message)[-1]), message.id


def test_the_chinese_reads_as_chinese(chinese: Catalog) -> None:
    """Sentences end with Chinese punctuation, and commands in backticks stay as they are."""
    for message in chinese:
        for translated in filter(None, translations(message)) if message.id else ():
            english = originals(message)[0]
            assert re.findall("`[^`]+`", translated) == re.findall("`[^`]+`", english), english
            assert not re.search(r"[\u4e00-\u9fff] ?[,;:?!]|[\u4e00-\u9fff]\.$", translated), translated
            assert english.endswith(".") <= (translated[-1] not in ".：") or "http" in english, translated


def test_no_sentence_is_written_while_modules_load() -> None:
    """A text at the top of a module would keep the language of the moment in which it was imported."""
    early = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (*MODULES, *ADDON_MODULES)
        for call in _calls_outside_functions(ast.parse(text_of(path)))
        if isinstance(call.func, ast.Name) and call.func.id in {"render", "say"}
    ]
    assert early == []


def _calls_outside_functions(node: ast.AST) -> Iterator[ast.Call]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for early in (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield from _calls_outside_functions(ast.Expr(early))
        elif not isinstance(child, ast.Lambda):
            yield from _calls_outside_functions(child)


def test_no_sentence_hides_in_an_f_string() -> None:
    """The extractor does not look into f-strings, so a sentence there would never be translated."""
    hidden = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (*MODULES, *ADDON_MODULES)
        for text in ast.walk(ast.parse(text_of(path)))
        if isinstance(text, ast.JoinedStr)
        for call in ast.walk(text)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in {"_", "ngettext"}
        if isinstance(call.args[0], ast.Constant)  # a sentence that comes from data is extracted from there
    ]
    assert hidden == []
