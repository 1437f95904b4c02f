"""A GitHub Actions job that repeats installation and verification on every push."""

from __future__ import annotations

from assistant.export.bundle import Setup
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.model.plan import Backend

_RUNNERS = {"linux": "ubuntu-24.04", "windows": "windows-2025", "macos": "macos-15"}
_ARM = {"linux": "ubuntu-24.04-arm", "windows": "windows-11-arm"}
_LABELS = {"linux": "linux", "windows": "windows", "macos": "macOS"}


def workflow_text(setup: Setup) -> str:
    """Write the job: GitHub's own machine for a CPU, one of yours with the right GPU for anything else."""
    system = setup.machine.os or "linux"
    arm = (setup.machine.arch or "").lower() in {"aarch64", "arm64"}
    hosted = (_ARM if arm else _RUNNERS).get(system, _RUNNERS[system])
    alone = setup.plan.backend in {Backend.CPU, Backend.MPS}
    return filled(
        "workflow.yml",
        runner=hosted if alone else ["self-hosted", _LABELS[system], "ARM64" if arm else "X64"],
        python=setup.plan.python,
        variables=variables(setup),
        device=setup.report.device,
    )
