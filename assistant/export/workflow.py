"""A GitHub Actions job that repeats installation and verification on every push."""

from __future__ import annotations

from assistant.export.setup import Setup
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.model.plan import Backend

# By system, and whether the processor is an ARM one: https://github.com/actions/runner-images#available-images
_RUNNERS = {
    ("linux", False): "ubuntu-24.04",
    ("linux", True): "ubuntu-24.04-arm",
    ("windows", False): "windows-2025",
    ("windows", True): "windows-11-arm",
    ("macos", False): "macos-15-intel",
    ("macos", True): "macos-15",
}
_LABELS = {"linux": "linux", "windows": "windows", "macos": "macOS"}  # that a self-hosted runner gives itself


def workflow_text(setup: Setup) -> str:
    """Write the job: on GitHub's own machine for a CPU or MPS, on one of yours with the right GPU for anything else."""
    system = setup.machine.os or "linux"
    arch = (setup.machine.arch or ("arm64" if system == "macos" else "x86_64")).lower()
    arm = arch in {"aarch64", "arm64"}
    alone = setup.plan.backend in {Backend.CPU, Backend.MPS}
    return filled(
        "workflow.yml",
        runner=_RUNNERS[system, arm] if alone else ["self-hosted", _LABELS[system], "ARM64" if arm else "X64"],
        python=setup.plan.python,
        variables=variables(setup),
        device=setup.report.device,
    )
