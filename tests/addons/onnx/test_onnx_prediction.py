"""The CPU prediction is what ONNX Runtime really does, so that the same rule is to be believed for DirectML."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from addons.onnx.prediction import disagreements, node_tests

from assistant_addons.onnx import operators

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from onnx_kernels import kernels

pytestmark = pytest.mark.full

AGREED = 0.99


@pytest.mark.process
@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.heavy)])
def test_node_tests_are_placed_as_predicted(step: int, tmp_path: Path):
    """Of onnx's node tests, all or every twelfth, 99 % are placed, or refused, as predicted."""
    models = node_tests()
    sample = {name: models[name] for name in sorted(models)[::step]}
    wrong = disagreements(sample, tmp_path)
    assert len(wrong) <= len(sample) * (1 - AGREED), wrong


def test_the_table_has_the_kernels_that_the_installed_release_registers():
    """The CPU table says of the installed ONNX Runtime what it says itself; one that came later may say more."""
    release = operators.runtime("cpu")
    if release.is_newer:
        pytest.skip(f"the table ends before ONNX Runtime {release.version}")
    known = operators.table("cpu")
    written = {
        (domain, op, row["since"], told({name: known["type_sets"][number] for name, number in row["types"].items()}))
        for domain, ops in known["operators"].items()
        for op, rows in ops.items()
        for row in rows
        if operators.is_in(row, release.version)
    }
    assert written == {(*row["key"], told(types)) for row in kernels() for types in row["types"]}


def told(types: Mapping[str, Iterable[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Write the types of each variable so that they can be compared."""
    return tuple((name, tuple(sorted(kinds))) for name, kinds in sorted(types.items()))
