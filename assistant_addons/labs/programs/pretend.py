"""A pretended device for PyTorch, `pretend`: only the place is pretended, arithmetic and copies are real.

Each tensor on it holds a tensor of the CPU, and every operator that touches one goes through `_run`. What crosses
between the device and the CPU is counted and really takes time: `LATENCY` for each copy, and its bytes at `BANDWIDTH`.
`torch.pretend.copies` and `copy_seconds` tell what has crossed so far. `LAB_DEVICE` says which device
is played: "directml" takes the operators that it lacks to the CPU, "mps" refuses them unless
PYTORCH_ENABLE_MPS_FALLBACK is 1 when torch is imported, as MPS itself does.

Torch itself loads this file where it is installed, as it loads any backend that is a package of its own:
https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html. It needs torch 2.10, the first release with
`_setup_privateuseone_for_python_backend`, which is private: hence the guard.
"""

import os
import time
import warnings

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "pretend"
LATENCY = (
    2e-4  # seconds for each copy; chosen: more than a real card's 1e-5, so that a small program shows what it costs
)
BANDWIDTH = 4e9  # bytes per second; chosen: a card in a slow slot
# Operators that MPS lacked in torch 2.6 (the list in fallback.py); DirectML lacks them too and takes them to the CPU.
LACKING = {
    *("aten::_linalg_solve_ex", "aten::linalg_lu_factor_ex", "aten::linalg_cholesky_ex", "aten::_linalg_det"),
    *("aten::linalg_lu_solve", "aten::cholesky_solve", "aten::linalg_qr", "aten::_linalg_svd"),
}
# The messages of aten/src/ATen/mps/MPSFallback.mm, torch 2.6, and of torch-directml.
MPS_SAYS = (
    "The operator '{name}' is not currently implemented for the MPS device. If you want this op to be considered for "
    "addition please comment on https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted "
    "in missing op as well as commit hash {commit}. As a temporary fix, you can set the environment variable "
    "`PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback for this op. WARNING: this will be slower than "
    "running natively on MPS."
)
MPS_WARNS = (
    "The operator '{name}' is not currently supported on the MPS backend and will fall back to run on the CPU. This "
    "may have performance implications."
)
DIRECTML_SAYS = (
    "The operator '{name}' is not currently supported on the DML backend and will fall back to run on the CPU. This "
    "may have performance implications."
)
FACTORIES = ("arange", "arange.start", "arange.start_step", "eye", "eye.m", "linspace", "logspace", "randperm")
_says = None  # what the device says when it takes an operator to the CPU; without it, it refuses
_KEPT = []  # the kernels, which go when their library does


def _crossings():
    """Return what copies a tensor of the CPU to where nothing is shared with it, and what lists these copies.

    Each is a copy between device and CPU, listed by its seconds.
    """
    crossed = []

    def crossing(tensor):
        begun = time.perf_counter()
        copy = tensor.detach().clone()
        time.sleep(LATENCY + tensor.nbytes / BANDWIDTH)
        crossed.append(time.perf_counter() - begun)
        return copy

    return crossing, lambda: tuple(crossed)


_crossing, _crossed = _crossings()


class _Module:
    """What `torch.pretend` offers: what torch asks of any backend, and the count of copies."""

    @property
    def copies(self):
        """The number of copies between device and CPU."""
        return len(_crossed())

    @property
    def copy_seconds(self):
        """The seconds that they took."""
        return sum(_crossed())

    def is_available(self):
        """Return True: a pretended device is always there."""
        return True

    is_initialized = is_available

    def device_count(self):
        """Return the number of devices."""
        return 1

    def current_device(self):
        """Return the index of the device."""
        return 0

    def _is_in_bad_fork(self):
        return False

    def manual_seed_all(self, seed):
        """Do nothing: random numbers are drawn by the CPU's generator."""


class _Far(torch.Tensor):
    """A tensor on the device; `_near` is the CPU's tensor that holds its values."""

    @staticmethod
    def __new__(cls, near):
        far = torch.Tensor._make_wrapper_subclass(
            cls, near.shape, dtype=near.dtype, device=f"{NAME}:0", strides=near.stride()
        )
        far._near = near
        return far

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    def __repr__(self):
        return repr(self.cpu()).removesuffix(")") + f", device='{NAME}:0')"

    def __format__(self, form):
        return self.item().__format__(form) if not self.dim() else repr(self)

    def tolist(self):
        """Return the values, which are copied to the CPU for that."""
        return self.cpu().tolist()

    def numpy(self, *, force=False):
        """Refuse, as any device does, unless the copy is asked for."""
        if not force:
            raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() first.")
        return self.cpu().numpy()


def _run(func, args, kwargs):
    """Run an operator of which at least one tensor is on the device."""
    name = func._schema.name
    if func._can_decompose():  # within a mode, such as that of fallback.py, these come here whole
        return func.decompose(*args, **kwargs)
    if name in ("aten::_to_copy", "aten::copy_"):
        return _copy(func, args, kwargs)
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    if any(tensor.dim() and not isinstance(tensor, _Far) for tensor in tensors):
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and cpu!"
        )
    if name not in LACKING:
        return _compute(func, args, kwargs, tensors, lambda tensor: tensor)
    if not _says:
        raise NotImplementedError(MPS_SAYS.format(name=name, commit=torch.version.git_version))
    warnings.warn(_says.format(name=name), stacklevel=3)
    return _compute(func, args, kwargs, tensors, _crossing)


def _compute(func, args, kwargs, tensors, fetch):
    """Compute with the CPU's tensors; `fetch` is what it takes to get at one, and to bring a result back."""
    near = {id(tensor): fetch(tensor._near) if isinstance(tensor, _Far) else tensor for tensor in tensors}
    originals = {id(near[id(tensor)]): tensor for tensor in tensors}
    args, kwargs = tree_map(lambda value: near.get(id(value), _on_cpu(value)), (args, kwargs))

    def back(value):
        if isinstance(value, torch.Tensor):
            if id(value) in originals and originals[id(value)].shape != value.shape:
                raise RuntimeError("The pretended device cannot resize a tensor that is given as out=.")
            return originals[id(value)] if id(value) in originals else _Far(fetch(value))
        if isinstance(value, (bool, int, float, complex)):  # a value is read from the device
            _crossing(torch.tensor(value))
        return value

    return tree_map(back, func(*args, **kwargs))


def _on_cpu(value):
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _copy(func, args, kwargs):
    """Copy within the device, or between it and the CPU."""
    if func._schema.name == "aten::copy_":
        target, source = args[:2]
        crosses = isinstance(target, _Far) != isinstance(source, _Far)
        near = source._near if isinstance(source, _Far) else source
        func(target._near if isinstance(target, _Far) else target, _crossing(near) if crosses else near)
        return target
    device = kwargs.get("device")
    stays = device is None or torch.device(device).type == NAME
    copy = func(args[0]._near, **{**kwargs, "device": "cpu"})
    return _Far(copy) if stays else _crossing(copy)


def _copy_from(source, target, *_):
    return _copy(torch.ops.aten.copy_.default, (target, source), {})


def _made(func):
    return lambda *args, device=None, **kwargs: _Far(func(*args, **kwargs))  # noqa: ARG005 - which is where it goes


def _empty(size, dtype=None, **_):
    return _Far(torch.empty(size, dtype=dtype))


def _empty_strided(size, stride, dtype=None, **_):
    return _Far(torch.empty_strided(size, stride, dtype=dtype))


def offer():
    """Offer the device; torch calls this when it is imported."""
    global _says  # noqa: PLW0603 - one device for each process, as torch has one place for it
    setup = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if setup is None:
        raise ImportError(f"The pretended device needs torch 2.10 or newer; this is torch {torch.__version__}.")
    falls_back = MPS_WARNS if os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1" else None
    _says = DIRECTML_SAYS if os.environ.get("LAB_DEVICE") == "directml" else falls_back
    setup(NAME, backend_module=_Module())
    library = torch.library.Library("aten", "IMPL")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    for name in FACTORIES:
        operator, _, overload = name.partition(".")
        library.impl(name, _made(getattr(getattr(torch.ops.aten, operator), overload or "default")), "PrivateUse1")
    _KEPT.append(library)
