"""What people tell in their own words, and the causes that facts give it."""

from __future__ import annotations

import pytest

from assistant.diagnose import diagnose, read_log
from assistant.diagnose.words import written_by_person
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import find_causes


def machine(vendor: Vendor, name: str, os: str = "linux") -> Machine:
    """Make a machine with one card."""
    return Machine(os=os, gpus=(Gpu(vendor=vendor, name=name),))


NVIDIA = machine(Vendor.NVIDIA, "NVIDIA GeForce RTX 4070", "windows")
RADEON = machine(Vendor.AMD, "AMD Radeon RX 7600")
BLACKWELL = machine(Vendor.NVIDIA, "NVIDIA GeForce RTX 5090")
ARC = machine(Vendor.INTEL, "Intel Arc A770 Graphics", "windows")


def keys(text: str, here: Machine = NVIDIA) -> list[str]:
    """Diagnose a text; answer the keys, best first."""
    return [one.key for one in diagnose(text, here)]


@pytest.mark.parametrize(
    "text",
    [
        "why does my program ignore the graphics card? torch is 2.7.0+cpu",
        "gpu sits at 0%, everything trains on the processor. version 2.4.1+cpu here",
        "Blender uses the card but torch doesn't see it... (2.8.0+cpu)",
        "我的显卡一直没用上，版本是2.6.0+cpu",
        "torch 2.5.1+cpu，训练的时候独显利用率0%，求助",
        "conda list: pytorch 2.3.0 py3.11_cpu_0\ncuda isn't available for me",
    ],
)
def test_a_cpu_build_explains_a_gpu_that_is_not_used(text):
    """The wording is free, the language too: the build's tag is the fact, the idle card the symptom."""
    assert keys(text)[0] == "torch-cpu-build-installed"


@pytest.mark.parametrize(
    ("text", "here", "key"),
    [
        ("gpu is not used, torch 2.9.0+cu128", RADEON, "wrong-backend-build-for-gpu"),
        ("my card isn't detected: driver 472.12, torch 2.9.0+cu128", NVIDIA, "nvidia-driver-too-old"),
        ("I can't use the 5090 with torch 2.4.1+cu121", BLACKWELL, "sm-not-in-wheel"),
        ("arc不能用，torch是2.7.0+cpu", ARC, "xpu-cpu-build-installed"),
    ],
)
def test_the_fact_decides_which_cause_a_symptom_has(text, here, key):
    """The same words have another cause on another machine, by the checks that judge any machine."""
    assert keys(text, here)[0] == key


@pytest.mark.parametrize(
    "text",
    [
        "my gpu is not used by chrome",
        "the gpu is used, all good, thanks",
        "训练没问题，gpu在跑，想问下学习率怎么调",
        "How do I turn the GPU off and run on the CPU only?",
    ],
)
def test_a_symptom_without_a_fact_names_no_cause(text):
    """Nothing is guessed, and nothing is wrong where somebody says so."""
    assert keys(text) == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("since I updated the custom nodes torch was replaced by the cpu version", "torch-replaced"),
        ("升级插件之后torch从2.7.1+cu126变成了2.9.0+cpu", "torch-replaced"),
        ("in the terminal it imports fine, but the notebook can't find torch", "kernel-env-mismatch"),
        ("jupyter的内核不是我那个环境，import torch报错", "kernel-env-mismatch"),
    ],
)
def test_what_is_told_can_be_the_cause(text, key):
    """Some say themselves what happened."""
    assert keys(text)[0] == key


def test_what_a_person_wrote_is_told_from_what_a_program_printed():
    """Only people tell symptoms: a program's warning in a run that goes on is none."""
    lines = [
        "hi, my 4070 isn't used",
        "2026-01-10 10:00:00.000000: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
        "/Users/me/env/lib/python3.11/x.py:12: UserWarning: 'pin_memory' is set but no accelerator is found",
        "Is CUDA available: False",
        "用的是公司的电脑，显卡检测不到",
        "Collecting torch",
        "",
    ]
    assert written_by_person(lines) == [True, False, False, False, True, False, False]


def test_the_line_that_tells_it_is_shown():
    """The evidence is the sentence, not the whole text."""
    log = read_log("Hello,\nI have a question.\nMy gpu is not used.\nThanks")
    assert log.prose.told == dict.fromkeys(("gpu-unused", "trouble", "about-a-gpu"), 2)


def test_no_plan_is_made_for_a_gpu_that_nobody_named():
    """An unknown GPU is not none: the first remedy asks for it, and no CPU plan is offered."""
    best = find_causes(read_log("my torch is the cpu version, gpu not used"), Machine(os="linux"))[0]
    assert best.remedies[0].commands == ("assistant detect",)
    assert not any(remedy.plan for remedy in best.remedies)


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("RuntimeError: The MPS backend is supported on MacOS 14.0+", Machine(os="macos", os_version="26.2")),
        (
            "NVIDIA GB10 with CUDA capability sm_121 is not compatible with the current PyTorch installation.",
            Machine(
                os="linux",
                arch="aarch64",
                gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GB10", compute_capability="12.1"),),
                packages={"torch": "2.15.0+cu130"},
            ),
        ),
    ],
)
def test_a_fact_can_speak_against_a_cause(text, here):
    """A new macOS is not too old, and code for 12.0 runs on 12.1, whatever a message says."""
    assert keys(text, here) == []


def test_a_cause_of_directml_needs_a_sign_of_directml():
    """A card that is not used beside a CPU build says nothing of DirectML."""
    assert keys("torch 2.3.1+cpu, RTX 3060, cuda not used") == ["torch-cpu-build-installed"]


def test_a_run_that_did_its_work_is_no_failure():
    """A warning that would name a cause elsewhere names none there, unless somebody complains."""
    log = "UserWarning: The NVIDIA driver on your system is too old (found version 11040).\nEpoch 3/3 - loss: 0.21"
    assert keys(log) == []
    assert "nvidia-driver-too-old" in keys(f"my gpu is not used, why?\n{log}")
    assert "nvidia-driver-too-old" in keys(f"{log}\nRuntimeError: The NVIDIA driver on your system is too old")
    warning = log.partition("\n")[0]
    assert "nvidia-driver-too-old" in keys(f"{warning}\ndone")  # which a step of a script prints, too


CPU_BUILD = Machine(os="windows", gpus=NVIDIA.gpus, packages={"torch": "2.6.0+cpu"})


@pytest.mark.parametrize(
    "text",
    [
        "demucs takes 40 minutes for a song of 4 minutes on my 4070, the same track takes 1 minute on colab",
        "刚换的4070，跑cosyvoice生成一句话要等好几分钟，卡一动不动",
    ],
)
def test_facts_alone_are_a_cause_of_trouble(text: str) -> None:
    """Who tells no more than that it is slow or fails has the trouble that the machine's facts make."""
    assert keys(text, CPU_BUILD)[:1] == ["torch-cpu-build-installed"]


@pytest.mark.parametrize(
    "text",
    [
        "which scheduler do you use for wan 2.2 on a 4070? results are blurry with euler",
        "ValueError: operands could not be broadcast together with shapes (3,) (4,) on my 4070",
        "training on the 4070 works now, thanks",
    ],
)
def test_facts_alone_are_no_cause_of_other_things(text: str) -> None:
    """A question, a program's own error and success are not explained by them."""
    assert keys(text, CPU_BUILD) == []


def test_success_elsewhere_is_no_success_here() -> None:
    """That an old computer does it is part of the trouble."""
    assert "fine" not in read_log("新电脑5070一跑就退出，旧电脑3060一切正常").prose.told
    assert "fine" in read_log("重装驱动之后一切正常").prose.told


NO_CODE = "no kernel image is available for execution on the device"


@pytest.mark.parametrize(
    "text",
    [
        f"I get {NO_CODE}. It does run on the CPU though.",
        f"torch says {NO_CODE}, but everything is fine in the other environment",
        f"多谢各位！装完报 {NO_CODE}，CPU 上运行正常",
        f"anyone solved it? {NO_CODE}, many thanks in advance",
        f"这个问题解决了吗？我的也是 {NO_CODE}",
        f"预算不够换卡，GTX 960 报 {NO_CODE}",
    ],
)
def test_a_quoted_message_counts_though_something_else_is_well(text):
    """What works elsewhere, thanks in advance and a wish to buy do not make the failure go away."""
    assert keys(text)[0] == "sm-not-in-wheel"


@pytest.mark.parametrize(
    "text",
    [
        f"Just want to say thanks: in spring it was all {NO_CODE}, today it simply worked at first start.",
        f"never mind, the {NO_CODE} came from an old notebook",
        f"之前一直 {NO_CODE}，换成 cu128 之后终于解决了",
    ],
)
def test_a_message_of_a_problem_that_is_solved_has_no_cause(text):
    """Somebody who tells how it was mended asks for nothing; blank lines, as at the end of a file, change nothing."""
    assert keys(text) == []
    assert keys(f"Hi all,\n\n{text}\n") == []


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("my 7900 XTX is not used, a friend with the same 6700 XT has no trouble", ["7900 xtx"]),
        ("刚入手 7900XTX，显卡占用是 0，室友的 4070 没事", ["7900xtx"]),
        ("a friend gave me his RTX 4070, and it is not used", ["rtx 4070"]),
        ("朋友送的 4070，用不了", ["4070"]),
    ],
)
def test_somebody_elses_card_is_not_this_machines(text, cards):
    """People compare: what a friend or a room mate has is told, too."""
    assert [gpu.name for gpu in read_log(text).facts.gpus] == cards


@pytest.mark.parametrize(
    ("text", "wsl"), [("Ubuntu 22.04, not WSL", None), ("实体机，不是 wsl", None), ("in wsl2", True)]
)
def test_who_says_that_it_is_not_wsl_is_believed(text, wsl):
    """A negation counts."""
    assert read_log(text).facts.wsl is wsl
