"""The wizard's page for ONNX models: an upload is checked, converted and tried while the kernel stays free."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from onnx_traps import trap

from assistant.wizard.panels.onnx import OnnxPage

pytestmark = pytest.mark.process

MINUTES = 180.0


def test_an_uploaded_model_is_checked_converted_and_tried(tmp_path: Path) -> None:
    """The button returns at once; the answer holds all three parts, and the result can be downloaded."""
    page = OnnxPage(tmp_path)
    content = trap("weight beyond the range").SerializeToString()
    now = dt.datetime.now(tz=dt.UTC)
    page.upload.value = (
        {"name": "net.onnx", "type": "", "size": len(content), "content": content, "last_modified": now},
    )
    work = page.begin()
    assert page.go.disabled or not work.is_alive()
    work.join(MINUTES)
    assert not page.go.disabled
    for words in ("<svg", "too large for FP16", "It runs and agrees", 'download="net.dml.onnx"'):
        assert words in page.result.value


def test_what_is_no_model_ends_in_a_sentence(tmp_path: Path) -> None:
    """Nothing given, a file that is not there, and markup in a name: one framed sentence, escaped."""
    page = OnnxPage(tmp_path)
    page.begin().join(MINUTES)
    assert "No model was given" in page.result.value
    page.path.value = "<b>no.onnx"
    page.begin().join(MINUTES)
    assert "cannot be read" in page.result.value
    assert "<b>no" not in page.result.value
    assert not page.go.disabled
