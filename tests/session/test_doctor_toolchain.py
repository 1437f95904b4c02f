"""What the doctor says of compilers: only what is known to be wrong, and with a way out."""

from __future__ import annotations

import pytest

from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Machine
from assistant.session.doctor import judged

LINUX = {"os": "linux", "arch": "x86_64", "glibc": "2.36", "python": "3.12.4"}


def finding(key: str, **facts: object) -> Finding | None:
    """Return the finding of a key about a machine."""
    machine = Machine(**{**LINUX, **facts})  # type: ignore[arg-type]
    return next((one for one in judged(Detection(machine=machine)) if one.key == key), None)


@pytest.mark.parametrize(
    ("nvcc", "torch", "severity"),
    [
        ("13.0", "2.14.1+cu130", Severity.OK),
        ("12.8", "2.14.1+cu130", Severity.INFO),
        ("13.2", "2.14.1+cu130", Severity.INFO),
        ("", "2.14.1+cu130", None),
        (None, "2.14.1+cu130", None),
        ("13.0", "2.14.1", None),
        ("13.0", "2.14.1+cpu", None),
    ],
)
def test_nvcc_of_another_cuda_is_told(nvcc: str | None, torch: str, severity: Severity | None) -> None:
    """Major and minor count, and what is not known is nobody's fault."""
    found = finding("ext-build-cuda-mismatch", nvcc=nvcc, packages={"torch": torch})
    assert (found and found.severity) == severity
    if severity is Severity.INFO:
        assert found
        assert "--build-from-source" in str(found.text)


def test_a_cuda_home_that_leads_nowhere_is_a_warning_with_a_remedy() -> None:
    """A folder without nvcc is news alone; one with it says nothing."""
    found = finding("ext-build-no-nvcc", cuda_home_state="missing")
    assert found
    assert found.severity is Severity.WARNING
    assert any("--build-from-source" in command for remedy in found.remedies for command in remedy.commands)
    news = finding("ext-build-no-nvcc", cuda_home_state="no-nvcc")
    assert news
    assert news.severity is Severity.INFO
    assert finding("ext-build-no-nvcc", cuda_home_state="ready") is None
    assert finding("ext-build-no-nvcc") is None


def test_a_compiler_that_nvcc_refuses_is_told() -> None:
    """By the limit in that CUDA's own headers; without nvcc there is nothing to compare."""
    found = finding("ext-build-no-compiler", nvcc="13.0", compilers={"g++": "16.1.0"})
    assert found
    assert "16.1.0" in str(found.text)
    assert finding("ext-build-no-compiler", nvcc="13.0", compilers={"g++": "15.2.0"}) is None
    assert finding("ext-build-no-compiler", nvcc="13.0", compilers={"g++": ""}) is None
    assert finding("ext-build-no-compiler", nvcc="", compilers={"g++": "16.1.0"}) is None
    assert finding("ext-build-no-compiler", compilers={}) is None
