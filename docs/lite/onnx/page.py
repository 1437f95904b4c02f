"""What the page asks of Python: the targets there are, and what of a model runs where; answers are JSON."""

from __future__ import annotations

import json
import os

import assistant.onnx.check
import assistant.onnx.picture  # noqa: F401 - both here already, so that the first model need not wait for them
from assistant.i18n import as_typed, render, use_language
from assistant.model.record import with_words
from assistant.onnx.answers import Checked, operator_rows, operator_table
from assistant.onnx.operators import PROVIDERS, provider_name
from assistant.onnx.worker import Request, answered


def targets() -> str:
    """Return the keys of all targets."""
    return json.dumps(PROVIDERS)


def name_of(target: str, language: str) -> str:
    """Return a target's name for people."""
    use_language(language)
    return render(provider_name(target))


def check(model: str, folder: str, target: str, language: str) -> str:
    """Check a model's file for one target; a refusal is `error` and `hint`, and `memory` where it does not fit."""
    request = Request(work="check", model=model, here=folder, provider=target, language=language, picture=True)
    try:
        answer = answered(request)
    except MemoryError:
        return json.dumps({"memory": True})
    finally:
        os.chdir("/")  # the model's folder goes with the model
    if answer.checked is None:
        return json.dumps({"error": render(answer.message), "hint": as_typed(answer.hint)})
    return json.dumps(_drawn(answer.checked, language) | {"picture": answer.picture})


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
