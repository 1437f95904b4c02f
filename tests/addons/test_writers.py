"""Who of the add-ons writes a file, and why nothing private goes out with it."""

from __future__ import annotations

from sources import ROOT
from written import writers_in

REASONS = {
    "classroom/folder.py:_copy": "wheels",
    "classroom/folder.py:write": "names of machines as the user calls them, and what is public",
    "classroom/folder.py:write_bundle": "public, and without passwords",
    "labs/activation.py:write": "the variables of a lab's own terminal, which only the user can read",
    "labs/play.py:_add": "private: which causes and hints a learner took, and when",
    "labs/play.py:check": "the learner's own name and points, for the teacher",
    "labs/table.py:write_table": "what the learners' files hold",
    "labs/workspace.py:write": "a lab's own texts",
    "labs/stand_ins.py:add_to_index": "a lab's own wheels",
    "onnx/conversion.py:_write_log": "`onnx try` obeys it: paths and operators of the user's own model, beside it",
    "onnx/confined.py:main": "an answer to the parent process",
    "onnx/load.py:save_model": "a model",
    "onnx/page.py:_uploaded": "the user's own upload",
}


def test_every_writer_of_a_file_is_known():
    """Somebody who writes a new file says here why nothing private can be in it."""
    assert writers_in(ROOT / "assistant_addons") == set(REASONS)
