"""Plants the faults that `PLANTED_FAULTS` names in a real torch or ONNX Runtime as soon as that is imported."""

# ruff: noqa: D102, D103 - the names of the faults say what they do

import importlib.machinery
import os
import pathlib
import signal
import sys
import time


class Planter:
    """Finds torch as ever and spoils it after it has run."""

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - as the import system calls it
        faults = [plant for fault, plant in PLACES.get(name, {}).items() if fault in PLANTED]
        if not faults:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def spoiled(module):
            run(module)
            for plant in faults:
                plant(module)

        spec.loader.exec_module = spoiled
        return spec


def after(owner, name, change):
    """Let a function's result pass through `change`."""
    real = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: change(real(*args, **kwargs)))


def instead(owner, name, do):
    setattr(owner, name, lambda *_args, **_kwargs: do())


def one_element_off(result):
    result = result.clone().contiguous()
    result.view(-1)[0] *= 1.001
    return result


kept = []


def keep(result):
    kept.append(result.clone())
    return result


def second_half_forgotten(result):
    half = result.clone()
    half[half.shape[0] // 2 :] = 0
    return half


def grow(_result):
    while True:
        kept.append(bytearray(os.urandom(1 << 20)) * 64)
        time.sleep(0.02)


FAULTS = {
    "attention": lambda torch: after(torch.nn.functional, "scaled_dot_product_attention", one_element_off),
    "transposed": lambda torch: after(torch.nn.functional, "conv_transpose1d", second_half_forgotten),
    "cholesky": lambda torch: after(torch.linalg, "cholesky", one_element_off),
    "complex": lambda torch: after(torch.fft, "rfft", lambda result: result.conj().resolve_conj()),
    "seed": lambda torch: setattr(torch, "manual_seed", lambda _seed: None),
    "constant": lambda torch: after(torch, "rand", torch.zeros_like),
    "leak": lambda torch: after(torch.Tensor, "__matmul__", keep),
    "grow": lambda torch: after(torch.linalg, "svd", grow),
    "generous": lambda torch: instead(torch, "empty", lambda: None),
    "hang": lambda torch: after(torch.linalg, "qr", lambda _: time.sleep(600)),
    "die": lambda torch: after(torch.linalg, "eigh", lambda _: os.kill(os.getpid(), signal.SIGSEGV)),
    "missing": lambda torch: instead(torch.nn.functional, "conv1d", lacking),
    "no float64": lambda torch: after(torch.Tensor, "t", refuse_float64),
    "no compiler": lambda _torch: os.environ.update(PATH=""),
    "slow": lambda torch: after(torch.Tensor, "__add__", slowly),
}


def lacking():
    raise NotImplementedError("The operator 'aten::_weight_norm' is not currently implemented for the MPS device.")


def slowly(result):
    time.sleep(5e-4)
    return result


def refuse_float64(result):
    if str(result.dtype) == "torch.float64":
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return result


def rename_provider(path, name, times=-1):
    """Rewrite ONNX Runtime's profile as if another provider had run the nodes, or the first few; none for ""."""
    text = pathlib.Path(path).read_text("utf-8").replace("CPUExecutionProvider", name, times)
    pathlib.Path(path).write_text(text, "utf-8")
    return path


def claim_cuda(ort):
    """Claim a provider that is not there; ONNX Runtime then takes the CPU's and warns at most."""
    instead(ort, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"])


def pretend_cuda(ort):
    """Claim it and write into the profile that it did the work."""
    claim_cuda(ort)
    after(ort.InferenceSession, "end_profiling", lambda path: rename_provider(path, "CUDAExecutionProvider"))


ORT_FAULTS = {
    "silent": claim_cuda,
    "pretended": pretend_cuda,
    "provider": lambda ort: after(
        ort.InferenceSession, "end_profiling", lambda path: rename_provider(path, "OtherExecutionProvider")
    ),
    "strayed once": lambda ort: after(
        ort.InferenceSession, "end_profiling", lambda path: rename_provider(path, "OtherExecutionProvider", 1)
    ),
    "unplaced": lambda ort: after(ort.InferenceSession, "end_profiling", lambda path: rename_provider(path, "")),
}


PLACES = {"torch": FAULTS, "onnxruntime": ORT_FAULTS}
PLANTED = os.environ.get("PLANTED_FAULTS", "").split(",")
if PLANTED != [""]:
    sys.meta_path.insert(0, Planter())
