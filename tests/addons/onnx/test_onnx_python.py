"""The Python that tries a model: the one of the last setup, where it can, as its runtime may reach the device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assistant.model.report import Environment
from assistant.session.store import Store
from assistant_addons.onnx.task import python_with_onnxruntime


@pytest.mark.parametrize(
    ("packages", "theirs"),
    [
        ({"onnx": "1.19.0", "onnxruntime-directml": "1.24.4"}, True),
        ({"onnx": "1.19.0", "onnxruntime": "1.26.0"}, True),
        ({"onnxruntime-gpu": "1.26.0"}, False),
        ({"onnx": "1.19.0"}, False),
    ],
)
def test_the_runtime_that_was_set_up_goes_first(
    packages: dict[str, str],
    theirs: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Ours computes on the processor alone; theirs has to read models, too, and to be there still."""
    python = tmp_path / "python"
    python.touch()
    made = Environment(path=str(tmp_path), python=str(python), packages=packages)
    monkeypatch.setattr(Store, "environment", lambda _self: made)
    assert python_with_onnxruntime() == (made.python if theirs else sys.executable)
    python.unlink()
    assert python_with_onnxruntime() == sys.executable
