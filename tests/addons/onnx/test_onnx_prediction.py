"""What is said of the CPU, node by node, is what ONNX Runtime does with the whole model."""

from __future__ import annotations

from pathlib import Path

import pytest
from addons.onnx.prediction import disagreements, node_tests

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
