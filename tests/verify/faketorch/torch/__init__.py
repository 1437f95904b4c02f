"""A torch made of NumPy, just large enough for the checks; `FAKE_TORCH_FAULT` names the one fault to plant in it.

It plays a CPU and a GPU called cuda, whose tensors carry that name and whose memory is counted.
"""

# ruff: noqa: D102, D103 - the names are torch's and mean what torch's mean

import contextlib
import os
import signal
import sys
import time
import types
import warnings

FAULT = os.environ.get("FAKE_TORCH_FAULT", "")
LARGE = 256  # rows of a matrix that only a measurement multiplies
__version__ = "2.9.9+fake"
version = types.SimpleNamespace(cuda="12.6", hip=None)
_calls = {"matmul": 0}
_memory = {"bytes": 0}
_warned = {"always": False, "once": False}


def set_warn_always(always):
    _warned["always"] = always


def misbehave(where):
    """Do what the planted fault asks for at this place."""
    if f"hang:{where}" == FAULT:
        time.sleep(600)
    if f"signal:{where}" == FAULT:
        os.kill(os.getpid(), signal.SIGSEGV)
    if f"exit:{where}" == FAULT:
        os._exit(7)
    if f"missing:{where}" == FAULT:
        raise NotImplementedError(f"The operator 'aten::{where}' is not currently implemented for the MPS device.")
    if f"fallback:{where}" == FAULT or (
        FAULT == "fallbacks" and where != "import" and (_warned["always"] or not _warned["once"])
    ):
        _warned["once"] = True
        warnings.warn(
            f"The operator 'aten::{where}' is not currently supported on the DML backend and will fall back to run "
            "on the CPU.",
            stacklevel=1,
        )
    if f"noise:{where}" == FAULT:
        sys.stdout.write("no newline from the library")


misbehave("import")
if FAULT == "symbol":
    raise ImportError(f"{__file__}/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi")
if FAULT == "gone":
    raise ModuleNotFoundError("No module named 'torch'")
if FAULT == "abi":
    missing = OSError("libcudart.so.12: cannot open shared object file: No such file or directory")
    raise ImportError("Could not load this library: libtorch_cuda.so") from missing

import numpy as np  # noqa: E402 - a torch without its libraries does not get this far


class device:  # noqa: N801 - torch's name
    """A device's type and index."""

    def __init__(self, name):
        self.type, _, index = str(name).partition(":")
        self.index = int(index) if index else (0 if self.type == "cuda" else None)
        if self.type == "xpu":
            raise RuntimeError("PyTorch is not linked with support for xpu devices")

    def __repr__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Tensor:
    """An array that remembers its device and how to send slopes back to what it was made from."""

    def __init__(self, array, where, back=()):
        self.array, self.device, self.back, self.grad = np.asarray(array), device(where), back, None
        if self.device.type == "cuda" and FAULT != "nomemory":
            _memory["bytes"] += self.array.nbytes

    def made(self, array, *back):
        where = "cpu" if FAULT == "secretcpu" and len(back) > 1 else self.device
        return Tensor(array, where, back)

    def to(self, where, *, copy=False):
        return Tensor(self.array.copy() if copy else self.array, where)

    def cpu(self):
        return Tensor(self.array, "cpu")

    def numpy(self):
        return self.array

    def t(self):
        return self.made(self.array.T)

    def contiguous(self):
        return self.made(np.ascontiguousarray(self.array))

    def clone(self):
        return self.made(self.array.copy())

    def detach(self):
        return Tensor(self.array, self.device)

    def requires_grad_(self):
        return self

    def backward(self, slope=None):
        slope = np.ones_like(self.array) if slope is None else slope
        self.grad = Tensor(slope, self.device)
        for parent, pull in self.back:
            parent.backward(pull(slope))

    def __getitem__(self, key):
        return self.made(self.array[key])

    def __matmul__(self, other):
        misbehave("matmul")
        _calls["matmul"] += 1
        if FAULT == "slowmatmul" and self.device.type == "cuda":
            time.sleep(0.2)
        product = self.array @ other.array
        if FAULT == "secretlarge" and len(product) >= LARGE:
            return Tensor(product, "cpu")
        if FAULT == "element" or (FAULT == "later" and _calls["matmul"] == 4):  # the last of the four runs
            product[-1, 3] *= 1.001
        if FAULT == "nan":
            product[0, 0] = np.nan
        if FAULT == "half":
            product = product.astype("float16").astype("float32")
        return self.made(product, (self, lambda s: s @ other.array.T), (other, lambda s: self.array.T @ s))

    def __sub__(self, other):
        return self.made(self.array - other.array, (self, lambda s: s), (other, lambda s: -s))

    def __rmul__(self, number):
        return self.made(np.float32(number) * self.array)

    def __pow__(self, power):
        return self.made(self.array**2, (self, lambda s: s * 2 * self.array))

    def mean(self, axis=None):
        count = self.array.size
        return self.made(self.array.mean(axis), (self, lambda s: np.full_like(self.array, 1.0 / count) * s))

    def sum(self, axis=None):
        misbehave("sum")
        return self.made(self.array.sum(axis))

    def std(self, axis):
        return self.made(self.array.std(axis, ddof=1))

    def amax(self, axis):
        return self.made(self.array.max(axis))

    def argmax(self, axis):
        return self.made(self.array.argmax(axis))


def from_numpy(array):
    return Tensor(array, "cpu")


def ones(*size, device):
    return Tensor(np.ones(size, "float32"), device)


def tanh(tensor):
    high = np.tanh(tensor.array)
    return tensor.made(high, (tensor, lambda s: s * (1 - high**2)))


def softmax(tensor, axis):
    powers = np.exp(tensor.array - tensor.array.max(axis, keepdims=True))
    return tensor.made(powers / powers.sum(axis, keepdims=True))


def get_num_threads():
    return 1


def _solve(left, right):
    misbehave("linalg_solve")
    shared = np.broadcast_to(right.array, (*left.array.shape[:-2], *right.array.shape[-2:]))
    solved = np.linalg.solve(left.array, shared)
    if FAULT == "broadcast" and right.array.ndim < left.array.ndim:
        solved[1:] = 0
    return left.made(solved.astype("float32"))


def _conv2d(images, kernels, bias, stride, padding):
    misbehave("conv2d")
    around = (padding, padding)
    padded = np.pad(images.array, ((0, 0), (0, 0), around, around))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernels.array.shape[2:], axis=(2, 3))
    result = np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], kernels.array)
    return images.made((result + bias.array[:, None, None]).astype("float32"))


linalg = types.SimpleNamespace(solve=_solve)
nn = types.SimpleNamespace(functional=types.SimpleNamespace(conv2d=_conv2d))
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)),
    cudnn=types.SimpleNamespace(allow_tf32=True),
)


def _memory_allocated(_):
    return _memory["bytes"]


_memory_allocated.__name__ = "memory_allocated"
cuda = types.SimpleNamespace(
    synchronize=contextlib.nullcontext,
    memory_allocated=_memory_allocated,
    get_device_properties=lambda _: types.SimpleNamespace(name="Fake GPU", total_memory=8 << 30, major=8, minor=9),
)
