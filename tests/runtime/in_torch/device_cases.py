"""Cases for `device.py`, run by the Python of an environment with torch for the CPU and given its path."""

# ruff: noqa: D103 - the cases' names say what holds

import contextlib
import os
import sys
import types

import torch
from cases import load, message, run_cases

device = load(sys.argv[1])


@contextlib.contextmanager
def wanting(value):
    """Set INFERENCE_DEVICE."""
    os.environ["INFERENCE_DEVICE"] = value
    try:
        yield
    finally:
        del os.environ["INFERENCE_DEVICE"]


@contextlib.contextmanager
def answers(**backends):
    """Let backends answer as on another machine; CUDA's devices cannot add."""
    real_ask, real_device = dict(device._ASK), device._device
    device._ASK.update({name: lambda answer=answer: answer for name, answer in backends.items()})
    device._device = lambda backend, index: (
        torch.device("cpu") if backend == "cpu" else types.SimpleNamespace(type=backend, index=index)
    )
    trial, device._trial = device._trial, lambda there: "no kernel image" if there.type == "cuda" else ""
    try:
        yield
    finally:
        device._ASK.update(real_ask)
        device._device, device._trial = real_device, trial


def refused(value, *words):
    """Ask for a device that cannot be had; the message must hold the words."""
    with wanting(value):
        said = message(device.DeviceError, device.pick_device)
    assert all(word in said for word in words), said


def case_without_a_gpu_the_cpu_is_chosen_and_said_why():
    choice = device.choose_device()
    assert choice.device == torch.device("cpu")
    assert "is built without CUDA" in str(choice.reason)
    assert "\n" not in str(choice.reason)


def case_the_variable_and_the_argument_are_honoured():
    for value in ("cpu", " CPU ", "auto", "", "cpu:0"):
        with wanting(value):
            assert device.pick_device().type == "cpu"
    with wanting("banana"):
        assert device.pick_device("cpu").type == "cpu"


def case_what_is_no_device_is_refused():
    for value in ("banana", "cuda:", "cuda:x", "cuda:-1", "gpu", "cuda:0:1"):
        refused(value, "INFERENCE_DEVICE in the environment asks for", "which is no device", "Use cuda, rocm")


def case_what_cannot_be_had_is_refused_with_the_reason():
    refused("cuda", "built without CUDA", "INFERENCE_DEVICE=auto")
    refused("rocm", "built without ROCm")
    refused("directml", "torch-directml is not installed")
    refused("mps", "built without MPS")
    refused("xpu", "Intel GPU")


def case_an_index_out_of_range_is_refused():
    refused("cpu:1", "cpu has 1 device(s)")
    with answers(cuda=device.Answer(2)):
        refused("cuda:2", "cuda:2, but cuda has 2 device(s)", "cuda:1 or lower")
        assert device.pick_device("cuda:1").index == 1


def case_the_order_is_kept():
    everything = dict.fromkeys(("rocm", "xpu", "mps", "directml"), device.Answer(1))
    for backend in tuple(everything):
        with answers(**everything):
            assert device.choose_device().backend == backend
        everything[backend] = device.Answer(0, "gone")


def case_a_device_that_cannot_add_is_passed_over():
    with answers(cuda=device.Answer(1), xpu=device.Answer(1)):
        choice = device.choose_device()
    assert choice.backend == "xpu"
    assert "no cuda: no kernel image" in str(choice.reason)


def case_types():
    cpu = torch.device("cpu")
    assert device.best_dtype(cpu) is torch.float32
    assert device.supports(cpu, torch.float64)
    assert not device.supports(torch.device("meta"), torch.float32)


def case_autocast_casts_where_it_can():
    cpu, ones = torch.device("cpu"), torch.ones(2, 2)
    with device.autocast(cpu):
        assert (ones @ ones).dtype is torch.float32
    with device.autocast(cpu, torch.bfloat16):
        assert (ones @ ones).dtype is torch.bfloat16
    with device.autocast(types.SimpleNamespace(type="privateuseone"), torch.float16):
        assert (ones @ ones).dtype is torch.float32


def case_the_bug_report_lists_every_backend():
    assert device.main() == 0


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        run_cases(globals())
