"""What the page asks of Python: what of a model runs where on each target, and a model with its open sizes fixed.

Answers are JSON; a refusal is `error` and `hint`, and `memory` is for what does not fit into the page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from onnx.external_data_helper import uses_external_data

import assistant.onnx.check
import assistant.onnx.picture  # noqa: F401 - both here already, so that the first model need not wait for them
from assistant.i18n import _, as_typed, render, use_language
from assistant.model.errors import AssistantError
from assistant.model.record import with_words
from assistant.onnx import fix_shapes, load_model
from assistant.onnx.answers import Checked, default_output, operator_rows, operator_table, rows_of_sizes
from assistant.onnx.graph import given_inputs, tensors
from assistant.onnx.operators import provider_name
from assistant.onnx.targets import ordered
from assistant.onnx.worker import Request, answered


def targets() -> str:
    """Return the keys of all targets; what machine the browser runs on is not asked."""
    return json.dumps(ordered(None))


def name_of(target: str, language: str) -> str:
    """Return a target's name for people."""
    use_language(language)
    return render(provider_name(target))


def check(model: str, folder: str, target: str, language: str) -> str:
    """Check a model's file for one target."""

    def work() -> dict[str, object]:
        request = Request(work="check", model=model, here=folder, provider=target, language=language, picture=True)
        answer = answered(request)
        if answer.checked is None:
            return {"error": render(answer.message), "hint": as_typed(answer.hint)}
        return _drawn(answer.checked, language) | {"picture": answer.picture}

    return _told(work, folder, language)


def is_open(model: str, folder: str) -> bool:
    """Return whether the inputs of a model that was checked leave sizes open, and there is room to fix them."""
    try:
        graph = load_model(Path(folder, model), weights=False).graph
    except MemoryError:
        return False
    return any(dim.dim_value <= 0 for info in given_inputs(graph) for dim in info.type.tensor_type.shape.dim)


def fix(model: str, folder: str, given: str, language: str, result: str) -> str:
    """Write a model with `given` sizes, a JSON object by name, and likely ones to `result`; with "" propose only.

    What of the weights lies in files of its own stays there.
    """

    def work() -> dict[str, object]:
        source = load_model(model, weights=False)
        fixed, done = fix_shapes(source, json.loads(given or "{}"))
        if given:
            Path(result).write_bytes(fixed.SerializeToString())
        note = _("These outputs keep an open size, which depends on what is computed: {names}.")
        rows = zip(done.sizes, rows_of_sizes(done), strict=True)
        return {
            "file": default_output(Path(model), "fixed").name,
            "sizes": [
                {
                    "name": one.name,
                    "size": one.size,
                    "fixed": one.why == "weights",
                    "inputs": inputs,
                    "why": render(why),
                }
                for one, (_name, _size, inputs, why) in rows
            ],
            "note": render(note.format(names=", ".join(done.open))) if done.open else "",
            "apart": any(uses_external_data(tensor) for tensor in tensors(fixed)),
        }

    return _told(work, folder, language)


def _told(work: Callable[[], dict[str, object]], folder: str, language: str) -> str:
    """Work in the model's folder, which goes with the model, and return the answer or the refusal."""
    use_language(language)
    os.chdir(folder)
    try:
        answer = work()
    except AssistantError as error:
        answer = {"error": render(error.message), "hint": as_typed(error.hint)}
    except MemoryError:
        answer = {"memory": True}
    finally:
        os.chdir("/")
    return json.dumps(answer)


def _drawn(answer: Checked, language: str) -> dict[str, object]:
    """Return what the page shows of an answer, and in `answer` what `assistant onnx check --json` prints."""
    headings, rows = operator_table(answer)
    marks = ["none" if row.nowhere else "cpu" if row.cpu else "" for row in operator_rows(answer)]
    return {
        "target": answer.provider,
        "name": name_of(answer.provider, language),
        "mark": next((mark for mark in ("none", "cpu") if mark in marks), ""),
        "verdict": render(answer.verdict),
        "npu": render(answer.npu),
        "headings": [render(heading) for heading in headings],
        "rows": [
            {"mark": mark, "cells": [render(cell) for cell in row]} for mark, row in zip(marks, rows, strict=True)
        ],
        "findings": [
            {
                "severity": finding.severity.value,
                "text": render(finding.text),
                "remedies": [
                    {"text": as_typed(remedy.text), "commands": [as_typed(one) for one in remedy.commands]}
                    for remedy in finding.remedies
                ],
            }
            for finding in answer.findings
        ],
        "answer": with_words(answer),
    }
