"""What the doctor says of compilers: only what is known to be wrong, and with a way out."""

from __future__ import annotations

import pytest

from assistant.diagnose import diagnose
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Machine
from assistant.session.doctor import judged

LINUX = {"os": "linux", "arch": "x86_64", "glibc": "2.36", "python": "3.12.4"}


def finding(key: str, **facts: object) -> Finding | None:
    """Return the finding of a key about a machine."""
    machine = Machine(**{**LINUX, **facts})  # type: ignore[arg-type]
    return next((one for one in judged(Detection(machine=machine)) if one.key == key), None)


@pytest.mark.parametrize(
    ("nvcc", "torch", "severity", "words"),
    [
        ("13.0", "2.14.1+cu130", Severity.OK, "same CUDA version"),
        ("12.8", "2.14.1+cu130", Severity.INFO, "--build-from-source"),
        ("13.2", "2.14.1+cu130", Severity.INFO, "--build-from-source"),
        ("12.6", "2.9.1+cu128", Severity.INFO, "point CUDA_HOME to a CUDA 12.8 toolkit"),
        ("", "2.14.1+cu130", None, ""),
        (None, "2.14.1+cu130", None, ""),
        ("13.0", "2.14.1", None, ""),
        ("13.0", "2.14.1+cpu", None, ""),
    ],
)
def test_nvcc_of_another_cuda_is_told(nvcc: str | None, torch: str, severity: Severity | None, words: str) -> None:
    """Major and minor count, the unknown is nobody's fault, and a build is proposed only where one can be made."""
    found = finding("ext-build-cuda-mismatch", nvcc=nvcc, packages={"torch": torch})
    assert (found and found.severity) == severity
    assert words in (str(found.text) if found else "")


def test_a_build_that_would_be_refused_is_no_remedy() -> None:
    """PyPI has no nvcc of CUDA 12: the assistant refuses to build for a torch of it."""
    for torch, able in (("2.9.1+cu128", False), ("2.14.1+cu130", True)):
        found = finding("ext-build-no-nvcc", cuda_home_state="missing", packages={"torch": torch})
        assert found
        commands = [command for remedy in found.remedies for command in remedy.commands]
        assert any("--build-from-source" in command for command in commands) is able


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        ({"os_version": "Fedora Linux 43"}, "sudo dnf install gcc-c++"),
        ({"os_version": "Arch Linux"}, "sudo pacman -S base-devel"),
        ({"os_version": "Ubuntu 24.04"}, "sudo apt install build-essential"),
        ({"os": "macos", "arch": "arm64"}, "xcode-select --install"),
        ({"os": "windows", "arch": "x86_64"}, "winget install"),
        ({"os_version": "NixOS 26.05"}, ""),
    ],
)
def test_a_missing_compiler_has_the_command_of_its_system(facts: dict[str, str], command: str) -> None:
    """That of the table by which installations tell it, too."""
    log = "error: command 'gcc' failed: No such file or directory"
    found = diagnose(log, Machine(**{**LINUX, **facts}))[0]  # type: ignore[arg-type]
    assert found.key == "ext-build-no-compiler"
    commands = [one for remedy in found.remedies for one in remedy.commands]
    assert [one[: len(command)] for one in commands] == ([command] if command else [])


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
