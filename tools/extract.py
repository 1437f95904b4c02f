"""Extractors for Babel: the sentences of commands and of data files (rules, machines, catalogue)."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator
from typing import IO, Any


def commands(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as Babel calls every extractor
    """Yield a module's own sentences, then what click shows of it: docstrings of commands and `help` of options."""
    from babel.messages.extract import extract_python  # noqa: PLC0415 - only those who translate have it

    yield from extract_python(file, keywords, comment_tags, options)
    file.seek(0)
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.FunctionDef) and any(map(_makes_command, node.decorator_list)):
            yield node.lineno, None, ast.get_docstring(node), []
        if isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
            yield node.value.lineno, None, node.value.value, []


def rules(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield title, cause, remedies and what a program asks for of each diagnosis rule, and the remedies they share."""
    tables = tomllib.loads(file.read().decode())
    yield from ((0, None, way["text"], []) for way in tables.get("remedy", {}).values())
    for rule in tables.get("rule", ()):
        asks = [rule["asks"][key] for key in ("started", "asks", "unnamed")] if "asks" in rule else []
        general = filter(None, [rule.get("general")])
        for text in (
            rule["title"],
            rule["cause"],
            *general,
            *asks,
            *(way["text"] for way in rule["remedy"] if "text" in way),
        ):
            yield 0, None, text, []


def labels(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the label by which a shipped machine is chosen."""
    yield 0, None, json.load(file)["label"], []


def boards(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the catalogue's sentences about NVIDIA's boards and about the states of its driver."""
    tables = json.load(file)
    for table, columns in (("jetson", ("board", "wheels")), ("states", ("text", "help", "wsl_help"))):
        for row in tables[table]["rows"]:
            yield from ((0, None, row[column], []) for column in columns if row.get(column))


def bundles(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield title and sentence of each bundle of packages."""
    for row in json.load(file)["bundles"]["rows"]:
        yield from ((0, None, row[column], []) for column in ("title", "lead"))


def recipes(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield what recipes say to people: title, sentence, uses, reasons against backends, notes, groups."""
    tables = json.load(file)
    for row in tables["recipes"]["rows"]:
        uses = (use["use"] for use in row.get("memory", ()))
        for text in (row["title"], row["lead"], *uses, *row.get("against", {}).values(), *row.get("notes", ())):
            yield 0, None, text, []
    yield from ((0, None, row["title"], []) for row in tables["groups"]["rows"])


def needs(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield what packages need of a system, and how to get it."""
    for row in json.load(file)["needs"]["rows"]:
        yield from ((0, None, text, []) for text in (row["text"], *row.get("help", {}).values()))


def companions(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield what the documentation tells of torch's companions, and whose wheels lie elsewhere."""
    tables = json.load(file)
    for row in tables["companions"]["rows"]:
        for one in (row, row.get("build", {}), *row.get("ranges", ())):
            if one.get("note"):
                yield 0, None, one["note"], []
    yield from ((0, None, row["by"], []) for row in tables["wheel_sources"]["rows"])


def caveats(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the catalogue's sentences about AMD's integrated GPUs."""
    for row in json.load(file)["caveats"]["rows"]:
        yield 0, None, row["text"], []


def settings(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the catalogue's sentences about variables that plans set."""
    for row in json.load(file)["settings"]["rows"]:
        yield 0, None, row["text"], []


def health(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the sentences of each health check."""
    for check in tomllib.loads(file.read().decode())["check"]:
        for case in check["case"]:
            yield 0, None, case["text"], []


def symptoms(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the sentence of each symptom."""
    for symptom in tomllib.loads(file.read().decode())["symptom"]:
        yield 0, None, symptom["text"], []


def hints(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield the sentence of each hint."""
    tables = tomllib.loads(file.read().decode())
    for row in (row for name in ("first", "hint") for row in tables[name]):
        yield 0, None, row["text"], []


def of_click(file: IO[bytes], *_babel: Any, **_options: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - as above
    """Yield click's own sentences that users meet: one per line, its plural after a tab."""
    for number, line in enumerate(file.read().decode().splitlines(), 1):
        one, _tab, many = line.partition("\t")
        yield (number, "ngettext", (one, many), []) if many else (number, None, one, [])


def _makes_command(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in {"command", "group"}
