"""Loads a model as anybody would, in a child: whatever the runtime dies of there, nothing here is lost."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from assistant.host.sandbox import confine
from assistant.i18n import Text, _
from assistant.onnx.isolated import limits

LOAD_SECONDS = 300.0  # chosen: a large model is optimised for a minute


class Loaded(NamedTuple):
    """Whether ONNX Runtime loads a model with its own settings, None where that is not known, and why it does not."""

    answer: bool | None
    reason: str = ""
    died: bool = False

    @property
    def why(self) -> Text:
        """The reason as a text for people."""
        return _("its process dies") if self.died else self.reason


def loaded(model: Path) -> Loaded:
    """Load a model on the CPU in a process of its own; a limit that ends it tells nothing of the model."""
    if importlib.util.find_spec("onnxruntime") is None:
        return Loaded(None)
    request = msgspec.json.encode({"work": "load", "model": str(model.resolve())}).decode()
    with TemporaryDirectory(prefix="onnx-load-", ignore_cleanup_errors=True) as folder:
        done = confine("assistant.onnx.child", limits(LOAD_SECONDS), Path(folder), stdin=request)
    if done.reached:
        return Loaded(None)
    if done.code or not done.lines:
        return Loaded(answer=False, died=True)
    error: str = msgspec.json.decode(done.lines[-1], type=dict[str, str]).get("error", "")
    return Loaded(answer=not error, reason=(error.splitlines() or [""])[0].rstrip("."))
