"""Probes for what compiles extensions of PyTorch: C++ compilers, nvcc, and where CUDA_HOME leads."""

from __future__ import annotations

from assistant.detect.observations import Notes
from assistant.host.base import Host
from assistant.host.compilers import find_compilers, find_nvcc


def compilers(host: Host, notes: Notes) -> None:
    """Note the C++ compilers by name; none are noted only where each was looked for."""
    notes.fact("compilers", find_compilers(host), "PATH")


def cuda_toolkit(host: Host, notes: Notes) -> None:
    """Note which CUDA the nvcc that PyTorch would take is of, and where CUDA_HOME leads."""
    found = find_nvcc(host)
    notes.fact("nvcc", found.cuda, found.source)
    notes.fact("cuda_home_state", found.home, found.source)
