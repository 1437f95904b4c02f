"""What extensions could be compiled with: facts of this machine and of machines that are replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.compilers import VERSION, VISUAL_CPP, VSWHERE, find_compilers, find_nvcc
from assistant.host.live import LiveHost
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.model.machine import Answer, Exchange, Machine, Recording

NVCC = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0
"""


def host(system: str, **answers: Answer) -> Host:
    """Give a host that answers these questions alone, their words joined by a space."""
    asked = {"platform": Answer(text=f'{{"system": "{system}"}}'), **answers}
    return ReplayHost(Recording(said=tuple(Exchange(ask=tuple(ask.split()), answer=asked[ask]) for ask in asked)))


def said(text: str) -> Answer:
    """Give the answer of a program that went well."""
    return Answer(text=text, code=0)


MISSING = Answer(status="missing")


def test_gcc_on_path_is_known_by_its_version() -> None:
    """One that is there and says nothing has an unknown version; one that is not there is not listed."""
    there = {"which g++": said("/usr/bin/g++")}
    answers = {**there, f"run g++ {' '.join(VERSION)}": said("12.2.0\n")}
    assert find_compilers(host("Linux", **answers)) == {"g++": "12.2.0"}
    assert find_compilers(host("Linux", **there)) == {"g++": ""}


def test_no_compiler_is_not_the_same_as_not_looked() -> None:
    """An old recording, where nobody asked, leaves it unknown."""
    assert find_compilers(host("Linux", **{"which g++": MISSING})) == {}
    assert find_compilers(host("Linux")) is None
    assert find_compilers(host("Windows")) is None
    assert find_compilers(host("Darwin")) is None


def test_a_mac_without_the_tools_is_never_asked_for_clang() -> None:
    """The stub in their place would open a dialog."""
    asked = host(
        "Darwin", **{"run xcode-select -p": Answer(status="failed", code=2), "which clang": said("/usr/bin/clang")}
    )
    assert find_compilers(asked) == {}


def test_visual_cpp_is_found_by_microsofts_own_program() -> None:
    """The version is that of the compiler, as nvcc's limits name it."""
    place = r"C:\VS"
    recording = Recording(
        said=(
            Exchange(ask=("platform",), answer=Answer(text='{"system": "Windows"}')),
            Exchange(ask=("run", VSWHERE, *VISUAL_CPP, "-property", "installationPath"), answer=said(place + "\r\n")),
            Exchange(
                ask=("read", place + r"\VC\Auxiliary\Build\Microsoft.VCToolsVersion.default.txt"),
                answer=said("14.44.35207\r\n"),
            ),
        )
    )
    assert find_compilers(ReplayHost(recording)) == {"cl": "19.44"}


@pytest.mark.parametrize(
    ("answers", "cuda", "home"),
    [
        ({"which nvcc": said("/usr/bin/nvcc"), "run nvcc --version": said(NVCC)}, "13.0", None),
        ({"which nvcc": MISSING, "link /usr/local/cuda/bin/nvcc": MISSING}, "", None),
        ({}, None, None),
        (
            {
                "variable CUDA_HOME": said("/opt/cuda"),
                "link /opt/cuda": said("/opt/cuda"),
                "link /opt/cuda/bin/nvcc": said("/opt/cuda/bin/nvcc"),
                "run /opt/cuda/bin/nvcc --version": said(NVCC),
            },
            "13.0",
            "ready",
        ),
        ({"variable CUDA_PATH": said("/gone"), "link /gone": MISSING, "link /gone/bin/nvcc": MISSING}, "", "missing"),
        ({"variable CUDA_HOME": said("/x"), "link /x": said("/x"), "link /x/bin/nvcc": MISSING}, "", "no-nvcc"),
        ({"variable CUDA_HOME": said("/x")}, None, None),
    ],
)
def test_nvcc_is_looked_for_where_pytorch_looks(answers: dict[str, Answer], cuda: str | None, home: str | None) -> None:
    """The variable comes first, then PATH, then the usual folder; what nobody asked stays unknown."""
    unset = {"variable CUDA_HOME": MISSING, "variable CUDA_PATH": MISSING} if "which nvcc" in answers else {}
    found = find_nvcc(host("Linux", **unset, **answers))
    assert (found.cuda, found.home) == (cuda, home)


@pytest.mark.process
def test_this_machines_compilers_survive_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording replays to the same facts, and the folder that CUDA_HOME names is not told when it is private."""
    home = Path.home() / "cuda-of-my-own"
    monkeypatch.setenv("CUDA_HOME", str(home))
    asked = RecordingHost(LiveHost())
    found = detect(asked).machine
    text = write_recording(asked, "")
    again = detect(ReplayHost(read_recording(text, "a recording"))).machine
    facts = [(machine.compilers, machine.nvcc, machine.cuda_home_state) for machine in (found, again)]
    assert facts[0] == facts[1]
    assert found.cuda_home_state == "missing"
    assert found.compilers is not None


def test_a_described_machine_may_name_its_compilers() -> None:
    """Machine JSON takes what detection gives."""
    assert Machine(compilers={"g++": "12.2.0"}, nvcc="13.0", cuda_home_state="ready").nvcc == "13.0"
