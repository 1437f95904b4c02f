"""A table of cases as one test, which names every row that fails: `@each("given, expected", ROWS)`.

It is written as `pytest.mark.parametrize` is, for tests that compute and start nothing. A row costs microseconds here,
where an item of its own costs milliseconds in each worker, and thousands of them hide which tests there are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

SHOWN = 10  # of the rows that fail
Test = Callable[..., None]


def each(
    argnames: str | Sequence[str], rows: Iterable[Any], *, ids: Callable[[Any], object] | Sequence[str] | None = None
) -> Callable[[Test], Test]:
    """Let a test go over all rows of a table; it fails once, with what each failing row said.

    Args:
        argnames: The names of a row's values, as for `pytest.mark.parametrize`.
        rows: A value for each name, or the value itself where there is one name; `pytest.param` gives a row an id.
        ids: What a row is called: one for each, or made from its values. Else its values are shown.

    Raises:
        ValueError: The table is empty, so that the test would prove nothing.

    """
    names = [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else list(argnames)
    sets = [ParameterSet.extract_from(row, force_tuple=len(names) == 1) for row in rows]
    if not sets:
        message = f"the table of {names} has no rows"
        raise ValueError(message)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def over_all_rows(*args: Any, **others: Any) -> None:
            failures = []
            for number, row in enumerate(sets):
                try:
                    test(*args, **others, **dict(zip(names, row.values, strict=True)))
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - each row has its say
                    failures.append((f"{_called(row, ids, number)}: {type(failure).__name__}: {failure}", failure))
            if failures:
                shown = "\n\n".join(said for said, _failure in failures[:SHOWN])
                message = f"{len(failures)} of {len(sets)} rows\n\n{shown}"
                raise AssertionError(message) from failures[0][1]

        own = [parameter for name, parameter in signature.parameters.items() if name not in names]
        over_all_rows.__signature__ = signature.replace(parameters=own)
        return over_all_rows

    return decorate


def _called(row: ParameterSet, ids: Callable[[Any], object] | Sequence[str] | None, number: int) -> str:
    if row.id is not None:
        return str(row.id)
    if callable(ids):
        return "-".join(str(ids(value)) for value in row.values)
    return ids[number] if ids else ", ".join(map(repr, row.values))[:200]


def sampled(rows: Iterable[Any], every: int) -> list[ParameterSet]:
    """Let one row in `every` stand for its kind in the usual run; all of them run with `--full`.

    For `pytest.mark.parametrize` with one name, where each row starts processes; `pytest.param` gives a row an id.
    """
    sets = [row if isinstance(row, ParameterSet) else pytest.param(row) for row in rows]
    return [
        pytest.param(*row.values, id=row.id, marks=(*row.marks, *([pytest.mark.full] if number % every else [])))
        for number, row in enumerate(sets)
    ]
