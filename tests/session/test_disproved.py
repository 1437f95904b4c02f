"""What a verification has disproved is not said any more."""

from __future__ import annotations

from tables import each

from assistant.detect import detect
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.host.recording import ReplayHost
from assistant.install import Package, Prepared, Resolution, Sources, Tools
from assistant.machines import load
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.report import Check, Environment, Report, Status
from assistant.session.state import Detected, Installed, Planned, State, Task, Verified
from assistant.session.tasks import TASKS, perform

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.11")
TORCH = Package(name="torch", version="2.13.0", url="file:///torch.whl", size=1)


@each("status", [Status.PASSED, Status.FAILED])
def test_torch_that_was_imported_has_its_runtime(status, monkeypatch):
    """Where the checks pass, the Visual C++ runtime is not missing, whatever the registry says; else it still is."""
    found = detect(ReplayHost(load("windows10-32bit-python-no-vcruntime")))
    assert "vc-runtime-missing" in {finding.key for finding in found.findings}
    state = State(
        preview=Prepared(plan=PLAN, target="/env", resolution=Resolution(lock="", packages=(TORCH,))),
        detected=Detected(detection=found),
        planned=Planned(planning=Planning(choice=PLAN, plans=(PLAN,))),
        installed=Installed(environment=Environment(path="/env", python="/env/bin/python")),
    )
    report = Report(device="cpu", checks=(Check(key="import", status=status),))
    monkeypatch.setitem(TASKS, Task.VERIFY, lambda *_given: Verified(report=report))
    host = LiveHost()
    told = perform(Task.VERIFY, state, Tools(host, Sources(host, offline=True), lambda _event: None, CancelToken()))
    still = {finding.key for finding in told.detected}
    assert ("vc-runtime-missing" in still) is (status is Status.FAILED)
