"""The CPU prediction is what ONNX Runtime really does, so that the same rule is to be believed for DirectML."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx_prediction import disagreements, node_tests

EVERY = 12  # of onnx's node tests, about 150 in all
AGREED = 0.99


def test_a_sample_of_node_tests_is_placed_as_predicted(tmp_path: Path):
    """Of every twelfth node test of the installed onnx, 99 % are placed, or refused, as predicted."""
    models = node_tests()
    sample = {name: models[name] for name in sorted(models)[::EVERY]}
    wrong = disagreements(sample, tmp_path)
    assert len(wrong) <= len(sample) * (1 - AGREED), wrong


@pytest.mark.heavy
def test_all_node_tests_are_placed_as_predicted(tmp_path: Path):
    """Of all node tests of the installed onnx, 99 % are placed, or refused, as predicted."""
    models = node_tests()
    wrong = disagreements(models, tmp_path)
    assert len(wrong) <= len(models) * (1 - AGREED), wrong
