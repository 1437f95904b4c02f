"""Models for the tests of the ONNX room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, parser


@pytest.fixture
def written() -> Callable[..., ModelProto]:
    """Give a function that makes a model of ONNX's text form: its graph, then opset, IR version, other imports."""

    def make(graph: str, opset: int = 17, ir: int = 8, imports: str = "", functions: str = "") -> ModelProto:
        head = f'<ir_version: {ir}, opset_import: ["" : {opset}{imports}]>'
        return parser.parse_model(f"{head}\n{graph}\n{functions}")

    return make


@pytest.fixture
def saved(written: Callable[..., ModelProto], tmp_path: Path) -> Callable[..., Path]:
    """Give a function that writes such a model into a file and answers its path."""

    def save(graph: str, **more: object) -> Path:
        path = tmp_path / "model.onnx"
        onnx.save(written(graph, **more), path)
        return path

    return save
