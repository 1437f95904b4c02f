"""What a verification has disproved is not said any more."""

from __future__ import annotations

import pytest
from tables import each

from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import Sources, Tools
from assistant.machines import load
from assistant.model.report import Check, Report, Status
from assistant.session.session import TASKS, perform_task
from assistant.session.state import Detected, State, Task, Verified


@each("status", [Status.PASSED, Status.FAILED])
def test_torch_that_was_imported_has_its_runtime(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the checks pass, the Visual C++ runtime is not missing, whatever the registry says; else it still is."""
    found, host = detect(ReplayHost(load("windows10-32bit-python-no-vcruntime"))), LiveHost()
    assert "vc-runtime-missing" in {finding.key for finding in found.findings}
    report = Report(device="cpu", checks=(Check(key="import", status=status),))
    monkeypatch.setitem(TASKS, Task.VERIFY, lambda *_given: Verified(report=report))
    tools = Tools(host, Sources(host, offline=True), lambda _event: None, CancelToken())
    end = perform_task(Task.VERIFY, State(detected=Detected(detection=found)), tools)
    still = {finding.key for finding in end.detected or ()}
    assert ("vc-runtime-missing" in still) is (status is Status.FAILED)
