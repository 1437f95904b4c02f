"""Pasted reports are read whatever stands around them, and what they do not tell stays unknown."""

from __future__ import annotations

import pytest

from assistant.detect import read_report
from assistant.model.errors import BadInput
from assistant.parsers.mentioned import read_mentioned
from assistant.session.environments import machine_findings

DUMP = """Collecting environment information...
PyTorch version: 2.5.1+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35

Python version: 3.10.12 (main, Nov  6 2024, 20:22:13) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: Could not collect
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16)
  MIG 1g.10gb     Device  0: (UUID: MIG-feb88891-0321-5fef-9c87-d4af3b54259e)
GPU 1: NVIDIA GeForce RTX 2080 Ti

Nvidia driver version: 560.94
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] torch==2.5.1
[conda] Could not collect
"""


def test_a_dump_gives_system_python_torch_driver_and_every_gpu():
    """System, WSL, Python, running torch, driver and each card are told; slices of a card are no cards."""
    machine = read_report(DUMP).machine
    assert (machine.os, machine.os_version, machine.arch) == ("linux", "Ubuntu 22.04.5 LTS (x86_64)", "x86_64")
    assert machine.wsl is True
    assert (machine.python, machine.python_bits, machine.glibc) == ("3.10.12", 64, "2.35")
    assert machine.packages == {"numpy": "1.26.4", "torch": "2.5.1+cu124"}
    assert machine.nvidia_driver == "560.94"
    assert [(gpu.name, gpu.compute_capability) for gpu in machine.gpus] == [
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5"),
    ]


@pytest.mark.parametrize(
    "wrapped",
    [
        "".join(f"> {line}\n" for line in DUMP.splitlines()),
        "".join(f"    {line}\n" for line in DUMP.splitlines()),
        DUMP.replace("\n", "\r\n"),
        "## Bug\n\n - PyTorch version: 1.0 or so\n - OS: Windows\n\nIt fails.\n\n```\n" + DUMP + "```\nThanks!\n",
        "".join(f"- {line}\n" if ":" in line else f"{line}\n" for line in DUMP.splitlines()),
        "OS: my Mac at home\n" + DUMP,
    ],
    ids=["quoted", "indented", "windows line ends", "whole issue", "bullets", "prose with a label before"],
)
def test_what_stands_around_a_dump_does_not_matter(wrapped):
    """Quote marks, indentation, bullets, line ends and a whole issue around the dump change nothing."""
    assert read_report(wrapped).machine == read_report(DUMP).machine


def test_a_dump_that_lost_its_line_ends_is_read():
    """A dump pasted into one line still tells system, Python, torch, driver and each card."""
    machine = read_report(" ".join(DUMP.split())).machine
    whole = read_report(DUMP).machine
    assert (machine.os, machine.wsl, machine.python, machine.nvidia_driver) == ("linux", True, "3.10.12", "560.94")
    assert machine.packages == whole.packages
    assert machine.gpus == whole.gpus


def test_the_fullest_of_several_dumps_counts():
    """A second, cut-off dump does not win over a whole one."""
    second = DUMP.replace("2.5.1+cu124", "9.9.9").partition("Python version")[0]
    assert read_report(DUMP + second).machine.packages["torch"] == "2.5.1+cu124"


def test_an_intel_python_on_an_apple_chip_is_rosetta():
    """An x86_64 platform beside an Apple chip means Rosetta, and the finding says so."""
    text = """PyTorch version: 2.2.2
Is debug build: False
OS: macOS 14.4.1 (x86_64)
Python version: 3.11.8 (main) [Clang 15.0.0 ] (64-bit runtime)
Python platform: macOS-14.4.1-x86_64-i386-64bit
CPU:
Apple M1
"""
    found = read_report(text)
    assert found.machine.rosetta is True
    assert "mps-x86-python-rosetta" in {finding.key for finding in machine_findings(found)}


NEW_TABLE = """Sun Jun  7 08:16:57 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA B200                    On  |   00000000:63:00.0 Off |                    0 |
| N/A   26C    P0            139W / 1000W |       0MiB / 183359MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 5070 ...    Off |   00000000:68:00.0 Off |                  N/A |
| N/A   30C    P0              7W /   70W |     273MiB /  12227MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""

WINDOWS_TABLE = """| NVIDIA-SMI 546.33                 Driver Version: 546.33       CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|=========================================+======================+======================|
|   0  NVIDIA GeForce RTX 3060      WDDM  | 00000000:01:00.0  On |                  N/A |
|  0%   44C    P8              14W / 170W |    893MiB / 12288MiB |      2%      Default |
"""


@pytest.mark.parametrize(
    ("shown", "name"),
    [("NVIDIA GeForce RTX 2080 S...", None), ("NVIDIA RTX 5000 A...", "NVIDIA RTX 5000 Ada")],
)
def test_a_cut_name_is_not_taken_for_a_laptops_card_while_a_desktops_fits(shown, name):
    """Of a name that a table cut off only what all cards have that fit is told, and what code they run."""
    gpu = read_report(NEW_TABLE.replace("NVIDIA GeForce RTX 5070 ...", shown)).machine.gpus[1]
    assert (gpu.name, gpu.compute_capability) == (name, "7.5" if name is None else "8.9")


def test_a_dump_and_a_table_in_one_paste_are_one_machine():
    """Both reports see the same card: its memory comes from the table, its Python from the dump."""
    dump = DUMP.partition("GPU models")[0] + "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3060\n"
    machine = read_report(dump + WINDOWS_TABLE).machine
    assert len(machine.gpus) == 1
    assert (machine.gpus[0].vram_gb, machine.python, machine.nvidia_driver) == (12.0, "3.10.12", "546.33")


def test_a_gpu_whose_memory_is_not_shown_does_not_get_that_of_the_next():
    """A card that has fallen off the bus shows no memory; the next one's stands a few lines below."""
    lost = [line.replace("893MiB / 12288MiB", "        N/A      ") for line in WINDOWS_TABLE.splitlines()[-2:]]
    text = "\n".join([*WINDOWS_TABLE.splitlines()[:-2], *lost, *(WINDOWS_TABLE.splitlines()[-2:])])
    second = text.rpartition("00000000:")
    text = f"{second[0]}00000000:4{second[2][1:]}"
    assert [gpu.vram_gb for gpu in read_report(text).machine.gpus] == [None, 12.0]


DXDIAG = r"""------------------
System Information
------------------
      Time of this report: 10/11/2025, 10:12:45
             Machine name: DESKTOP-ABC
         Operating System: Windows 11 Pro 64-bit (10.0, Build 22631) (22621.ni_release.220506-1250)
                Processor: AMD Ryzen 7 5800X 8-Core Processor (16 CPUs), ~3.8GHz
                   Memory: 32768MB RAM
          DirectX Version: DirectX 12

---------------
Display Devices
---------------
           Card name: NVIDIA GeForce RTX 3080
        Manufacturer: NVIDIA
          Device Key: Enum\PCI\VEN_10DE&DEV_2206&SUBSYS_38871462&REV_A1
      Display Memory: 26436 MB
    Dedicated Memory: 10053 MB
      Driver Version: 31.0.15.3179

           Card name: NVIDIA GeForce RTX 3080
        Manufacturer: NVIDIA
          Device Key: Enum\PCI\VEN_10DE&DEV_2206&SUBSYS_38871462&REV_A1
    Dedicated Memory: 10053 MB
      Driver Version: 31.0.15.3179

           Card name: Parsec Virtual Display Adapter
        Manufacturer: Parsec
          Device Key: Enum\ROOT\DISPLAY

-------------
Sound Devices
-------------
            Description: Speakers
"""


def test_dxdiag_tells_a_card_of_two_screens_once():
    """System, build and driver are read; one card on two screens is one, a virtual adapter is a finding."""
    found = read_report(DXDIAG)
    machine = found.machine
    assert (machine.os, machine.os_version) == ("windows", "Windows 11 Pro (10.0.22631)")
    assert (machine.arch, machine.memory_gb, machine.nvidia_driver) == ("x86_64", 32.0, "531.79")
    (gpu,) = machine.gpus
    assert (gpu.name, gpu.pci_id, gpu.compute_capability) == ("NVIDIA GeForce RTX 3080", "10de:2206", "8.6")
    assert "adapter-skipped" in {finding.key for finding in found.findings}


def test_only_what_told_something_counts_as_read():
    """A dump is one report, not also a program's; a program's own words fill what the dump leaves open."""
    assert str(read_report(DUMP).findings[0].text) == "Read: python -m torch.utils.collect_env."
    old = "PyTorch version: 1.5.0\nIs debug build: No\nCUDA used to build PyTorch: 10.1\nOS: Could not collect\n"
    found = read_report(old + "Python version: 3.7\n\nOS: windows 10\n")
    assert found.machine.os == "windows"


def test_the_findings_say_what_was_read_and_what_stays_unknown():
    """A table alone tells no Python, and the findings say so; the system it tells by driver models and numbers."""
    first, second, *_rest = read_report(WINDOWS_TABLE).findings
    assert (first.key, second.key) == ("report-read", "report-silent")
    assert "nvidia-smi" in str(first.text)
    assert "python" in str(second.text)
    assert read_report(NEW_TABLE).machine.os == "linux"  # Windows' drivers have two numbers, as 560.94
    assert read_report(NEW_TABLE.replace("610.43.02", "610.43")).machine.os is None


PROSE = "I use Windows 11 and my torch does not see my card. PyTorch 2.15 needs a driver of 580?"


@pytest.mark.parametrize(
    "text", ["", "hello", "PyTorch version: 2.0\nOS: Linux\n", "<html>" * 1000, "\x00\ufffd" * 99, PROSE]
)
def test_text_without_a_report_is_refused_in_one_sentence(text):
    """Prose, markup and noise are bad input with a next step."""
    with pytest.raises(BadInput, match="No known report") as raised:
        read_report(text)
    assert "collect_env" in str(raised.value.hint)


def test_hostile_names_lose_their_control_characters():
    """Escape sequences and direction marks in a name never leave the reader; markup stays, for shells to escape."""
    text = DUMP.replace("NVIDIA GeForce RTX 2080 Ti", "NVIDIA \x1b[31m<script>\u202e\x07 Ti")
    name = read_report(text).machine.gpus[1].name or ""
    assert "\x1b" not in name
    assert "\u202e" not in name
    assert "<script>" in name


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("using cpython 3.12.8", "3.12.8"),
        ("after the update from python 3.13.0rc1 to another", "3.13.0"),
        ("python 3.14的虚拟环境", "3.14"),
        ("python version: 3.9.16 | packaged by conda-forge", "3.9.16"),
        ('file "/usr/lib/python3.10/site-packages/x.py", line 1', "3.10"),
        ("torch requires python 3.10 or newer", None),
    ],
)
def test_a_log_mentions_its_python(text, python):
    """Logs and reports name Python in the same manners; a line that speaks of what is wanted does not count."""
    assert read_mentioned(text).python == python


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ('file "/users/first.last/venv/lib/python3.12/x.py", line 3', "macos"),
        ('file "/users/anne-marie.o-neil/proj/x.py"', "macos"),
        ("https://example.org/users/first.last/", None),
        ("c:/users/first.last/x.py", None),
    ],
)
def test_a_home_folder_tells_macos(text, system):
    """Names have dots and dashes in companies and schools; an address on the web is no folder."""
    assert read_mentioned(text).os == system
